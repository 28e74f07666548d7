#include "lagwise/core/errors.h"
#include "lagwise/data/sets/language_corpus.h"
#include "lagwise/data/sets/shards.h"
#include "lagwise/data/text/word_level.h"
#include "lagwise/tasks/testing_tasks.h"

namespace lagwise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace lagwise::testing;

using Tokens = std::vector<int64_t>;

struct LanguageTask : ::testing::Test {
  const TempFolder folder;
  TaskConfig config{
      .task = "language:valid=0.2,test=0.1", .path = folder / "a.txt", .length = 8};
  std::string text;

  LanguageTask() {
    for (int i = 0; i < 200; ++i) text += static_cast<char>('!' + i % 90);
    put(config.path, text);
  }
};

TEST_F(LanguageTask, KeepsThePromisesOfTasks) {
  expect_task_keeps_its_promises(config);
}

TEST_F(LanguageTask, AsksForTheNextByte) {
  const Batch batch = make_task(config)->train_batch(0, 0, 32);
  EXPECT_TRUE(at::equal(batch.tokens.slice(1, 1, 8), batch.targets.slice(1, 0, 7)));
  const auto train = text.substr(0, 140);
  for (int64_t i = 0; i < 32; ++i) {
    const Tokens row = row_of(batch.tokens, {}, i);
    EXPECT_THAT(train, HasSubstr(std::string(row.begin(), row.end())));
  }
}

TEST_F(LanguageTask, CropsFromEveryPlace) {
  const auto task = make_task(config);
  std::set<int64_t> first;
  for (int64_t step = 0; step < 200; ++step) {
    const Batch batch = task->train_batch(step, 0, 16);
    for (int64_t i = 0; i < 16; ++i) first.insert(batch.tokens[i][0].item<int64_t>());
  }
  EXPECT_EQ(first.size(), 90u);
}

TEST_F(LanguageTask, TrainsOnWindowsOfAnyLengthForAPast) {
  const auto task = make_task(config);
  expect_same_batch(task->train_windows(4, 1, 6, 8), task->train_batch(4, 1, 6));
  const Batch wide = task->train_windows(4, 1, 6, 32);
  EXPECT_EQ(wide.tokens.size(1), 32);
  EXPECT_TRUE(at::equal(wide.tokens.slice(1, 1), wide.targets.slice(1, 0, 31)));
  EXPECT_THAT(refusal([&] { task->train_windows(0, 0, 1, 140); }),
              HasSubstr("expected windows below the 140 bytes of the split train"));
}

TEST_F(LanguageTask, JudgesWindowsThatDoNotOverlap) {
  const auto task = make_task(config);
  ASSERT_EQ(task->size("valid"), 4);  // 40 bytes: the last window needs a 41st
  Tokens seen;
  for (int64_t i = 0; i < 4; ++i) {
    const Batch batch = task->eval_batch("valid", i, i + 1);
    const Tokens row = row_of(batch.targets, {}, 0);
    seen.insert(seen.end(), row.begin(), row.end());
  }
  EXPECT_EQ(std::string(seen.begin(), seen.end()), text.substr(141, 32));
  EXPECT_EQ(task->size("valid", 16), 2);
  EXPECT_EQ(task->eval_batch("valid", 1, 2, 16).tokens[0][0].item<int64_t>(),
            text[156]);
  EXPECT_EQ(task->size("valid", 100), 0);
}

TEST_F(LanguageTask, StreamsUntilTheSplitEnds) {
  const auto task = make_task(config);
  EXPECT_EQ(task->decode(task->stream("test", 0, 7)), text.substr(180, 7));
  EXPECT_EQ(task->decode(task->stream("test", 15, 100)), text.substr(195));
  EXPECT_TRUE(task->stream("test", 100, 5).empty());
}

TEST_F(LanguageTask, SpellsBytes) {
  const auto task = make_task(config);
  EXPECT_EQ(task->encode("a\xff"), (Tokens{97, 255}));
  EXPECT_EQ(task->decode({97, 255}), "a\xff");
  EXPECT_TRUE(task->words().empty());
}

