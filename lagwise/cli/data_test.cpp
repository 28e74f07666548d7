// `lagwise data` as a user meets it: what it writes, what it prints, what it refuses.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lagwise/cli/testing_program.h"
#include "lagwise/cli/verbs.h"
#include "lagwise/data/sets/new_folder.h"
#include "lagwise/data/sources/listops_examples.h"
#include "lagwise/data/testing_files.h"
#include "lagwise/tasks/testing_tasks.h"

namespace lagwise::cli {
namespace {

using ::testing::HasSubstr;
using namespace lagwise::testing;
namespace fs = std::filesystem;

struct Data : ::testing::Test {
  const TempFolder folder;
  const std::string set = folder / "set";
  std::string said;

  void expect_failure(const std::vector<std::string>& words, int code,
                      const std::string& part) {
    cli::expect_failure(lagwise(words), code, part);
    EXPECT_FALSE(fs::exists(set));
    EXPECT_FALSE(fs::exists(set + ".tmp"));
  }
  void make(std::vector<std::string> words) {
    words.insert(words.begin(), "data");
    words.insert(words.end(), {"--out", set});
    const Outcome outcome = lagwise(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    EXPECT_THAT(outcome.out, HasSubstr("hash "));
    said = outcome.out;
    EXPECT_NO_THROW(data::ShardSet{set});
  }
};

const std::vector<std::string> kSmallListops = {
    "listops", "--train",       "30", "--valid",        "4", "--test", "5", "--seed",
    "3",       "--longer-than", "10", "--shorter-than", "60"};

TEST_F(Data, ListsWhatItCanPrepare) {
  const Outcome outcome = lagwise({"data"});
  EXPECT_EQ(outcome.code, 0);
  for (const char* name : {"harmonise", "images", "language", "listops", "pairs",
                           "pathfinder", "retrieval", "text", "look"})
    EXPECT_THAT(outcome.out, HasSubstr(std::string(name) + " "));
  EXPECT_THAT(lagwise({"data", "listops", "--help"}).out, HasSubstr("--shorter-than"));
}

TEST_F(Data, MakesListopsThatTrainingReads) {
  make(kSmallListops);
  EXPECT_THAT(said, HasSubstr("scheme listops, 16 words, 10 classes"));
  const auto task = make_task({.task = "listops", .path = set, .length = 60});
  EXPECT_EQ(task->size("train"), 30);
  EXPECT_EQ(task->size("valid"), 4);
  EXPECT_EQ(task->size("test"), 5);
  const std::string first = contents(set + "/train.bin");
  make(kSmallListops);  // over the earlier one
  EXPECT_EQ(contents(set + "/train.bin"), first);
}

TEST_F(Data, MakesTheArenasTablesWithTheSameRows) {
  make(kSmallListops);
  const auto direct = make_task({.task = "listops", .path = set, .length = 60});
  std::vector<std::string> words = kSmallListops;
  words.insert(words.begin(), "data");
  words.insert(words.end(), {"--tsv", "--out", folder / "tsv"});
  EXPECT_EQ(lagwise(words).code, 0);
  EXPECT_TRUE(contents(folder / "tsv/basic_val.tsv").starts_with("Source\tTarget\r\n"));
  fs::remove_all(set);
  make({"listops", folder / "tsv"});
  EXPECT_EQ(make_task({.task = "listops", .path = set, .length = 60})->hash(),
            direct->hash());
}

TEST_F(Data, PreparesTextForLanguageAndClasses) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += std::to_string(i) + " ";
  put(folder / "a.txt", text);
  make({"language", folder / "a.txt", "--valid", "0.1"});
  const TaskConfig raw{
      .task = "language:valid=0.1", .path = folder / "a.txt", .length = 32};
  TaskConfig prepared{.task = "language", .path = set, .length = 32};
  EXPECT_EQ(make_task(raw)->stream("valid", 0, 500),
            make_task(prepared)->stream("valid", 0, 500));

