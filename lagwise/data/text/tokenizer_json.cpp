#include <nlohmann/json.hpp>
#include <stdexcept>
#include <unordered_map>

#include "lagwise/core/errors.h"
#include "lagwise/data/formats/strict_json.h"
#include "lagwise/data/text/byte_pairs.h"
#include "lagwise/data/text/tokenizer.h"
#include "lagwise/data/text/word_level.h"
#include "lagwise/data/text/word_level_json.h"

namespace lagwise::data {
namespace {

/// Reads a tokenizer.json; messages name the entry. What would make other tokens than
/// ours is refused, what only concerns offsets or batches is passed over.
class TokenizerReader {
 public:
  TokenizerReader(const std::string& file, const nlohmann::json& tree)
      : file_(file), tree_(tree) {}

  std::unique_ptr<Tokenizer> read() const {
    require(tree_.is_object(), "an object");
    const std::string type = text(object("model"), "model.type", "type");
    need_null("truncation");
    need_null("padding");
    if (type == "BPE") return read_byte_pairs();
    if (type == "WordLevel") return read_words();
    fail("model.type 'BPE' or 'WordLevel', got '" + type.substr(0, 40) + "'");
  }

 private:
  using Json = nlohmann::json;

  [[noreturn]] void fail(const std::string& expected) const {
    throw DataError(file_, -1, expected);
  }
  void require(bool holds, const std::string& expected) const {
    if (!holds) fail(expected);
  }
  Json entry(const Json& from, const char* key) const {
    return from.value(key, Json());
  }
  void need_null(const char* key) const {
    require(entry(tree_, key).is_null(), std::string(key) + " null");
  }
  const Json& object(const char* key) const {
    require(tree_.contains(key) && tree_[key].is_object(),
            std::string("an object at '") + key + "'");
    return tree_[key];
  }
  std::string text(const Json& from, const std::string& place, const char* key) const {
    require(from.contains(key) && from[key].is_string(), "a text at '" + place + "'");
    return from[key].get<std::string>();
  }
  bool flag(const Json& from, const std::string& place, const char* key,
            bool otherwise) const {
    const Json value = entry(from, key);
    if (value.is_null()) return otherwise;
    require(value.is_boolean(), "true or false at '" + place + "." + key + "'");
    return value.get<bool>();
  }

  /// model.vocab, with the added tokens that it lacks, by id.
  std::vector<std::string> tokens() const {
    const Json& model = tree_["model"];
    require(model.contains("vocab") && model["vocab"].is_object(),
            "an object at 'model.vocab'");
    std::unordered_map<std::string, int64_t> ids;
    const auto take = [&](const std::string& token, const Json& id) {
      require(id.is_number_unsigned(), "ids that are whole numbers in the vocabulary");
      const auto number = id.get<int64_t>();
      const auto [found, is_new] = ids.try_emplace(token, number);
      require(is_new || found->second == number,
              "one id for the token '" + token.substr(0, 40) + "'");
    };
    for (const auto& [token, id] : model["vocab"].items()) take(token, id);
    for (const BytePairs::Added& one : added()) take(one.text, uint64_t(one.id));
    std::vector<std::string> tokens(ids.size());
    for (const auto& [token, id] : ids) {
      const bool inside = id >= 0 && id < static_cast<int64_t>(tokens.size());
      require(inside && tokens[static_cast<size_t>(id)].empty(),
              "ids from 0 to " + std::to_string(tokens.size() - 1) +
                  ", each once, got " + std::to_string(id));
      tokens[static_cast<size_t>(id)] = token;
    }
    return tokens;
  }

  std::vector<BytePairs::Added> added() const {
    std::vector<BytePairs::Added> all;
    const Json list = entry(tree_, "added_tokens");
    require(list.is_null() || list.is_array(), "a list at 'added_tokens'");
    for (const Json& one : list) {
      require(one.is_object() && one.contains("id") && one["id"].is_number_unsigned() &&
                  one["id"].get<uint64_t>() <= INT32_MAX,
              "objects with an id in 'added_tokens'");
      for (const char* key : {"single_word", "lstrip", "rstrip"})
        require(!flag(one, "added_tokens", key, false),
                std::string("added_tokens.") + key + " false");
      all.push_back({one["id"].get<int32_t>(),
                     text(one, "added_tokens.content", "content"),
                     flag(one, "added_tokens", "special", false)});
      require(!all.back().text.empty(), "added_tokens.content that is not empty");
    }
    return all;
  }

