#include "lagwise/data/sets/language_corpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lagwise/data/testing_files.h"
#include "lagwise/data/testing_gzip.h"
#include "lagwise/data/text/word_level.h"

namespace lagwise::data {
namespace {

using ::testing::HasSubstr;
using namespace lagwise::testing;

std::string all_of(const LanguageCorpus& corpus, const std::string& split) {
  std::vector<int64_t> tokens(static_cast<size_t>(corpus.split(split).size()));
  corpus.split(split).read(0, tokens);
  return {tokens.begin(), tokens.end()};
}

struct Corpus : ::testing::Test {
  const TempFolder folder;
};

TEST_F(Corpus, GivesTheEndOfAFileToTestAndWhatIsBeforeToValid) {
  put(folder / "a.txt", "0123456789");
  const LanguageCorpus corpus(folder / "a.txt", 0.2, 0.1);
  EXPECT_EQ(all_of(corpus, "train"), "0123456");
  EXPECT_EQ(all_of(corpus, "valid"), "78");
  EXPECT_EQ(all_of(corpus, "test"), "9");
}

TEST_F(Corpus, JoinsTheFilesOfAFolderAcrossTheSplits) {
  put(folder / "t/a.txt", "0123");
  put(folder / "t/b.txt", "");
  put(folder / "t/c.txt", "456789");
  const LanguageCorpus corpus(folder / "t", 0.2, 0.4);
  EXPECT_EQ(all_of(corpus, "train") + all_of(corpus, "valid") + all_of(corpus, "test"),
            "0123456789");
  EXPECT_EQ(all_of(corpus, "test"), "6789");
  EXPECT_EQ(corpus.files(),
            (std::vector<std::string>{folder / "t/a.txt", folder / "t/b.txt",
                                      folder / "t/c.txt"}));
  std::vector<int64_t> middle(2);
  LanguageCorpus whole(folder / "t", 0, 0);
  EXPECT_EQ(whole.splits(), std::vector<std::string>{"train"});
  whole.split("train").read(3, middle);
  EXPECT_EQ(middle, (std::vector<int64_t>{'3', '4'}));
  EXPECT_THROW(whole.split("train").read(9, middle), std::out_of_range);
}

TEST_F(Corpus, KnowsTheFilesOfWikitextAndTheirWords) {
  put(folder / "wiki.train.tokens", " one two \n\n");
  put(folder / "wiki.valid.tokens", " x \n");
  const LanguageCorpus corpus(folder.path(), 0.1, 0.1);
  EXPECT_EQ(corpus.splits(), (std::vector<std::string>{"train", "valid"}));
  EXPECT_EQ(corpus.words("train"), 4);
  EXPECT_EQ(corpus.words("valid"), 2);
  EXPECT_THROW(corpus.split("test"), std::invalid_argument);
}

TEST_F(Corpus, ValidatesOnTheEndOfWikitextsTrainWhereNothingElseIsThere) {
  put(folder / "wiki.train.tokens", "0123456789");
  put(folder / "wiki.test.tokens", "x");
  const LanguageCorpus corpus(folder.path(), 0.2, 0.1);
  EXPECT_EQ(all_of(corpus, "train"), "01234567");
  EXPECT_EQ(all_of(corpus, "valid"), "89");
  EXPECT_EQ(all_of(corpus, "test"), "x");
}

TEST_F(Corpus, KnowsFilesNamedForSplits) {
  put(folder / "train.txt", "abc");
  put(folder / "valid.txt", "de");
  const LanguageCorpus corpus(folder.path(), 0.1, 0.1);
  EXPECT_EQ(all_of(corpus, "train"), "abc");
  EXPECT_EQ(all_of(corpus, "valid"), "de");
  EXPECT_FALSE(corpus.has("test"));
  EXPECT_EQ(corpus.words("train"), 1);
  EXPECT_EQ(corpus.bytes("train"), 3);
}

TEST_F(Corpus, TrainsOnNothingOfTestWhereNoFileIsValid) {
  put(folder / "train.txt", "abcdefghij");
  put(folder / "test.txt", "xyz");
  const LanguageCorpus corpus(folder.path(), 0.2, 0.1);
  EXPECT_EQ(all_of(corpus, "train"), "abcdefgh");
  EXPECT_EQ(all_of(corpus, "valid"), "ij");
  EXPECT_EQ(all_of(corpus, "test"), "xyz");
  put(folder / "dev.txt", "v");
  const LanguageCorpus named(folder.path(), 0.2, 0.1);
  EXPECT_EQ(all_of(named, "train"), "abcdefghij");
  EXPECT_EQ(all_of(named, "valid"), "v");
  put(folder / "val.jsonl", "{\"text\": \"w\"}\n");
  EXPECT_THAT(data_error([&] { LanguageCorpus(folder.path(), 0.2, 0.1); }),
              ::testing::HasSubstr("expected one file for the split valid, got "));
}

TEST_F(Corpus, KnowsFoldersNamedForSplits) {
  put(folder / "train/b.txt", "cd");
  put(folder / "train/a.txt", "ab");
  put(folder / "dev/a.jsonl", "{\"text\": \"x\"}\n{\"text\": \"y\"}\n");
  put(folder / "notes.txt", "of no split");
  const LanguageCorpus corpus(folder.path(), 0.1, 0.1);
  EXPECT_EQ(all_of(corpus, "train"), "abcd");
  EXPECT_EQ(all_of(corpus, "valid"), "x\ny\n");
  EXPECT_FALSE(corpus.has("test"));
}

TEST_F(Corpus, LeavesAFolderWithTheNameOfASplitAloneWhereThereIsNoTrain) {
  put(folder / "a.txt", "0123456789");
  put(folder / "test/a.png", "no text");
  EXPECT_EQ(all_of(LanguageCorpus(folder.path(), 0, 0), "train"), "0123456789");
}

TEST_F(Corpus, GivesADocumentWholeToTheSplitOfItsMiddle) {
  put(folder / "t/a.txt", "0123");
  put(folder / "t/b.jsonl", "{\"text\": \"45\"}\n{\"text\": \"67\"}\n");
  const LanguageCorpus corpus(folder / "t", 0.3, 0.2);  // of ten bytes
  const auto documents = [&](const char* split) {
    std::vector<std::string> all;
    for (const Bytes one : corpus.documents(split)) all.emplace_back(text_of(one));
    return all;
  };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(all_of(corpus, "train"), "01234");
  EXPECT_EQ(documents("train"), (Texts{"0123"}));
  EXPECT_EQ(documents("valid"), (Texts{"45\n"}));
  EXPECT_EQ(documents("test"), (Texts{"67\n"}));
  EXPECT_FALSE(corpus.split("train").keeps_documents());
  EXPECT_EQ(corpus.split("train").longest(), 5);
}

TEST_F(Corpus, RefusesASetOfMoreThanBytes) {
  {
    ShardSetWriter writer(folder / "set", {"", "bytes", 1000, {}, {}});
    writer.add("train", std::vector<int32_t>{'a', 999});
    writer.commit();
  }
  EXPECT_THAT(data_error([&] { LanguageCorpus(folder / "set", 0, 0); }),
              HasSubstr("manifest.json: expected a vocabulary of 256 bytes, got 1000"));
}

TEST_F(Corpus, KeepsTheDocumentsOfASetApart) {
  const auto write = [&](std::map<std::string, std::string> info) {
    ShardSetWriter writer(folder / "set", {"", "bytes", 256, {}, std::move(info)});
    writer.add("train", std::vector<int32_t>(3, 'a'));
    writer.add("train", std::vector<int32_t>(5, 'b'));
    writer.commit();
  };
  write({});
  const LanguageCorpus joined(folder / "set", 0, 0);
  EXPECT_EQ(joined.split("train").documents(), (std::vector<Document>{{0, 8}}));
  write({{kDocumentsKept, "kept apart"}});
  const LanguageCorpus corpus(folder / "set", 0, 0);
  const TokenStream& text = corpus.split("train");
  EXPECT_EQ(text.documents(), (std::vector<Document>{{0, 3}, {3, 8}}));
  EXPECT_EQ(text.crop_ends(), (std::vector<int64_t>{3, 8}));
  EXPECT_EQ(text.longest(), 5);
  EXPECT_EQ(all_of(corpus, "train"), "aaabbbbb");
  EXPECT_NE(corpus.hash(), joined.hash());  // other windows are trained on
}

// Of documents that are too short to be judged nothing is counted.
TEST_F(Corpus, CountsTheDocumentsThatAreLongEnough) {
  const WordLevel words({"<unk>", "<eos>", "one"});
  put(folder / "set/tokenizer.json", words.json());
  ShardSetWriter writer(folder / "set", {"",
                                         "tokenizer",
                                         words.vocabulary(),
                                         {},
                                         {{"tokenizer", hash_text(words.hash())},
                                          {kDocumentsKept, "kept apart"},
                                          {"bytes_train", "999"}}});
  for (const char* line : {" one one \n", " one two one \n", "\n"})
    writer.add("train", words.encode(line));
  writer.commit();
  const LanguageCorpus corpus(folder / "set", 0, 0);
  const TextExtent longer = corpus.extent("train", 3);
  EXPECT_EQ(longer.tokens, 4);
  EXPECT_EQ(longer.words, 4);
  EXPECT_EQ(longer.unknown, 1);
  EXPECT_EQ(longer.bytes, std::ssize(std::string(" one <unk> one \n")));
  EXPECT_EQ(corpus.extent("train", 0).tokens, 3 + 4 + 1);
}

TEST_F(Corpus, ReadsJsonLinesAndPackedFiles) {
  put(folder / "train.jsonl", "{\"text\": \"one\"}\n{\"text\": \"two\"}\n");
  put(folder / "valid.txt.gz", gzip("three"));
  const LanguageCorpus corpus(folder.path(), 0.1, 0.1);
  EXPECT_EQ(all_of(corpus, "train"), "one\ntwo\n");
  EXPECT_EQ(all_of(corpus, "valid"), "three");
}

TEST_F(Corpus, ReadsAPreparedSet) {
  {
    ShardSetWriter writer(folder / "set",
                          {"", "bytes", 256, {}, {{"words_train", "9"}}});
    const std::vector<int32_t> ids = {104, 105, 255};
    writer.add("train", ids);
    writer.add("train", ids);
    writer.commit();
  }
  const LanguageCorpus corpus(folder / "set", 0.1, 0.1);
  EXPECT_EQ(all_of(corpus, "train"), "hi\xffhi\xff");
  EXPECT_EQ(corpus.words("train"), 9);
}

TEST_F(Corpus, ReadsASetWithItsTokenizer) {
  WordCount count;
  count.read("a b a c\n");
  const WordLevel words = count.words(4);
  const auto write = [&](const std::string& hash) {
    ShardSetWriter writer(folder / "set", {"",
                                           "tokenizer",
                                           words.vocabulary(),
                                           {},
                                           {{"tokenizer", hash},
                                            {"bytes_train", "8"},
                                            {"words_train", "5"},
                                            {"unknown_train", "1"}}});
    writer.add("train", words.encode("a b a c\n"));
    writer.commit();
  };
  put(folder / "set/tokenizer.json", words.json());
  write(hash_text(words.hash()));
  const LanguageCorpus corpus(folder / "set", 0.1, 0.1);
  EXPECT_EQ(corpus.split("train").size(), 5);
  EXPECT_EQ(corpus.bytes("train"), 8);
  EXPECT_EQ(corpus.words("train"), 5);
  EXPECT_EQ(corpus.unknown("train"), 1);
  EXPECT_EQ(corpus.vocabulary(), 4);
  ASSERT_NE(corpus.tokenizer(), nullptr);
  EXPECT_EQ(corpus.tokenizer()->json(), words.json());
  write("0123456789abcdef");
  EXPECT_THAT(data_error([&] { LanguageCorpus(folder / "set", 0.1, 0.1); }),
              HasSubstr("tokenizer.json: expected the tokenizer that the set was made "
                        "with"));
}

TEST_F(Corpus, HasAHashThatSeesTheSplits) {
  put(folder / "a.txt", "0123456789");
  const LanguageCorpus one(folder / "a.txt", 0.2, 0.1), two(folder / "a.txt", 0.2, 0.1),
      other(folder / "a.txt", 0.1, 0.1);
  EXPECT_EQ(one.hash(), two.hash());
  EXPECT_NE(one.hash(), other.hash());
}

TEST_F(Corpus, NamesWhatIsMissingEmptyOrOfAnotherKind) {
  const auto open = [&](const std::string& path) { LanguageCorpus(path, 0.1, 0.1); };
  EXPECT_THAT(data_error([&] { open(folder / "no.txt"); }), HasSubstr("no.txt"));
  put(folder / "empty.txt", "");
  EXPECT_THAT(data_error([&] { open(folder / "empty.txt"); }),
              HasSubstr("empty.txt: expected text"));
  EXPECT_THAT(data_error([&] { open(folder.path()); }),
              HasSubstr(": expected text in .txt or .jsonl files"));
  put(folder / "w/wiki.train.tokens", "");
  EXPECT_THAT(data_error([&] { open(folder / "w"); }),
              HasSubstr("expected text in the split train, got none"));
  put(folder / "tiny.txt", "ab");
  EXPECT_THAT(data_error([&] { open(folder / "tiny.txt"); }),
              HasSubstr("expected text in the split"));
  { ShardSetWriter(folder / "music", {"", "remi", 332, {}, {}}).commit(); }
  EXPECT_THAT(data_error([&] { open(folder / "music"); }),
              HasSubstr("expected a set of scheme 'bytes' or 'tokenizer', got 'remi'"));
}

}  // namespace
}  // namespace lagwise::data
