#include "lagwise/data/formats/fnv1a.h"
#include "lagwise/data/sources/text_examples.h"
#include "lagwise/data/text/word_level.h"
#include "lagwise/tasks/testing_tasks.h"

namespace lagwise {
namespace {

using ::testing::HasSubstr;
using namespace lagwise::testing;

struct TextTask : ::testing::Test {
  const TempFolder folder;
  TaskConfig config{.task = "text", .path = folder / "imdb", .length = 6};

  TextTask() {
    for (int i = 0; i < 20; ++i) {
      put(folder / ("imdb/train/neg/" + std::to_string(i) + "_1.txt"),
          "bad " + std::to_string(i * i * i));
      put(folder / ("imdb/train/pos/" + std::to_string(i) + "_9.txt"),
          "good" + std::to_string(i));
    }
    put(folder / "imdb/test/neg/0_2.txt", "x");
    put(folder / "imdb/test/pos/0_8.txt", "y");
  }
};

TEST_F(TextTask, KeepsThePromisesOfTasks) { expect_task_keeps_its_promises(config); }

TEST_F(TextTask, ReadsBytesCutAtTheLength) {
  const auto task = make_task(config);
  EXPECT_EQ(task->size("train"), 36);
  EXPECT_EQ(task->size("valid"), 4);
  EXPECT_EQ(task->size("test"), 2);
  const Batch batch = task->eval_batch("train", 8, 11);
  EXPECT_EQ(row_of(batch.tokens, batch.lengths, 0),
            (std::vector<int64_t>{'b', 'a', 'd', ' ', '5', '1'}));
  EXPECT_EQ(batch.targets[0].item<int64_t>(), 0);
  EXPECT_EQ(task->eval_batch("test", 1, 2).targets[0].item<int64_t>(), 1);
}

TEST_F(TextTask, CountsTheClassesOfATable) {
  put(folder / "t.tsv", "text\tlabel\na\t0\nb\t4\n");
  ModelConfig shape;
  const auto task = make_task({.task = "text", .path = folder / "t.tsv"});
  task->shape(shape);
  EXPECT_EQ(shape.classes, 2);
  EXPECT_EQ(task->class_names(), (std::vector<std::string>{"0", "4"}));
  EXPECT_EQ(shape.vocabulary, 256);
}

TEST_F(TextTask, ReadsAPreparedSet) {
  {
    data::ExampleWriter writer(folder / "set", {"", "text", 256, {}, {}}, {}, 2);
    data::read_text_examples({.path = config.path},
                             [&](const std::string& split, const data::Example& example,
                                 double) { writer.add(split, example); });
    writer.commit();
  }
  const auto raw = make_task(config);
  config.path = folder / "set";
  const auto set = make_task(config);
  expect_same_batch(raw->train_batch(1, 2, 9), set->train_batch(1, 2, 9));
}

/// A set of words, as `lagwise data text --tokenizer` makes it.
struct TextTaskInWords : TextTask {
  data::WordLevel words = [] {
    data::WordCount count;
    count.read("bad good");
    return count.words(0);
  }();

  TextTaskInWords() {
    put(folder / "words/tokenizer.json", words.json());
    data::ExampleWriter writer(folder / "words",
                               {"",
                                "text",
                                words.vocabulary(),
                                {},
                                {{"tokenizer", data::hash_text(words.hash())}}},
                               {}, 2);
    put(folder / "t.tsv", "text\tlabel\nbad bad film\tno\ngood\tyes\n");
    writer.note_classes(data::read_text_examples(
        {.path = folder / "t.tsv"},
        [&](const std::string&, const data::Example& example, double) {
          writer.add("train", data::encoded(words, example));
        }));
    writer.commit();
    config.path = folder / "words";
  }
};

TEST_F(TextTaskInWords, ReadsTokensAndKeepsTheTokenizer) {
  const auto task = make_task(config);
  ModelConfig shape;
  task->shape(shape);
  EXPECT_EQ(shape.vocabulary, words.vocabulary());
  EXPECT_EQ(task->tokenizer(), words.json());
  const Batch batch = task->eval_batch("train", 0, 2);
  const std::vector<int32_t> want = words.encode("bad bad film");
  EXPECT_EQ(row_of(batch.tokens, batch.lengths, 0),
            std::vector<int64_t>(want.begin(), want.end()));
  EXPECT_EQ(task->class_names(), (std::vector<std::string>{"no", "yes"}));
}

TEST_F(TextTaskInWords, ReadsWhatIsToBeClassifiedInTheSameTokens) {
  const auto task = make_task(config);
  const std::vector<Unlabelled> read = read_unlabelled(
      "text", "x.txt", data::bytes_of("good bad"), {}, task->tokenizer());
  ASSERT_EQ(read.size(), 1u);
  const std::vector<int32_t> want = words.encode("good bad");
  EXPECT_EQ(read[0].first, std::vector<int64_t>(want.begin(), want.end()));
}

TEST_F(TextTaskInWords, NoticesAnotherTokenizer) {
  data::WordCount other;
  other.read("something else");
  put(folder / "words/tokenizer.json", other.words(0).json());
  EXPECT_THAT(
      data_error([&] { make_task(config); }),
      HasSubstr("tokenizer.json: expected the tokenizer that the set was made"));
}

// A manifest that says what no text can have: before anything is made of it.
TEST_F(TextTask, RefusesSetsThatLieAboutTheirSizes) {
  const auto refused = [&](int64_t vocabulary, int64_t classes) {
    {
      data::ExampleWriter writer(folder / "lies", {"", "text", vocabulary, {}, {}}, {},
                                 classes);
      writer.add("train", {1, {'a'}, {}});
      writer.commit();
    }
    config.task = "text", config.path = folder / "lies";
    return data_error([&] { make_task(config); });
  };
  EXPECT_THAT(refused(1000, 2), HasSubstr("expected 256 as info.vocabulary, got 1000"));
  EXPECT_THAT(refused(256, INT32_MAX),
              HasSubstr("text: expected at most 65536 classes, got 2147483647"));
}

TEST_F(TextTask, RefusesBadOptionsAndFiles) {
  config.task = "text:valid=0.5";
  EXPECT_THAT(refusal([&] { make_task(config); }),
              HasSubstr("text: valid: expected a fraction from 0 to below 0.5"));
  put(folder / "imdb/train/neg/odd.txt", "x");
  config.task = "text";
  EXPECT_THAT(data_error([&] { make_task(config); }), HasSubstr("odd.txt"));
}

}  // namespace
}  // namespace lagwise