  put(folder / "t.tsv", "text\tlabel\nfine\t2\nbad\t0\n");
  make({"text", folder / "t.tsv", "--valid", "0", "--test", "0"});
  ModelConfig shape;
  prepared.task = "text";
  make_task(prepared)->shape(shape);
  EXPECT_EQ(shape.classes, 2);
  EXPECT_EQ(make_task(prepared)->class_names(), (std::vector<std::string>{"0", "2"}));
  EXPECT_THAT(said, HasSubstr("256 words, 2 classes"));
}

TEST_F(Data, KeepsDocumentsApart) {
  for (const char* split : {"train", "valid"})
    for (const char* name : {"a", "b", "c"})
      put(folder / (std::string("books/") + split + "/" + name + ".txt"),
          std::string(40, name[0]));
  make({"language", folder / "books", "--documents"});
  const data::ShardSet documents(set);
  ASSERT_EQ(documents.split("valid").sequences(), 3);
  EXPECT_EQ(documents.split("valid").length(1), 40);
  make({"language", folder / "books", "--documents", "--tokens", "bpe:300"});
  EXPECT_EQ(data::ShardSet(set).split("train").sequences(), 3);
  // Pairs of pairs: forty times the same letter are three tokens.
  EXPECT_EQ(make_task({.task = "language", .path = set, .length = 2})->tokenizer(),
            contents(set + "/tokenizer.json"));
}

TEST_F(Data, KeepsTheWordsOfWikitext) {
  put(folder / "w/wiki.train.tokens", " one two three \n");
  put(folder / "w/wiki.valid.tokens", " one two \n");
  make({"language", folder / "w"});
  EXPECT_EQ(data::ShardSet(set).manifest().info.at("words_valid"), "3");
  EXPECT_EQ(data::ShardSet(set).manifest().info.at("words_train"), "4");
}

TEST_F(Data, PreparesTextInPiecesOfWordsAndInWords) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += "the cat sat on the mat\n";
  put(folder / "a.txt", text);
  const TaskConfig config{.task = "language", .path = set, .length = 16};
  make({"language", folder / "a.txt", "--tokens", "bpe:270"});
  EXPECT_THAT(said, HasSubstr("tokenizer.json: bpe, "));
  const auto pieces = make_task(config);
  EXPECT_EQ(pieces->decode(pieces->stream("train", 0, 12)).substr(0, 22),
            text.substr(0, 22));
  EXPECT_THAT(pieces->tokenizer(), HasSubstr("ByteLevel"));

  const std::string first = contents(set + "/tokenizer.json");
  put(folder / "kept.json", first);
  make({"language", folder / "a.txt", "--tokenizer", folder / "kept.json"});
  EXPECT_EQ(contents(set + "/tokenizer.json"), first);
  EXPECT_EQ(make_task(config)->hash(), pieces->hash());

