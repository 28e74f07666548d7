#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "lagwise/data/testing_files.h"
#include "lagwise/data/text/byte_pair_training.h"
#include "lagwise/data/text/word_level.h"

namespace lagwise::data {
namespace {

using ::testing::HasSubstr;
using namespace lagwise::testing;
using Json = nlohmann::ordered_json;

const std::string kText =
    "the cat sat on the mat, the cat's hat\n that the rat sat on\n";

std::unique_ptr<BytePairs> some_pairs() {
  BytePairTraining training;
  training.read(kText);
  return std::make_unique<BytePairs>(training.learn(280));
}

std::unique_ptr<Tokenizer> parsed(const std::string& text) {
  return parse_tokenizer("tokenizer.json", bytes_of(text));
}

TEST(TokenizerJson, ReadsWhatItWrites) {
  WordCount count;
  count.read(kText);
  const WordLevel words = count.words(0);
  const auto pairs = some_pairs();
  for (const Tokenizer* one : {static_cast<const Tokenizer*>(pairs.get()),
                               static_cast<const Tokenizer*>(&words)}) {
    const auto again = parsed(one->json());
    EXPECT_EQ(again->kind(), one->kind());
    EXPECT_EQ(again->json(), one->json());
    EXPECT_EQ(again->hash(), one->hash());
    EXPECT_EQ(again->encode(kText), one->encode(kText));
  }
}

TEST(TokenizerJson, TakesMergesAsPairsAndAddedTokensBesideTheVocabulary) {
  const auto pairs = some_pairs();
  Json tree = Json::parse(pairs->json());
  for (auto& merge : tree["model"]["merges"]) {
    const auto text = merge.get<std::string>();
    const size_t blank = text.find(' ');
    merge = {text.substr(0, blank), text.substr(blank + 1)};
  }
  tree["added_tokens"] = {
      {{"id", pairs->vocabulary()}, {"content", "[MASK]"}, {"special", true}}};
  const auto again = parsed(tree.dump());
  EXPECT_EQ(again->vocabulary(), pairs->vocabulary() + 1);
  EXPECT_EQ(again->encode(kText), pairs->encode(kText));
  const auto last = static_cast<int32_t>(pairs->vocabulary());
  EXPECT_EQ(again->encode("[MASK]").front(), last);
  EXPECT_EQ(again->decode(last), "[MASK]");
}

TEST(TokenizerJson, NamesWhatItDoesNotTake) {
  const Json good = Json::parse(some_pairs()->json());
  const auto complaint = [&](const auto& change) {
    Json tree = good;
    change(tree);
    return data_error([&] { parsed(tree.dump()); });
  };
  EXPECT_THAT(complaint([](Json& t) { t["model"]["type"] = "Unigram"; }),
              HasSubstr("tokenizer.json: expected model.type 'BPE' or 'WordLevel', got "
                        "'Unigram'"));
  EXPECT_THAT(complaint([](Json& t) {
                t["normalizer"] = {{"type", "NFC"}};
              }),
              HasSubstr("normalizer null"));
  EXPECT_THAT(complaint([](Json& t) { t["pre_tokenizer"]["type"] = "Metaspace"; }),
              HasSubstr("pre_tokenizer.type 'ByteLevel'"));
  EXPECT_THAT(complaint([](Json& t) { t["pre_tokenizer"]["add_prefix_space"] = true; }),
              HasSubstr("pre_tokenizer.add_prefix_space false"));
  // Left out, it counts as true for the library that writes these files.
  EXPECT_THAT(complaint([](Json& t) { t["pre_tokenizer"].erase("add_prefix_space"); }),
              HasSubstr("pre_tokenizer.add_prefix_space false"));
  EXPECT_THAT(complaint([](Json& t) { t["model"]["dropout"] = 0.1; }),
              HasSubstr("model.dropout null"));
  EXPECT_THAT(complaint([](Json& t) { t["model"]["unk_token"] = "?"; }),
              HasSubstr("model.unk_token null"));
  EXPECT_THAT(complaint([](Json& t) { t["model"]["merges"][3] = "a"; }),
              HasSubstr("two tokens in model.merges[3]"));
  EXPECT_THAT(complaint([](Json& t) { t["model"]["merges"][3] = "a nowhere"; }),
              HasSubstr("tokens of the vocabulary in model.merges[3]"));
  EXPECT_THAT(complaint([](Json& t) { t["model"]["vocab"]["a"] = 100000; }),
              HasSubstr("each once, got 100000"));
  EXPECT_THAT(complaint([](Json& t) { t["model"]["vocab"].erase("a"); }),
              HasSubstr("expected ids from 0 to"));
  EXPECT_THAT(complaint([](Json& t) { t["model"].erase("merges"); }),
              HasSubstr("a list at 'model.merges'"));
  EXPECT_THAT(complaint([](Json& t) { t = Json::array(); }), HasSubstr("an object"));
  EXPECT_THAT(data_error([] { parsed("{"); }), HasSubstr("tokenizer.json, byte"));
  EXPECT_THAT(data_error([] { load_tokenizer("nowhere.json"); }),
              HasSubstr("nowhere.json"));
}

TEST(TokenizerJson, TakesWordsInOneWayAlone) {
  Json tree = Json::parse(WordLevel({"<unk>", "<eos>", "a"}).json());
  tree["pre_tokenizer"] = {{"type", "Whitespace"}};
  EXPECT_THAT(data_error([&] { parsed(tree.dump()); }),
              HasSubstr("a pre_tokenizer that splits at the blanks of ASCII"));
}

}  // namespace
}  // namespace lagwise::data