TEST_F(LanguageTask, MeasuresBitsPerByteAndPerplexityPerWord) {
  const auto plain = make_task(config);
  EXPECT_NEAR(plain->value(loss_of(10 * std::log(2.0), 5, 0)), 2, 1e-12);
  EXPECT_EQ(plain->more("valid", loss_of(1, 1, 0)).size(), 1u);
  EXPECT_DOUBLE_EQ(plain->guess("valid").value(), 8);
  const std::string line = " one two three \n";  // 16 bytes, 4 words with the end
  put(folder / "w/wiki.train.tokens", line);
  put(folder / "w/wiki.valid.tokens", line + line);
  const auto wiki = make_task({.task = "language", .path = folder / "w", .length = 8});
  EXPECT_NEAR(wiki->more("valid", loss_of(5, 10, 0)).at("word perplexity"),
              std::exp(0.5 * 16 / 4), 1e-9);
}

TEST_F(LanguageTask, ReadsAPreparedSet) {
  {
    data::ShardSetWriter writer(folder / "set", {"", "bytes", 256, {}, {}});
    writer.add("train", std::vector<int32_t>(text.begin(), text.begin() + 140));
    writer.commit();
  }
  const auto raw = make_task(config);
  const auto set = make_task({.task = "language", .path = folder / "set", .length = 8});
  expect_same_batch(raw->train_batch(2, 1, 7), set->train_batch(2, 1, 7));
  EXPECT_THAT(
      refusal([&] {
        make_task({.task = "language:valid=0.1", .path = folder / "set", .length = 8});
      }),
      HasSubstr("language: unknown option 'valid'; it takes no options, for "));
}

/// Three documents: 20 times a, 5 times b, 30 times c, as `lagwise data language
/// --documents` makes a set of three files.
struct LanguageTaskOfDocuments : LanguageTask {
  LanguageTaskOfDocuments() {
    data::ShardSetWriter writer(
        folder / "set", {"", "bytes", 256, {}, {{data::kDocumentsKept, "kept apart"}}});
    for (const char* split : {"train", "valid"})
      for (const auto& [size, letter] : {std::pair{20, 'a'}, {5, 'b'}, {30, 'c'}})
        writer.add(split, std::vector<int32_t>(static_cast<size_t>(size), letter));
    writer.commit();
    config = {.task = "language", .path = folder / "set", .length = 8};
  }
};

TEST_F(LanguageTaskOfDocuments, KeepsThePromisesOfTasks) {
  expect_task_keeps_its_promises(config);
}

TEST_F(LanguageTaskOfDocuments, NoWindowLeavesItsDocument) {
  const auto task = make_task(config);
  const auto letters = [](const Batch& batch) {
    std::set<int64_t> seen;
    for (int64_t i = 0; i < batch.tokens.size(0); ++i) {
      Tokens row = row_of(batch.tokens, {}, i), next = row_of(batch.targets, {}, i);
      row.insert(row.end(), next.begin(), next.end());
      EXPECT_EQ(std::set<int64_t>(row.begin(), row.end()).size(), 1u);
      seen.insert(row[0]);
    }
    return seen;
  };
  EXPECT_EQ(letters(task->train_batch(0, 0, 64)), (std::set<int64_t>{'a', 'c'}));
  EXPECT_EQ(letters(task->train_windows(0, 0, 64, 24)), (std::set<int64_t>{'c'}));
  // 20 tokens hold two windows of 8 and the token after, 30 three, 5 none.
  ASSERT_EQ(task->size("valid"), 5);
  EXPECT_EQ(letters(task->eval_batch("valid", 0, 2)), (std::set<int64_t>{'a'}));
  EXPECT_EQ(letters(task->eval_batch("valid", 1, 5)), (std::set<int64_t>{'a', 'c'}));
  EXPECT_EQ(task->size("valid", 24), 1);
  EXPECT_EQ(task->stream("valid", 18, 8),
            (Tokens{'a', 'a', 'b', 'b', 'b', 'b', 'b', 'c'}));
}