  make({"language", folder / "a.txt", "--tokens", "word:6"});
  EXPECT_THAT(said, HasSubstr("tokenizer.json: word, 6 tokens\n"));
  EXPECT_THAT(said, HasSubstr("% unknown"));
  EXPECT_EQ(make_task(config)->decode({1}), " \n");
}

TEST_F(Data, PreparesLabelledTextInPiecesOfWords) {
  put(folder / "t.csv", "text,label\nthe cat sat,1\nthe cat ran,0\nthe cat,1\n");
  make(
      {"text", folder / "t.csv", "--tokens", "bpe:262", "--valid", "0", "--test", "0"});
  EXPECT_THAT(said, HasSubstr("scheme text, 261 words, 2 classes"));
  const auto task = make_task({.task = "text", .path = set, .length = 16});
  EXPECT_THAT(task->tokenizer(), HasSubstr("ByteLevel"));
  EXPECT_LT(task->eval_batch("train", 2, 3).tokens.size(1), 7);
  cli::expect_failure(lagwise({"data", "text", folder / "t.csv", "--tokens", "bpe:262",
                               "--tokenizer", set, "--out", folder / "other"}),
                      2, "--tokenizer excludes --tokens");
}

TEST_F(Data, SaysThatThereIsNoSplitToValidateOn) {
  for (const char* name : {"a.txt", "b.txt", "c.txt"})
    put(folder / "texts/" + name, std::string(100, name[0]));
  make({"retrieval", folder / "texts", "--length", "10", "--train", "5"});
  EXPECT_THAT(said, HasSubstr("\nno split valid: there is too little data for one, or "
                              "none was asked for; training will evaluate nothing\n"));
  make(kSmallListops);
  EXPECT_THAT(said, ::testing::Not(HasSubstr("no split valid")));
}

TEST_F(Data, PreparesChorales) {
  put(folder / "c.json", R"({"train": [[[74, 70, 65, 58], [74, 70, -1, 58]]]})");
  make({"harmonise", folder / "c.json"});
  EXPECT_EQ(make_task({.task = "harmonise", .path = set, .length = 6})->size("train"),
            1);
}

TEST_F(Data, MakesPathfinder) {
  make({"pathfinder", "--train", "3", "--valid", "1", "--test", "1", "--contour", "6",
        "--patch", "4"});
  const auto task = make_task({.task = "pathfinder:patch=4", .path = set});
  EXPECT_EQ(task->size("train"), 3);
  EXPECT_EQ(task->eval_batch("test", 0, 1).tokens.size(1), 1024);
}

TEST_F(Data, PreparesPairs) {
  put(folder / "p.tsv", "1\ta\tb\tone\ttwo\n0\ta\tb\tx\ty\n");
  make({"retrieval", folder / "p.tsv"});
  const auto task = make_task({.task = "retrieval", .path = set});
  EXPECT_EQ(task->size("train"), 2);
  EXPECT_EQ(task->eval_batch("train", 0, 2).source.size(1), 3);
}

TEST_F(Data, PreparesPairsInTheTokensOfATokenizer) {
  put(folder / "a.txt", "one two one two one two three");
  make({"language", folder / "a.txt", "--tokens", "word", "--valid", "0", "--test",
        "0"});
  put(folder / "words.json", contents(set + "/tokenizer.json"));
  std::filesystem::remove_all(set);
  put(folder / "p.tsv", "1\ta\tb\tone two\ttwo two one\n0\ta\tb\tthree\tone\n");
  make({"retrieval", folder / "p.tsv", "--tokenizer", folder / "words.json"});
  const auto task = make_task({.task = "retrieval", .path = set});
  ModelConfig shape;
  task->shape(shape);
  EXPECT_LT(shape.vocabulary, 10);
  EXPECT_THAT(task->tokenizer(), HasSubstr("three"));
  const Batch batch = task->eval_batch("train", 0, 2);
  EXPECT_EQ(row_of(batch.tokens, batch.lengths, 0).size(), 2u);
  EXPECT_EQ(row_of(batch.source, batch.source_lengths, 0).size(), 3u);
  EXPECT_EQ(row_of(batch.tokens, batch.lengths, 0)[0],
            row_of(batch.source, batch.source_lengths, 0)[2]);
  // What `lagwise predict` reads, in the same tokens.
  const std::string line = "one two\ttwo two one\n";
  const auto asked = read_unlabelled("retrieval", "f.tsv", data::bytes_of(line), shape,
                                     task->tokenizer());
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_EQ(asked[0].first, row_of(batch.tokens, batch.lengths, 0));
  EXPECT_EQ(asked[0].second, row_of(batch.source, batch.source_lengths, 0));
}

TEST_F(Data, RefusesWhatIsWrongAndLeavesNothing) {
  expect_failure({"data", "listopps", "--out", set}, 2, "did you mean 'listops'?");
  expect_failure({"data", "listops"}, 2, "--out is required");
  expect_failure({"data", "language", "--out", set}, 2, "PATH is required");
  expect_failure({"data", "listops", "--out", set, "--train", "0"}, 2,
                 "--train: expected a whole number from 1 to 100000000, got '0'");
  expect_failure({"data", "listops", "--out", set, "--shorter-than", "3", "--max-depth",
                  "1", "--longer-than", "2"},
                 2, "");
  expect_failure({"data", "language", "x", "--out", set, "--valid", "0.7"}, 2,
                 "--valid: expected a fraction from 0 to below 0.5, got '0.7'");
  expect_failure({"data", "language", "x", "--out", set, "--tokens", "bpe"}, 2,
                 "--tokens: expected byte, bpe:N with N from 256 to 1000000, word or");
  expect_failure({"data", "images", folder.path(), "--out", set, "--patch", "x"}, 2,
                 "--patch: expected a whole number from 1 to 64, got 'x'");
}

TEST_F(Data, NamesDamagedFilesAndLeavesNothing) {
  expect_failure({"data", "language", folder / "none.txt", "--out", set}, 3,
                 "none.txt");
  put(folder / "empty.txt", "");
  expect_failure({"data", "language", folder / "empty.txt", "--out", set}, 3,
                 "empty.txt: expected text");
  put(folder / "l.jsonl", "{\"text\": \"fine\"}\n{\"txt\": \"no\"}\n");
  expect_failure({"data", "language", folder / "l.jsonl", "--out", set}, 3,
                 "l.jsonl, line 2, byte 17: expected a text at 'text'");
  put(folder / "a.txt", std::string(100, 'a'));
  put(folder / "tok.json", "{\"model\": {\"type\": \"Unigram\"}}");
  expect_failure({"data", "language", folder / "a.txt", "--out", set, "--tokenizer",
                  folder / "tok.json"},
                 3, "tok.json: expected model.type 'BPE' or 'WordLevel'");
  put(folder / "t.tsv", "text\tlabel\nfine\t1\nbad\n");
  expect_failure({"data", "text", folder / "t.tsv", "--out", set}, 3,
                 "t.tsv, row 3, byte 18: expected 2 fields as in the first row, got 1");
  expect_failure({"data", "images", folder.path(), "--out", set}, 3,
                 "data_batch_1.bin");
  put(folder / "c.json", "{\"train\": [[[74]]]}");
  expect_failure({"data", "harmonise", folder / "c.json", "--out", set}, 3, "c.json");
  put(folder / "rows.tsv", "3\t3\n4\t[NIM 2 ]\n");
  expect_failure({"data", "listops", folder / "rows.tsv", "--out", set}, 3,
                 "rows.tsv: expected ListOps in row 1");
}

TEST_F(Data, NamesFilesThatCannotBeRead) {
  fs::create_directories(folder / "a/train.csv");
  for (const char* task : {"text", "pairs"})
    expect_failure({"data", task, folder / "a", "--out", set}, 3,
                   "a/train.csv: expected a readable file, got a folder");
  fs::create_symlink("circle", folder / "circle");
  for (const char* task : {"text", "pairs", "language", "images", "listops",
                           "retrieval", "harmonise", "look"}) {
    const Outcome outcome =
        task == std::string("look")
            ? lagwise({"data", "look", folder / "circle"})
            : lagwise({"data", task, folder / "circle", "--out", set});
    cli::expect_failure(outcome, 3, "circle");
    EXPECT_THAT(outcome.err, HasSubstr(": expected a readable file: ")) << task;
  }
}

TEST_F(Data, KeepsTheEarlierSetWhenItFails) {
  make(kSmallListops);
  const std::string before = contents(set + "/train.bin");
  put(folder / "rows.tsv", "3\t3\n4\t[NIM 2 ]\n");
  EXPECT_EQ(lagwise({"data", "listops", folder / "rows.tsv", "--out", set}).code, 3);
  EXPECT_EQ(contents(set + "/train.bin"), before);
  EXPECT_NO_THROW(data::ShardSet{set});
}

TEST_F(Data, SaysWhichFilesItRead) {
  put(folder / "texts/b.txt", std::string(100, 'b'));
  put(folder / "texts/a/c.txt", std::string(100, 'c'));
  put(folder / "texts/readme.md", "not read");
  make({"language", folder / "texts"});
  EXPECT_THAT(said, ::testing::StartsWith("read 2 of 3 files: a/c.txt b.txt\n"));
}

TEST_F(Data, RefusesASecondWriterOfTheSameSet) {
  make(kSmallListops);
  const std::string before = contents(set + "/train.bin");
  const data::NewFolder first(set);
  const Outcome second = lagwise(
      {"data", "listops", "--train", "1", "--valid", "1", "--test", "1", "--out", set});
  EXPECT_EQ(second.code, 1);
  EXPECT_EQ(second.err, "lagwise: another process is writing " + set + "\n");
  EXPECT_EQ(contents(set + "/train.bin"), before);
  EXPECT_TRUE(fs::exists(first.path()));
}

TEST_F(Data, NeverReplacesAFolderOfSomethingElse) {
  put(folder / "mine/notes.txt", "precious");
  const Outcome outcome = lagwise({"data", "listops", "--out", folder / "mine"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("expected a new or empty folder"));
  EXPECT_EQ(contents(folder / "mine/notes.txt"), "precious");
}

}  // namespace
}  // namespace lagwise::cli
