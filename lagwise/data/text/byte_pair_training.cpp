#include "lagwise/data/text/byte_pair_training.h"

#include <algorithm>
#include <queue>
#include <stdexcept>

#include "lagwise/data/text/byte_level.h"

namespace lagwise::data {
namespace {

constexpr size_t kLongestPiece = 64;  // bytes
constexpr int64_t kFewest = 2;        // times that a pair occurs

using Pair = std::pair<int32_t, int32_t>;

struct PairHash {
  size_t operator()(const Pair& pair) const {
    const uint64_t both =
        static_cast<uint64_t>(pair.first) << 32 | static_cast<uint32_t>(pair.second);
    return static_cast<size_t>(both * 0x9E3779B97F4A7C15U >> 7);
  }
};

/// Pieces as tokens with the counts of all pairs of neighbours.
class PairCounts {
 public:
  void add(std::vector<int32_t> piece, int64_t times) {
    const auto number = static_cast<uint32_t>(pieces_.size());
    for (size_t i = 0; i + 1 < piece.size(); ++i)
      change({piece[i], piece[i + 1]}, times, number);
    pieces_.push_back(std::move(piece)), times_.push_back(times);
  }

  /// The pair that occurs most often and how often; 0 times: there is none left.
  std::pair<Pair, int64_t> most_frequent() {
    for (const Pair& pair : grown_) chances_.push({pairs_[pair].count, pair});
    grown_.clear();
    while (!chances_.empty()) {
      const Chance best = chances_.top();
      chances_.pop();
      const int64_t now = pairs_[best.pair].count;
      if (now == best.count) return {best.pair, now};
      if (now > 0) chances_.push({now, best.pair});  // it was an old count
    }
    return {{}, 0};
  }

  /// Makes one token of the pair wherever it stands.
  void merge(const Pair& pair, int32_t whole) {
    const std::vector<uint32_t> where = std::move(pairs_[pair].pieces);
    for (const uint32_t number : where) merge_in(number, pair, whole);
    pairs_[pair] = {};
  }

 private:
  struct Found {
    int64_t count = 0;
    std::vector<uint32_t> pieces;  ///< where it stands, or stood once
  };
  struct Chance {
    int64_t count;
    Pair pair;
    bool operator<(const Chance& other) const {
      return count != other.count ? count < other.count : pair > other.pair;
    }
  };

  void change(const Pair& pair, int64_t times, uint32_t number) {
    Found& found = pairs_[pair];
    found.count += times;
    if (times <= 0) return;
    if (found.pieces.empty() || found.pieces.back() != number)
      found.pieces.push_back(number);
    if (grown_.empty() || grown_.back() != pair) grown_.push_back(pair);
  }

  void merge_in(uint32_t number, const Pair& pair, int32_t whole) {
    const std::vector<int32_t>& piece = pieces_[number];
    const int64_t times = times_[number];
    std::vector<int32_t> merged;
    for (size_t i = 0; i < piece.size();) {
      if (i + 1 == piece.size() || Pair{piece[i], piece[i + 1]} != pair) {
        merged.push_back(piece[i++]);
        continue;
      }
      if (!merged.empty()) {
        change({merged.back(), pair.first}, -times, number);
        change({merged.back(), whole}, times, number);
      }
      if (i + 2 < piece.size()) {
        change({pair.second, piece[i + 2]}, -times, number);
        change({whole, piece[i + 2]}, times, number);
      }
      merged.push_back(whole);
      i += 2;
    }
    pieces_[number] = std::move(merged);
  }

  std::vector<std::vector<int32_t>> pieces_;
  std::vector<int64_t> times_;
  std::unordered_map<Pair, Found, PairHash> pairs_;
  std::vector<Pair> grown_;  ///< since they were last asked for
  std::priority_queue<Chance> chances_;
};

}  // namespace

void BytePairTraining::read(std::string_view text) {
  while (!text.empty()) {
    std::string_view piece = first_piece(text);
    text.remove_prefix(piece.size());
    while (!piece.empty()) {
      const std::string_view part = piece.substr(0, kLongestPiece);
      ++pieces_[std::string(part)];
      piece.remove_prefix(part.size());
    }
  }
}

BytePairs BytePairTraining::learn(int64_t vocabulary) const {
  if (vocabulary < 256)
    throw std::invalid_argument(
        "byte pairs: expected a vocabulary of at least 256, got " +
        std::to_string(vocabulary));
  BytePairs::Plan plan;
  plan.tokens = byte_letters();
  std::ranges::sort(plan.tokens);  // UTF-8 sorts like its code points
  std::unordered_map<std::string, int32_t> ids;
  for (const std::string& token : plan.tokens)
    ids.emplace(token, static_cast<int32_t>(ids.size()));
  PairCounts counts;
  for (const auto& [piece, times] : pieces_) {
    std::vector<int32_t> tokens;
    for (const char byte : piece)
      tokens.push_back(ids.at(byte_letters()[static_cast<uint8_t>(byte)]));
    counts.add(std::move(tokens), times);
  }
  while (static_cast<int64_t>(plan.tokens.size()) < vocabulary) {
    const auto [pair, times] = counts.most_frequent();
    if (times < kFewest) break;
    std::string whole = plan.tokens[static_cast<size_t>(pair.first)] +
                        plan.tokens[static_cast<size_t>(pair.second)];
    // Two pairs may spell the same: they share a token.
    const auto [found, is_new] =
        ids.try_emplace(whole, static_cast<int32_t>(plan.tokens.size()));
    if (is_new) plan.tokens.push_back(std::move(whole));
    plan.merges.push_back(pair);
    counts.merge(pair, found->second);
  }
  return BytePairs(std::move(plan));
}

}  // namespace lagwise::data