TEST_F(LanguageTaskOfDocuments, TellsHowManyAreTooShort) {
  std::vector<std::string> told;
  config.tell = [&](const std::string& line) { told.push_back(line); };
  make_task(config);
  EXPECT_THAT(told, ElementsAre("left out: 1 of 3 documents of train, not longer than "
                                "data.length = 8 bytes",
                                HasSubstr("1 of 3 documents of valid")));
}

TEST_F(LanguageTaskOfDocuments, RefusesWindowsLongerThanAllOfThem) {
  EXPECT_THAT(refusal([&] { make_task(config)->train_windows(0, 0, 1, 30); }),
              HasSubstr("expected windows below the 30 bytes of the longest document "
                        "of the split train, got 30"));
  config.length = 30;
  EXPECT_THAT(refusal<DataError>([&] { make_task(config); }),
              HasSubstr("expected more than data.length = 30 bytes in the longest "
                        "document of the split train, got 30"));
}

/// A set of 240 words in 40 lines, as `lagwise data language --tokens word` makes it.
struct LanguageTaskInWords : LanguageTask {
  const std::string line = " one two three two one \n";  // 24 bytes, 6 words

  LanguageTaskInWords() {
    data::WordCount count;
    count.read(line);
    const data::WordLevel words = count.words(4);  // three is not among them
    std::string all;
    for (int i = 0; i < 40; ++i) all += line;
    put(folder / "words/tokenizer.json", words.json());
    data::ShardSetWriter writer(folder / "words",
                                {"",
                                 "tokenizer",
                                 words.vocabulary(),
                                 {},
                                 {{"tokenizer", data::hash_text(words.hash())},
                                  {"bytes_train", std::to_string(all.size())},
                                  {"words_train", "240"},
                                  {"unknown_train", "40"}}});
    writer.add("train", words.encode(all));
    writer.commit();
    config = {.task = "language", .path = folder / "words", .length = 8};
  }
};

TEST_F(LanguageTaskInWords, KeepsThePromisesOfTasks) {
  expect_task_keeps_its_promises(config);
}

TEST_F(LanguageTaskInWords, ReadsAndWritesThemWithAndWithoutTheData) {
  const auto task = make_task(config);
  EXPECT_EQ(task->encode("one two four"), (Tokens{2, 3, 0}));
  EXPECT_EQ(task->decode(task->stream("train", 0, 6)), " one two <unk> two one \n");
  const auto text = make_token_text("language", task->words(), task->tokenizer());
  EXPECT_EQ(text->encode("one two four"), (Tokens{2, 3, 0}));
  EXPECT_EQ(text->decode({2, 1}), " one \n");
}

TEST_F(LanguageTaskInWords, AreJudgedByTheTextTheyStandFor) {
  const auto task = make_task(config);
  EXPECT_EQ(task->metric(), "nats per token");
  EXPECT_DOUBLE_EQ(task->value(loss_of(12, 6, 0)), 2);
  ModelConfig shape;
  task->shape(shape);
  EXPECT_DOUBLE_EQ(task->guess("train").value(),
                   std::log(static_cast<double>(shape.vocabulary)));
  const auto more = task->more("train", loss_of(12, 6, 0));
  EXPECT_NEAR(more.at("word perplexity"), std::exp(2.0), 1e-9);  // a token is a word
  EXPECT_NEAR(more.at("bits per byte"), 2.0 * 6 / 24 / std::log(2.0), 1e-12);
  EXPECT_NEAR(more.at("unknown tokens"), 1.0 / 6, 1e-12);
}

TEST_F(LanguageTask, RefusesACorpusShorterThanItsWindows) {
  config.length = 20;
  EXPECT_THAT(data_error([&] { make_task(config); }),
              HasSubstr("a.txt: expected more than data.length = 20 bytes in the split "
                        "test, got 20"));
  put(folder / "empty.txt", "");
  config.path = folder / "empty.txt";
  EXPECT_THAT(data_error([&] { make_task(config); }),
              HasSubstr("empty.txt: expected text"));
}

}  // namespace
}  // namespace lagwise
