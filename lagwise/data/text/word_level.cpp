#include "lagwise/data/text/word_level.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "lagwise/data/text/code_point.h"
#include "lagwise/data/text/word_level_json.h"

namespace lagwise::data {
namespace {

constexpr const char* kUnknown = "<unk>";

bool is_ascii_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/// The first word of a text, "\n" for an end of line, or nothing where only blanks are
/// left; it is taken away with the blanks before it.
std::string_view take_word(std::string_view& rest) {
  size_t begin = 0;
  while (begin < rest.size() && is_ascii_blank(rest[begin]) && rest[begin] != '\n')
    ++begin;
  size_t end = begin;
  while (end < rest.size() && !is_ascii_blank(rest[end])) ++end;
  if (end == begin && begin < rest.size()) ++end;
  const std::string_view word = rest.substr(begin, end - begin);
  rest.remove_prefix(end);
  return word;
}

}  // namespace

WordLevel::WordLevel(std::vector<std::string> words) : words_(std::move(words)) {
  for (const std::string& word : words_)
    if (!ids_.emplace(word, static_cast<int32_t>(ids_.size())).second || word.empty())
      throw std::invalid_argument("words: expected each once and none empty, got '" +
                                  word + "'");
  const auto unknown = ids_.find(kUnknown), end = ids_.find(kEndOfLine);
  if (unknown == ids_.end() || end == ids_.end())
    throw std::invalid_argument("words: expected <unk> and <eos> among them");
  unknown_ = unknown->second, end_ = end->second;
}

void WordLevel::encode_front(std::string_view& rest, size_t bytes,
                             std::vector<int32_t>& ids) const {
  const size_t before = rest.size();
  while (!rest.empty() && before - rest.size() < bytes) {
    const std::string_view word = take_word(rest);
    if (word.empty()) continue;
    const auto found = ids_.find(word);
    ids.push_back(word == "\n" ? end_ : found == ids_.end() ? unknown_ : found->second);
  }
}

std::string WordLevel::decode(int32_t id) const {
  return id == end_ ? " \n" : " " + words_.at(static_cast<size_t>(id));
}

std::string WordLevel::json() const {
  using Json = nlohmann::ordered_json;
  Json vocabulary = Json::object();
  for (size_t id = 0; id < words_.size(); ++id)
    vocabulary.get_ref<Json::object_t&>().emplace_back(words_[id], id);
  const Json tree = {
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", Json::array()},
      {"normalizer", word_level_normalizer()},
      {"pre_tokenizer", word_level_split()},
      {"post_processor", nullptr},
      {"decoder", nullptr},
      {"model",
       {{"type", "WordLevel"}, {"vocab", vocabulary}, {"unk_token", kUnknown}}}};
  return tree.dump(1) + "\n";
}

nlohmann::ordered_json word_level_normalizer() {
  return {{"type", "Replace"},
          {"pattern", {{"String", "\n"}}},
          {"content", std::string(" ") + kEndOfLine + " "}};
}

nlohmann::ordered_json word_level_split() {
  return {{"type", "Split"},
          {"pattern", {{"Regex", "[ \\t\\n\\x0B\\x0C\\r]+"}}},
          {"behavior", "Removed"},
          {"invert", false}};
}

void WordCount::read(std::string_view text) {
  while (!text.empty())
    if (const std::string_view word = take_word(text); !word.empty() && word != "\n")
      ++counts_[std::string(word)];
}

WordLevel WordCount::words(int64_t most) const {
  std::vector<std::pair<int64_t, std::string_view>> found;
  for (const auto& [word, count] : counts_)
    if (word != kUnknown && word != kEndOfLine && is_utf8(word))
      found.emplace_back(-count, word);
  std::ranges::sort(found);
  if (most > 0 && most < 2)
    throw std::invalid_argument("words: expected at least 2, got " +
                                std::to_string(most));
  if (most > 0) found.resize(std::min(found.size(), static_cast<size_t>(most - 2)));
  std::vector<std::string> words = {kUnknown, kEndOfLine};
  for (const auto& [count, word] : found) words.emplace_back(word);
  return WordLevel(std::move(words));
}

}  // namespace lagwise::data