  std::unique_ptr<Tokenizer> read_byte_pairs() const {
    const Json& model = tree_["model"];
    need_null("normalizer");
    const Json after = entry(tree_, "post_processor");
    require(after.is_null() ||
                (after.is_object() && after.value("type", Json()) == "ByteLevel"),
            "post_processor null or of type 'ByteLevel'");
    for (const char* key :
         {"unk_token", "continuing_subword_prefix", "end_of_word_suffix"})
      require(entry(model, key).is_null() || entry(model, key) == "",
              std::string("model.") + key + " null");
    require(entry(model, "dropout").is_null() || entry(model, "dropout") == 0,
            "model.dropout null");
    require(!flag(model, "model", "byte_fallback", false), "model.byte_fallback false");
    const Json& level = object("pre_tokenizer");
    require(text(level, "pre_tokenizer.type", "type") == "ByteLevel",
            "pre_tokenizer.type 'ByteLevel'");
    require(!flag(level, "pre_tokenizer", "add_prefix_space", true),
            "pre_tokenizer.add_prefix_space false");
    BytePairs::Plan plan;
    plan.tokens = tokens();
    plan.added = added();
    plan.cuts = flag(level, "pre_tokenizer", "use_regex", true);
    plan.whole_pieces = flag(model, "model", "ignore_merges", false);
    plan.merges = merges(plan.tokens);
    return made([&] { return std::make_unique<BytePairs>(std::move(plan)); });
  }

  std::vector<std::pair<int32_t, int32_t>> merges(
      const std::vector<std::string>& tokens) const {
    std::unordered_map<std::string_view, int32_t> ids;
    for (const std::string& token : tokens)
      ids.emplace(token, static_cast<int32_t>(ids.size()));
    const Json& model = tree_["model"];
    require(model.contains("merges") && model["merges"].is_array(),
            "a list at 'model.merges'");
    std::vector<std::pair<int32_t, int32_t>> merges;
    for (const Json& one : model["merges"]) {
      const auto [left, right] = halves(one, merges.size());
      const auto first = ids.find(left), second = ids.find(right);
      require(first != ids.end() && second != ids.end(),
              "tokens of the vocabulary in model.merges[" +
                  std::to_string(merges.size()) + "]");
      merges.emplace_back(first->second, second->second);
    }
    return merges;
  }

  /// "a b", or since version 0.20 of `tokenizers` ["a", "b"].
  std::pair<std::string, std::string> halves(const Json& merge, size_t number) const {
    const std::string what =
        "two tokens in model.merges[" + std::to_string(number) + "]";
    if (merge.is_array()) {
      require(merge.size() == 2 && merge[0].is_string() && merge[1].is_string(), what);
      return {merge[0].get<std::string>(), merge[1].get<std::string>()};
    }
    require(merge.is_string(), what);
    const auto both = merge.get<std::string>();
    const size_t blank = both.find(' ');
    require(blank != both.npos && both.find(' ', blank + 1) == both.npos, what);
    return {both.substr(0, blank), both.substr(blank + 1)};
  }

  std::unique_ptr<Tokenizer> read_words() const {
    require(entry(tree_, "normalizer") == Json(word_level_normalizer()),
            "a normalizer that replaces line breaks by ' <eos> '");
    require(entry(tree_, "pre_tokenizer") == Json(word_level_split()),
            "a pre_tokenizer that splits at the blanks of ASCII, as `lagwise data "
            "language --tokens word` writes it");
    need_null("post_processor");
    require(added().empty(), "no added_tokens beside words");
    require(entry(tree_["model"], "unk_token") == "<unk>", "model.unk_token '<unk>'");
    return made([&] { return std::make_unique<WordLevel>(tokens()); });
  }

  template <class Make>
  std::unique_ptr<Tokenizer> made(const Make& make) const {
    try {
      return make();
    } catch (const std::invalid_argument& error) {
      fail("a tokenizer that holds together: " + std::string(error.what()));
    }
  }

  const std::string& file_;
  const Json& tree_;
};

}  // namespace

std::unique_ptr<Tokenizer> parse_tokenizer(const std::string& file, Bytes text) {
  const JsonLimits limits{
      .depth = 8, .values = 4000000, .key_bytes = 65536, .fractions = true};
  return TokenizerReader(file, parse_strict_json(file, 0, text, limits)).read();
}

}  // namespace lagwise::data
