// How a batch is cut into sequences, and what is refused. That attention keeps to them
// is tested with each attention.

#include "lagwise/ops/torch/sequences.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace lagwise::ops {
namespace {

using Rows = std::vector<std::array<int64_t, 5>>;

at::Tensor numbers(const std::vector<int64_t>& x) { return at::tensor(x, at::kLong); }

at::Tensor meta(int64_t count) {
  return at::empty({count}, at::TensorOptions(at::kMeta).dtype(at::kLong));
}

Rows cut(const BatchShape& batch, const Ragged& ragged) {
  Rows rows;
  for (const Sequence& x : read_sequences("op", batch, ragged).each)
    rows.push_back({x.row, x.query_begin, x.queries, x.key_begin, x.keys});
  return rows;
}

// Two rows of four queries and six keys; as many; all in one row.
constexpr BatchShape kCross{2, 4, 6, false}, kSquare{2, 4, 4, true};
constexpr BatchShape kOneRow{1, 4, 6, false}, kOneSquare{1, 4, 4, true};

TEST(Sequences, AreTheBatchRowsUnlessCut) {
  EXPECT_EQ(cut(kCross, {}), (Rows{{0, 0, 4, 0, 6}, {1, 0, 4, 0, 6}}));
  EXPECT_FALSE(read_sequences("op", kCross, {}).ragged);
}

TEST(Sequences, ArePaddedByLengths) {
  EXPECT_EQ(cut(kSquare, {numbers({3, 0}), {}, {}, {}}),
            (Rows{{0, 0, 3, 0, 3}, {1, 0, 0, 0, 0}}));
  EXPECT_EQ(cut(kCross, {numbers({3, 0}), numbers({5, 6}), {}, {}}),
            (Rows{{0, 0, 3, 0, 5}, {1, 0, 0, 0, 6}}));
  EXPECT_TRUE(read_sequences("op", kSquare, {numbers({4, 4}), {}, {}, {}}).ragged);
}

TEST(Sequences, HaveEveryQueryWithLengthsOfKeysAlone) {
  EXPECT_EQ(cut(kCross, {{}, numbers({0, 5}).to(at::kInt), {}, {}}),
            (Rows{{0, 0, 4, 0, 0}, {1, 0, 4, 0, 5}}));
  EXPECT_TRUE(read_sequences("op", kCross, {{}, numbers({0, 5}), {}, {}}).ragged);
}

TEST(Sequences, BeginAtTheirStarts) {
  EXPECT_EQ(cut(kSquare, {.starts = numbers({3, 0})}),
            (Rows{{0, 3, 1, 3, 1}, {1, 0, 4, 0, 4}}));
  EXPECT_EQ(cut(kSquare, {.lengths = numbers({2, 0}), .starts = numbers({1, 4})}),
            (Rows{{0, 1, 2, 1, 2}, {1, 4, 0, 4, 0}}));
  EXPECT_EQ(cut(kCross, {.starts = numbers({1, 2}), .key_starts = numbers({6, 5})}),
            (Rows{{0, 1, 3, 6, 0}, {1, 2, 2, 5, 1}}));
  EXPECT_EQ(
      cut(kCross, {.key_lengths = numbers({2, 1}), .key_starts = numbers({3, 5})}),
      (Rows{{0, 0, 4, 3, 2}, {1, 0, 4, 5, 1}}));
  EXPECT_TRUE(read_sequences("op", kSquare, {.starts = numbers({0, 0})}).ragged);
}

TEST(Sequences, ArePackedByCuts) {
  EXPECT_EQ(cut(kOneSquare, {{}, {}, numbers({0, 1, 1, 4}), {}}),
            (Rows{{0, 0, 1, 0, 1}, {0, 1, 0, 1, 0}, {0, 1, 3, 1, 3}}));
  EXPECT_EQ(cut(kOneRow, {{}, {}, numbers({0, 3, 4}), numbers({0, 0, 6})}),
            (Rows{{0, 0, 3, 0, 0}, {0, 3, 1, 0, 6}}));
  EXPECT_FALSE(read_sequences("op", kOneSquare, {{}, {}, numbers({0, 4}), {}}).ragged);
}

void expect_refused(const BatchShape& batch, const Ragged& ragged,
                    const std::string& line) {
  std::string said = "nothing was refused";
  try {
    read_sequences("op", batch, ragged);
  } catch (const c10::Error& error) {
    said = error.what_without_backtrace();
  }
  EXPECT_EQ(said, "op: expected " + line);
}

TEST(SequencesErrors, RefusesLengthsThatDoNotFit) {
  expect_refused(kSquare, {numbers({3}), {}, {}, {}}, "lengths [B] = [2], got [1]");
  expect_refused(kSquare, {numbers({3, 5}), {}, {}, {}}, "lengths from 0 to 4, got 5");
  expect_refused(kCross, {{}, numbers({-1, 5}), {}, {}},
                 "key_lengths from 0 to 6, got -1");
  expect_refused(kSquare, {numbers({3, 4}).to(at::kFloat), {}, {}, {}},
                 "lengths of whole numbers, Long or Int, got Float");
  expect_refused(kSquare, {meta(2), {}, {}, {}}, "lengths on the CPU, got meta");
}

TEST(SequencesErrors, RefusesStartsThatDoNotFit) {
  expect_refused(kSquare, {.starts = numbers({3})}, "starts [B] = [2], got [1]");
  expect_refused(kSquare, {.starts = numbers({3, 5})}, "starts from 0 to 4, got 5");
  expect_refused(kSquare, {.lengths = numbers({2, 4}), .starts = numbers({2, 1})},
                 "starts + lengths of at most 4, got 1 + 4");
  expect_refused(kSquare, {.key_starts = numbers({1, 2})},
                 "no key_starts in causal attention, where queries and keys are one "
                 "sequence");
  expect_refused(kCross, {.starts = numbers({1, 2})},
                 "key_starts with starts where N = 4 differs from M = 6");
  expect_refused(kOneSquare, {.cu_seqlens = numbers({0, 4}), .starts = numbers({0})},
                 "starts or lengths (padded) or cu_seqlens (packed), got both");
}

TEST(SequencesErrors, RefusesCutsThatDoNotFit) {
  expect_refused(kOneSquare, {{}, {}, numbers({0, 3, 2, 4}), {}},
                 "cu_seqlens that never falls, got 3 before 2");
  expect_refused(kOneSquare, {{}, {}, numbers({0, 3}), {}},
                 "cu_seqlens from 0 to 4, got [0, 3]");
  expect_refused(kOneSquare, {{}, {}, numbers({}), {}}, "cu_seqlens [S + 1], got [0]");
  expect_refused(kOneRow, {{}, {}, numbers({0, 4}), numbers({0, 1, 6})},
                 "key_cu_seqlens of as many sequences as cu_seqlens, 1, got 2");
  expect_refused(kSquare, {{}, {}, numbers({0, 4}), {}},
                 "B = 1 with cu_seqlens, got 2");
}

TEST(SequencesErrors, RefusesKeysThatAreNotCutAsTheyMustBe) {
  const std::string one =
      " in causal attention, where queries and keys are one sequence";
  expect_refused(kSquare, {{}, numbers({3, 4}), {}, {}}, "no key_lengths" + one);
  expect_refused(kOneSquare, {{}, {}, numbers({0, 4}), numbers({0, 4})},
                 "no key_cu_seqlens" + one);
  expect_refused(kCross, {numbers({3, 4}), {}, {}, {}},
                 "key_lengths with lengths where N = 4 differs from M = 6");
  expect_refused(kOneRow, {{}, {}, {}, numbers({0, 6})},
                 "cu_seqlens with key_cu_seqlens, got none");
  expect_refused(kOneSquare, {numbers({4}), {}, numbers({0, 4}), {}},
                 "starts or lengths (padded) or cu_seqlens (packed), got both");
}

}  // namespace
}  // namespace lagwise::ops
