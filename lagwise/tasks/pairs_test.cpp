#include "lagwise/data/formats/atomic_file.h"
#include "lagwise/data/sets/language_corpus.h"
#include "lagwise/data/sources/pair_examples.h"
#include "lagwise/data/text/token_kind.h"
#include "lagwise/tasks/testing_tasks.h"

namespace lagwise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace lagwise::testing;

constexpr int64_t kMark = 256;  // of bytes

struct PairsTask : ::testing::Test {
  const TempFolder folder;
  TaskConfig config{.task = "pairs:valid=0.25,test=0", .path = folder / "a.tsv"};

  PairsTask() {
    std::string table = "source\ttarget\n";
    for (int i = 0; i < 16; ++i) {
      const std::string a(1 + static_cast<size_t>(i % 3), static_cast<char>('a' + i));
      table += a + "xy\tyx" + a + "\n";
    }
    put(config.path, table);
    config.length = 8;
  }

  /// The same pairs as a set, in tokens of a tokenizer or, without, in bytes.
  std::string prepared(const data::Tokenizer* tokenizer) const {
    const std::string set = folder / "set";
    data::ShardManifest manifest{"", data::kPairsScheme, 256, {}, {}};
    if (tokenizer) {
      manifest.vocabulary = tokenizer->vocabulary();
      manifest.info["tokenizer"] = data::hash_text(tokenizer->hash());
      std::filesystem::create_directories(set);
      data::replace_file(set + "/" + data::kTokenizerFile, tokenizer->json());
    }
    data::ExampleWriter writer(set, manifest, data::kPairsLayout);
    data::read_pairs({.path = folder / "a.tsv", .valid = 0.25, .test = 0},
                     [&](const data::Pair& pair) {
                       data::Example one = data::pair_example(pair);
                       if (tokenizer) one = data::encoded(*tokenizer, one);
                       writer.add(std::string(pair.split), one);
                     });
    writer.commit();
    return set;
  }
};

TEST_F(PairsTask, KeepsThePromisesOfTasks) {
  expect_task_keeps_its_promises(config);
  expect_task_keeps_its_promises({.task = "pairs:made=200", .length = 32});
}

TEST_F(PairsTask, PutsTheMarkBeforeAndBehindATarget) {
  const Batch batch = make_task(config)->eval_batch("valid", 0, 2);
  EXPECT_THAT(row_of(batch.source, batch.source_lengths, 0),
              ElementsAre('d', 'x', 'y'));
  EXPECT_THAT(row_of(batch.tokens, batch.lengths, 0),
              ElementsAre(kMark, 'y', 'x', 'd'));
  EXPECT_THAT(row_of(batch.targets, batch.lengths, 0),
              ElementsAre('y', 'x', 'd', kMark));
  EXPECT_THAT(row_of(batch.source, batch.source_lengths, 1),
              ElementsAre('e', 'e', 'x', 'y'));
  EXPECT_EQ(batch.targets[0][4].item<int64_t>(), -1);  // does not count
  ModelConfig shape;
  make_task(config)->shape(shape);
  EXPECT_EQ(shape.model, "encoder_decoder");
  EXPECT_EQ(shape.vocabulary, 257);
  EXPECT_EQ(shape.length, 8);
}

TEST_F(PairsTask, MeasuresTokens) {
  const auto task = make_task(config);
  EXPECT_EQ(task->value(loss_of(10, 40, 30)), 0.75);
  EXPECT_EQ(task->value(loss_of(0, 0, 0)), 0);
  EXPECT_TRUE(task->higher_is_better());
  EXPECT_EQ(task->size("train"), 12);
  EXPECT_EQ(task->size("valid"), 4);
  EXPECT_EQ(task->size("valid", 99), 4);
}

TEST_F(PairsTask, HearsAndWritesTextWithoutItsData) {
  const auto task = make_task(config);
  const auto text = make_token_text(config.task, {});
  for (const TokenText* one : {static_cast<const TokenText*>(task.get()),
                               static_cast<const TokenText*>(text.get())}) {
    EXPECT_THAT(one->encode("ab"), ElementsAre('a', 'b'));
    EXPECT_EQ(one->decode({'o', 'k', kMark}), "ok");
    EXPECT_EQ(one->begin(), kMark);
    EXPECT_EQ(one->end(), kMark);
    EXPECT_EQ(one->grammar(), nullptr);
  }
}

