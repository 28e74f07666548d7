#pragma once

#include <array>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lagwise/data/text/tokenizer.h"

namespace lagwise::data {

/// Byte pair encoding over bytes (Sennrich et al., 2016, arXiv:1508.07909, on the bytes
/// of GPT-2). A piece of text (data/text/byte_level.h) begins as its bytes; of all pairs of
/// neighbours that a merge knows, the one whose merge comes first in the list becomes
/// one token, the leftmost first, until no merge applies. Every byte is a token, so any
/// bytes can be encoded, and decoding gives them back.
class BytePairs : public Tokenizer {
 public:
  struct Added {
    int32_t id = 0;
    std::string text;  ///< stands for itself wherever it occurs, before all else
    bool special = true;
  };

  struct Plan {
    std::vector<std::string> tokens;                  ///< in byte letters, by id
    std::vector<std::pair<int32_t, int32_t>> merges;  ///< ids of both halves, in order
    std::vector<Added> added = {};
    bool cuts = true;           ///< into pieces; false: a text is one piece
    bool whole_pieces = false;  ///< a piece that is a token is one, whatever merges say
  };

  /// std::invalid_argument says what does not hold: each token once, all 256 bytes
  /// among them, and of each merge both halves and the whole.
  explicit BytePairs(Plan plan);

  const Plan& plan() const { return plan_; }
  std::string kind() const override { return "bpe"; }
  int64_t vocabulary() const override {
    return static_cast<int64_t>(plan_.tokens.size());
  }
  void encode_front(std::string_view& rest, size_t bytes,
                    std::vector<int32_t>& ids) const override;
  std::string decode(int32_t id) const override;
  std::string json() const override;

 private:
  struct Merge {
    int32_t rank, whole;
  };
  using Seen = std::unordered_map<std::string, std::vector<int32_t>>;

  void take_added();
  void take_merges();
  const Merge* merge_of(int32_t left, int32_t right) const;
  void encode_segment(std::string_view& segment, size_t bytes, Seen& seen,
                      std::vector<int32_t>& ids) const;
  std::vector<int32_t> encode_piece(std::string_view piece) const;

  Plan plan_;
  std::vector<std::string> bytes_;                     ///< of each token
  std::unordered_map<std::string_view, int32_t> ids_;  ///< views into plan_.tokens
  std::array<int32_t, 256> byte_ids_ = {};
  std::unordered_map<uint64_t, Merge> merges_;  ///< by both halves
};

}  // namespace lagwise::data
