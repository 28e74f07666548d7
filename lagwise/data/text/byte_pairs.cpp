#include "lagwise/data/text/byte_pairs.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <queue>
#include <stdexcept>
#include <tuple>

#include "lagwise/data/text/byte_level.h"

namespace lagwise::data {
namespace {

uint64_t pair_key(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 |
         static_cast<uint32_t>(right);
}

[[noreturn]] void refuse_pairs(const std::string& expected) {
  throw std::invalid_argument("byte pairs: expected " + expected);
}

/// Where the next added token begins, or the text ends.
struct NextAdded {
  size_t at;
  const BytePairs::Added* token = nullptr;
};

/// The first place where an added token stands; of several there the longest.
NextAdded next_added(std::string_view text, const std::vector<BytePairs::Added>& all) {
  NextAdded next{text.size()};
  for (const BytePairs::Added& one : all) {
    const size_t at = text.find(one.text);
    if (at > next.at || at == text.npos) continue;
    if (at < next.at || !next.token || one.text.size() > next.token->text.size())
      next = {at, &one};
  }
  return next;
}

}  // namespace

BytePairs::BytePairs(Plan plan) : plan_(std::move(plan)) {
  bytes_.resize(plan_.tokens.size());
  for (size_t id = 0; id < plan_.tokens.size(); ++id) {
    const std::string& token = plan_.tokens[id];
    if (token.empty() || !ids_.emplace(token, static_cast<int32_t>(id)).second)
      refuse_pairs("each token once and none empty, got '" + token + "'");
    bytes_[id] = from_byte_letters(token).value_or("");
  }
  for (size_t byte = 0; byte < 256; ++byte) {
    const auto found = ids_.find(byte_letters()[byte]);
    if (found == ids_.end())
      refuse_pairs("a token for each of the 256 bytes, got none for " +
                   std::to_string(byte));
    byte_ids_[byte] = found->second;
  }
  take_added();
  take_merges();
}

void BytePairs::take_added() {
  for (const Added& one : plan_.added) {
    const auto id = static_cast<size_t>(one.id);
    if (one.id < 0 || id >= plan_.tokens.size() || plan_.tokens[id] != one.text)
      refuse_pairs("the added token '" + one.text + "' in the vocabulary");
    bytes_[id] = one.text;
  }
  for (size_t id = 0; id < bytes_.size(); ++id)
    if (bytes_[id].empty())
      refuse_pairs("tokens written in the letters of bytes, got '" + plan_.tokens[id] +
                   "'");
}

void BytePairs::take_merges() {
  int32_t rank = 0;
  for (const auto& [left, right] : plan_.merges) {
    const auto holds = [&](int32_t id) { return id >= 0 && id < vocabulary(); };
    if (!holds(left) || !holds(right)) refuse_pairs("merges of tokens");
    const std::string whole = plan_.tokens[static_cast<size_t>(left)] +
                              plan_.tokens[static_cast<size_t>(right)];
    const auto found = ids_.find(whole);
    if (found == ids_.end())
      refuse_pairs("what a merge makes in the vocabulary, got '" + whole + "'");
    merges_.insert_or_assign(pair_key(left, right), Merge{rank++, found->second});
  }
}

const BytePairs::Merge* BytePairs::merge_of(int32_t left, int32_t right) const {
  const auto found = merges_.find(pair_key(left, right));
  return found == merges_.end() ? nullptr : &found->second;
}

/// Tokens as a list linked both ways, and the merges that apply in a heap, the earliest
/// in the list first, then the leftmost: n log n steps for n bytes. An entry whose pair
/// has changed meanwhile is passed over.
std::vector<int32_t> BytePairs::encode_piece(std::string_view piece) const {
  const auto count = static_cast<int32_t>(piece.size());
  std::vector<int32_t> ids(piece.size()), before(piece.size()), after(piece.size());
  const auto id = [&](int32_t at) -> int32_t& { return ids[static_cast<size_t>(at)]; };
  const auto next = [&](int32_t at) -> int32_t& {
    return after[static_cast<size_t>(at)];
  };
  for (int32_t at = 0; at < count; ++at) {
    const auto i = static_cast<size_t>(at);
    ids[i] = byte_ids_[static_cast<uint8_t>(piece[i])];
    before[i] = at - 1, after[i] = at + 1;
  }
  struct Chance {
    int32_t rank, at, left, right;
    bool operator>(const Chance& other) const {
      return std::tie(rank, at) > std::tie(other.rank, other.at);
    }
  };
  std::priority_queue<Chance, std::vector<Chance>, std::greater<>> chances;
  const auto consider = [&](int32_t at) {
    if (at < 0 || next(at) >= count) return;
    const int32_t left = id(at), right = id(next(at));
    if (const Merge* merge = merge_of(left, right))
      chances.push({merge->rank, at, left, right});
  };
  for (int32_t at = 0; at + 1 < count; ++at) consider(at);
  while (!chances.empty()) {
    const Chance best = chances.top();
    chances.pop();
    const int32_t at = best.at, gone = next(at);
    if (id(at) != best.left || gone >= count || id(gone) != best.right) continue;
    id(at) = merge_of(best.left, best.right)->whole;
    id(gone) = -1;
    next(at) = next(gone);
    if (next(at) < count) before[static_cast<size_t>(next(at))] = at;
    consider(before[static_cast<size_t>(at)]);
    consider(at);
  }
  std::erase(ids, -1);
  return ids;
}

void BytePairs::encode_segment(std::string_view& segment, size_t bytes, Seen& seen,
                               std::vector<int32_t>& ids) const {
  for (size_t taken = 0; !segment.empty() && taken < bytes;) {
    const std::string_view piece = plan_.cuts ? first_piece(segment) : segment;
    const auto [found, is_new] = seen.try_emplace(std::string(piece));
    if (is_new) {
      const auto whole =
          plan_.whole_pieces ? ids_.find(to_byte_letters(piece)) : ids_.end();
      found->second = whole == ids_.end() ? encode_piece(piece)
                                          : std::vector<int32_t>{whole->second};
    }
    ids.insert(ids.end(), found->second.begin(), found->second.end());
    taken += piece.size();
    segment.remove_prefix(piece.size());
  }
}

void BytePairs::encode_front(std::string_view& rest, size_t bytes,
                             std::vector<int32_t>& ids) const {
  Seen seen;
  const size_t before = rest.size();
  while (!rest.empty() && before - rest.size() < bytes) {
    const NextAdded next = next_added(rest, plan_.added);
    std::string_view segment = rest.substr(0, next.at);
    encode_segment(segment, bytes, seen, ids);
    rest.remove_prefix(next.at - segment.size());
    if (!segment.empty() || !next.token) continue;
    ids.push_back(next.token->id);
    rest.remove_prefix(next.token->text.size());
  }
}

std::string BytePairs::decode(int32_t id) const {
  return bytes_.at(static_cast<size_t>(id));
}

std::string BytePairs::json() const {
  using Json = nlohmann::ordered_json;
  Json vocabulary = Json::object(), merges = Json::array(), added = Json::array();
  for (size_t id = 0; id < plan_.tokens.size(); ++id)
    vocabulary.get_ref<Json::object_t&>().emplace_back(plan_.tokens[id], id);
  for (const auto& [left, right] : plan_.merges)
    merges.push_back(plan_.tokens[static_cast<size_t>(left)] + " " +
                     plan_.tokens[static_cast<size_t>(right)]);
  for (const Added& one : plan_.added)
    added.push_back({{"id", one.id},
                     {"content", one.text},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", one.special}});
  const Json level = {{"type", "ByteLevel"},
                      {"add_prefix_space", false},
                      {"trim_offsets", true},
                      {"use_regex", plan_.cuts}};
  const Json tree = {{"version", "1.0"},
                     {"truncation", nullptr},
                     {"padding", nullptr},
                     {"added_tokens", added},
                     {"normalizer", nullptr},
                     {"pre_tokenizer", level},
                     {"post_processor", nullptr},
                     {"decoder", level},
                     {"model",
                      {{"type", "BPE"},
                       {"dropout", nullptr},
                       {"unk_token", nullptr},
                       {"continuing_subword_prefix", nullptr},
                       {"end_of_word_suffix", nullptr},
                       {"fuse_unk", false},
                       {"byte_fallback", false},
                       {"ignore_merges", plan_.whole_pieces},
                       {"vocab", vocabulary},
                       {"merges", merges}}}};
  return tree.dump(1) + "\n";
}

}  // namespace lagwise::data
