#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lagwise/data/music/grooves.h"
#include "lagwise/data/music/music_corpus.h"
#include "lagwise/data/testing_files.h"
#include "lagwise/tasks/task.h"
#include "lagwise/tasks/testing_tasks.h"

namespace lagwise {
namespace {

using namespace lagwise::testing;
using ::testing::HasSubstr;

std::unique_ptr<Task> music(const std::string& options, int64_t length = 32,
                            const std::string& path = "", uint64_t seed = 0) {
  return make_task({"music:styles=2,songs=10" + options, path, length, seed});
}

bool same(const Batch& a, const Batch& b) {
  return a.tokens.equal(b.tokens) && a.targets.equal(b.targets);
}

TEST(MusicTask, ShapesADecoderOverItsVocabulary) {
  const auto task = music("", 48);
  ModelConfig config;
  task->shape(config);
  EXPECT_EQ(config.model, "decoder_lm");
  EXPECT_EQ(config.vocabulary, 794);
  EXPECT_EQ(config.length, 48);
  EXPECT_EQ(task->words().size(), 794u);
  EXPECT_EQ(task->words()[0], "On_bass_0");
  EXPECT_EQ(task->metric(), "nats per token");
  EXPECT_DOUBLE_EQ(task->guess("test").value(), std::log(794));
  ASSERT_NE(task->music(), nullptr);
  EXPECT_TRUE(task->grammar()->legal(static_cast<int32_t>(task->encode("BOS")[0])));
}

TEST(MusicTask, TrainsOnFunctionsOfStepAndRow) {
  const auto task = music(",transpose=3");
  const Batch batch = task->train_batch(7, 0, 4);
  EXPECT_EQ(batch.tokens.sizes(), at::IntArrayRef({4, 32}));
  EXPECT_TRUE(same(batch, task->train_batch(7, 0, 4)));
  EXPECT_TRUE(same(batch, music(",transpose=3")->train_batch(7, 0, 4)));
  EXPECT_FALSE(same(batch, task->train_batch(8, 0, 4)));
  EXPECT_FALSE(same(batch, task->train_batch(7, 1, 4)));
  EXPECT_FALSE(same(batch, music(",transpose=3", 32, "", 1)->train_batch(7, 0, 4)));
  EXPECT_EQ(row_of(task->train_batch(7, 0, 9).tokens, {}, 3),
            row_of(batch.tokens, {}, 3));
  EXPECT_TRUE(batch.tokens.slice(1, 1).equal(batch.targets.slice(1, 0, 31)));
}

TEST(MusicTask, TrainsOnWholeWindowsOfAnyLengthForAPast) {
  const auto task = music(",transpose=3");
  const Batch wide = task->train_windows(7, 0, 4, 128);
  EXPECT_EQ(wide.tokens.sizes(), at::IntArrayRef({4, 128}));
  EXPECT_FALSE(wide.lengths.defined());
  EXPECT_TRUE(wide.tokens.slice(1, 1).equal(wide.targets.slice(1, 0, 127)));
  EXPECT_TRUE(same(wide, task->train_windows(7, 0, 4, 128)));
  EXPECT_THROW(task->train_windows(7, 0, 4, 1000000), std::invalid_argument);
}

TEST(MusicTask, CropsBeginWithABar) {
  const auto task = music(",bars=true");
  const data::MusicCorpus corpus = data::make_groove_corpus(2, 10, 1);
  std::set<std::vector<int64_t>> legal;
  for (const auto& piece : corpus.splits.at("train"))
    for (const int64_t bar : task->music()->bar_starts(piece))
      if (bar + 33 <= static_cast<int64_t>(piece.size()))
        legal.insert({piece.begin() + bar, piece.begin() + bar + 32});
  const Batch batch = task->train_batch(0, 0, 64);
  for (int64_t row = 0; row < 64; ++row)
    EXPECT_TRUE(legal.contains(row_of(batch.tokens, {}, row))) << row;
  // And without, elsewhere too.
  const Batch anywhere = music(",bars=false")->train_batch(0, 0, 64);
  int64_t within = 0;
  for (int64_t row = 0; row < 64; ++row)
    within += legal.contains(row_of(anywhere.tokens, {}, row));
  EXPECT_LT(within, 32);
}

TEST(MusicTask, TransposesTrainingAlone) {
  const auto plain = music(""), moved = music(",transpose=5");
  EXPECT_TRUE(same(plain->eval_batch("valid", 0, 4), moved->eval_batch("valid", 0, 4)));
  const at::Tensor a = plain->train_batch(3, 0, 32).tokens,
                   b = moved->train_batch(3, 0, 32).tokens;
  std::set<int64_t> shifts;
  for (int64_t row = 0; row < 32; ++row) {
    std::vector<int64_t> from = row_of(a, {}, row), to = row_of(b, {}, row);
    const at::Tensor gap = (b[row] - a[row]).unsqueeze(0);
    for (int64_t i = 0; i < gap.numel(); ++i) {
      const int64_t by = gap[0][i].item<int64_t>();
      EXPECT_LE(std::abs(by), 5);
      const bool pitched = from[i] < 768 && from[i] % 384 / 128 != 1;
      if (pitched)
        shifts.insert(by);
      else
        EXPECT_EQ(by, 0);
    }
  }
  EXPECT_GE(shifts.size(), 8u);
}

TEST(MusicTask, WindowsStayWithinPiecesAndDoNotOverlap) {
  const auto task = music(",bars=false", 100);
  const data::Pieces pieces = data::make_groove_corpus(2, 10, 1).splits.at("valid");
  ASSERT_EQ(pieces.size(), 1u);
  const int64_t count = task->size("valid", 0);
  EXPECT_EQ(count, static_cast<int64_t>(pieces[0].size() - 1) / 100);
  const Batch batch = task->eval_batch("valid", 0, count);
  EXPECT_FALSE(batch.lengths.defined());
  for (int64_t i = 0; i < count; ++i) {
    const auto at = pieces[0].begin() + 100 * i;
    EXPECT_EQ(row_of(batch.tokens, {}, i), std::vector<int64_t>(at, at + 100));
    EXPECT_EQ(row_of(batch.targets, {}, i), std::vector<int64_t>(at + 1, at + 101));
  }
  EXPECT_THROW(task->eval_batch("valid", 0, count + 1), std::invalid_argument);
  EXPECT_THROW(task->size("vlaid", 0), std::invalid_argument);
}

TEST(MusicTask, TakesTheFirstWindowOfEveryPieceFirst) {
  const auto task = make_task({"music:styles=2,songs=40", "", 64, 0});
  const int64_t bos = task->encode("BOS")[0];
  const Batch batch = task->eval_batch("test", 0, 8);  // 4 pieces
  for (int64_t i = 0; i < 8; ++i)
    EXPECT_EQ(batch.tokens[i][0].item<int64_t>() == bos, i < 4) << i;
}

TEST(MusicTask, PadsAShortPieceOnlyAtTheTrainingLength) {
  const TempFolder folder;
  const data::MusicCorpus corpus{
      "groove", "", {{"train", {{793, 1, 2, 3}}}, {"valid", {{793, 5, 6}, {793}}}}};
  data::write_music_set(folder / "set", corpus);
  const auto task = make_task({"music", folder / "set", 8, 0});
  const Batch train = task->train_batch(0, 0, 2);
  EXPECT_EQ(row_of(train.targets, {}, 0), (std::vector<int64_t>{1, 2, 3}));
  ASSERT_EQ(task->size("valid", 0), 1);
  EXPECT_EQ(row_of(task->eval_batch("valid", 0, 1).targets, {}, 0),
            (std::vector<int64_t>{5, 6}));
  EXPECT_EQ(task->size("valid", 16), 0);
  EXPECT_EQ(task->hash(), corpus.hash());
  EXPECT_NO_THROW(make_task({"music:scheme=groove", folder / "set", 8, 0}));
  try {
    make_task({"music:scheme=remi", folder / "set", 8, 0});
    FAIL() << "a scheme that the set does not have";
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("music: the set was prepared with scheme=groove; expected"));
  }
}

TEST(MusicTask, StreamsPiecesOneAfterTheOther) {
  const auto task = make_task({"music:styles=2,songs=20", "", 8, 0});
  const data::Pieces pieces = data::make_groove_corpus(2, 20, 1).splits.at("valid");
  std::vector<int64_t> all;
  for (const auto& piece : pieces) all.insert(all.end(), piece.begin(), piece.end());
  const auto size = static_cast<int64_t>(all.size());
  EXPECT_EQ(task->stream("valid", 0, size + 100), all);
  const int64_t seam = static_cast<int64_t>(pieces[0].size()) - 3;
  EXPECT_EQ(task->stream("valid", seam, 7),
            std::vector<int64_t>(all.begin() + seam, all.begin() + seam + 7));
  EXPECT_TRUE(task->stream("valid", size + 1, 5).empty());
}

TEST(MusicTask, SpeaksInWords) {
  const auto task = music("");
  const std::string text = "BOS On_drums_36 Shift_0_6 Off_drums_36";
  EXPECT_EQ(task->decode(task->encode(text)), text);
  EXPECT_THROW(task->encode("BOS Boom"), std::invalid_argument);
  EXPECT_TRUE(task->encode("").empty());
}

TEST(MusicTask, TakesAPromptFromAPieceOrAFile) {
  const auto task = music("");
  const std::vector<int32_t> piece =
      data::make_groove_corpus(2, 10, 1).splits.at("valid")[0];
  EXPECT_EQ(task->encode("valid:0"),
            std::vector<int64_t>(piece.begin(), piece.end() - 1));
  EXPECT_EQ(task->encode("valid:0:5"),
            std::vector<int64_t>(piece.begin(), piece.begin() + 5));
  const TempFolder folder;
  put(folder / "a.mid", data::smf_bytes(task->music()->decode(piece)));
  EXPECT_EQ(task->encode(folder / "a.mid"), task->encode("valid:0"));
  for (const char* const wrong : {"valid:1", "valid:-1", "valid:x", "valid:0:0",
                                  "valid:0 5", "valid:0:5x", "vali:0"})
    EXPECT_THROW(task->encode(wrong), std::invalid_argument) << wrong;
  EXPECT_THROW(task->encode(folder / "b.mid"), DataError);
}

TEST(MusicTask, CutsAPromptAfterBars) {
  for (const char* const scheme : {"groove", "remi"}) {
    SCOPED_TRACE(scheme);
    const auto task =
        make_task({.task = std::string("music:styles=2,songs=20,scheme=") + scheme,
                   .length = 64});
    const std::vector<int64_t> piece = task->encode("valid:0");
    const std::vector<int32_t> ids(piece.begin(), piece.end());
    const std::vector<int64_t> starts = task->music()->bar_starts(ids);
    EXPECT_EQ(task->first_bars(piece, 3), starts.at(3));  // every bar has notes
    EXPECT_EQ(task->first_bars(piece, 100000), std::ssize(piece));
  }
}

TEST(MusicTask, ReadsAFolderOfMidiFiles) {
  const TempFolder folder;
  for (int64_t i = 0; i < 2; ++i)
    put(folder / (i == 0 ? "train/a.mid" : "valid/b.mid"),
        data::smf_bytes(data::Grooves().song(i)));
  const auto task = make_task({"music:scheme=remi", folder.path(), 16, 0});
  ModelConfig config;
  task->shape(config);
  EXPECT_EQ(config.vocabulary, 332);
  EXPECT_EQ(task->decode(row_of(task->train_batch(0, 0, 1).tokens, {}, 0)).substr(0, 8),
            "Bar_None");
  EXPECT_TRUE(has_examples(*task, "valid"));
  std::filesystem::remove_all(folder / "valid");  // nothing to judge by will do
  EXPECT_FALSE(has_examples(*make_task({"music", folder.path(), 16, 0}), "valid"));
  std::filesystem::rename(folder / "train", folder / "valid");
  EXPECT_THAT(data_error([&] {
                make_task({"music", folder.path(), 16, 0});
              }),
              HasSubstr("expected pieces for the split train"));
}

TEST(MusicTask, RefusesOptionsItDoesNotKnow) {
  EXPECT_THROW(music(",transpose=13"), std::invalid_argument);
  EXPECT_THROW(music(",bar=true"), std::invalid_argument);
  EXPECT_THROW(music(",scheme=remmi"), std::invalid_argument);
}

}  // namespace
}  // namespace lagwise