TEST_F(PairsTask, ReadsAPreparedSet) {
  const auto raw = make_task(config);
  config.task = "pairs", config.path = prepared(nullptr);
  expect_same_batch(raw->train_batch(1, 2, 9), make_task(config)->train_batch(1, 2, 9));
}

TEST_F(PairsTask, ReadsTheTokensOfATokenizer) {
  const auto tokenizer =
      data::learn_tokenizer(data::parse_token_kind("bpe:258"), [](const auto& take) {
        for (int i = 0; i < 9; ++i) take("xy yx");
      });
  config.task = "pairs", config.path = prepared(tokenizer.get());
  expect_task_keeps_its_promises(config);
  const auto task = make_task(config);
  ModelConfig shape;
  task->shape(shape);
  EXPECT_EQ(shape.vocabulary, tokenizer->vocabulary() + 1);
  EXPECT_EQ(task->end(), tokenizer->vocabulary());
  const Batch batch = task->eval_batch("valid", 0, 1);
  EXPECT_EQ(batch.source.size(1), 2);  // d, xy
  EXPECT_EQ(task->decode(row_of(batch.source, {}, 0)), "dxy");
  EXPECT_EQ(task->decode(row_of(batch.targets, {}, 0)), "yxd");
  const auto text = make_token_text("pairs", {}, task->tokenizer());
  EXPECT_EQ(text->encode("dxy"), row_of(batch.source, {}, 0));
  EXPECT_EQ(text->end(), task->end());
  const auto other = data::learn_tokenizer(data::parse_token_kind("bpe:256"),
                                           [](const auto& take) { take("xy"); });
  put(config.path + "/tokenizer.json", other->json());
  EXPECT_THAT(
      data_error([&] { make_task(config); }),
      HasSubstr("tokenizer.json: expected the tokenizer that the set was made"));
}

TEST_F(PairsTask, RefusesOrLeavesOutPairsThatAreTooLong) {
  config.length = 5;
  EXPECT_THAT(data_error([&] { make_task(config); }),
              HasSubstr("a.tsv, row 4: expected at most data.length = 5 bytes in a "
                        "source and 4 in a target, got 5 and 5; of train 4 of 12 pairs "
                        "are longer: data.length=6 takes them, pairs:long=leave leaves "
                        "them out"));
  config.task = "pairs:long=leave,valid=0.25,test=0";
  const auto task = make_task(config);
  EXPECT_EQ(task->size("train") + task->size("valid"), 11);
  for (int64_t step = 0; step < 20; ++step)
    EXPECT_LE(task->train_batch(step, 0, 4).tokens.size(1), 5);
  config.path = prepared(nullptr), config.task = "pairs";
  EXPECT_THAT(
      data_error([&] { make_task(config); }),
      HasSubstr("set, pair 2 of train: expected at most data.length = 5 bytes"));
  config.length = 2, config.task = "pairs:long=leave";
  EXPECT_THAT(data_error([&] { make_task(config); }),
              HasSubstr("set: expected pairs to train on of at most data.length = 2"));
}

TEST_F(PairsTask, RefusesBadOptionsAndSets) {
  config.task = "pairs:long=cut";
  EXPECT_THAT(
      refusal([&] { make_task(config); }),
      HasSubstr("pairs: option 'long' is 'cut', expected one of refuse, leave"));
  config.task = "pairs:valid=0.7";
  EXPECT_THAT(refusal([&] { make_task(config); }),
              HasSubstr("valid: expected a fract"));
  config.task = "pairs:source=body";
  EXPECT_THAT(data_error([&] { make_task(config); }),
              HasSubstr("a.tsv, row 1, byte 0: expected a header with a column named "
                        "'body'"));
  config.path = prepared(nullptr);
  EXPECT_THAT(refusal([&] { make_task(config); }),
              HasSubstr("pairs: unknown option 'source'; its options are long, for " +
                        config.path + " is prepared and has the others fixed"));
  {
    data::ExampleWriter writer(folder / "set", {"", data::kPairsScheme, 256, {}, {}},
                               data::kPairsLayout);
    writer.add("train", {0, {}, {1}});
    writer.commit();
  }
  config.task = "pairs";
  EXPECT_THAT(data_error([&] { make_task(config); }),
              HasSubstr("set, pair 0 of train: expected a source, got no token"));
}

}  // namespace
}  // namespace lagwise
