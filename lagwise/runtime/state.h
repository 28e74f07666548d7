#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lagwise/runtime/plan.h"

namespace lagwise::runtime {

/// Where everything stands in the memory of a state, in floats from its beginning:
///
///     the last tokens, logits [V], then for each layer
///     recent [K - 1, mixed columns]   rows before the next one, newest first
///     of each head  S [rows, E], z [norm], m
class StateLayout {
 public:
  static constexpr int64_t kRecentTokens = 1024;

  struct Layer {
    int64_t recent, heads;  ///< where they begin
    int64_t rows, norm;     ///< of S and z
    int64_t head_size;
  };

  explicit StateLayout(const Plan& plan);

  int64_t logits() const { return logits_; }
  int64_t vocabulary() const { return vocabulary_; }
  const Layer& layer(size_t index) const { return layers_[index]; }
  int64_t size() const { return size_; }
  int64_t most_positions() const { return most_positions_; }

  /// Where the running maximum m of each head stands, which begins at -inf.
  std::vector<int64_t> maxima() const;

 private:
  int64_t heads_, values_, vocabulary_, logits_, size_, most_positions_;
  std::vector<Layer> layers_;
};

/// All that a model knows of a text: plain memory, the same size after any number of
/// tokens. Copies go on from the same place.
class State {
 public:
  /// Before the first token. `fingerprint`: of the model, which alone may use it. The
  /// layout must outlive the state.
  State(const StateLayout& layout, uint64_t fingerprint);
  State(const State& other);
  State& operator=(const State&) = delete;

  int64_t position() const { return header().position; }
  uint64_t fingerprint() const { return header().fingerprint; }
  const StateLayout& layout() const { return *layout_; }

  /// After the last token; null before the first.
  const float* logits() const {
    return position() > 0 ? floats() + layout_->logits() : nullptr;
  }
  float* logits_to_write() { return floats() + layout_->logits(); }
  float* at(int64_t place) { return floats() + place; }

  void take(int64_t token);

  /// The last tokens, at most `count` and at most StateLayout::kRecentTokens of them,
  /// the newest last, appended to `to`.
  void recent_tokens(int64_t count, std::vector<int64_t>& to) const;

  /// What a file holds, and a state from it. DataError: the file is damaged, or of
  /// another model. Its hash is no secret, so a file may lie on purpose: what places and
  /// tokens it names are checked too, its numbers may be any.
  std::string saved() const;
  static std::unique_ptr<State> from_saved(const std::string& file,
                                           std::string_view text,
                                           const StateLayout& layout,
                                           uint64_t fingerprint);

 private:
  struct Header {
    uint64_t fingerprint;
    int64_t position;
  };
  struct Free {
    void operator()(std::byte* memory) const;
  };

  static constexpr size_t kHeaderBytes = 64;
  size_t bytes() const {
    return kHeaderBytes + static_cast<size_t>(layout_->size()) * sizeof(float);
  }
  Header& header() const { return *reinterpret_cast<Header*>(memory_.get()); }
  float* floats() const {
    return reinterpret_cast<float*>(memory_.get() + kHeaderBytes);
  }

  const StateLayout* layout_;
  std::unique_ptr<std::byte[], Free> memory_;
};

/// The bytes of a state of that layout.
size_t state_bytes(const StateLayout& layout);

}  // namespace lagwise::runtime
