#pragma once

// Support for the tests of tasks; never part of the library.

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lagwise/data/testing_files.h"
#include "lagwise/models/model.h"
#include "lagwise/tasks/task.h"

namespace lagwise::testing {

/// Row `i` of a batch: tokens without padding.
inline std::vector<int64_t> row_of(const at::Tensor& tokens, const at::Tensor& lengths,
                                   int64_t i) {
  const int64_t many = lengths.defined() ? lengths[i].item<int64_t>() : tokens.size(1);
  const at::Tensor dense = tokens.contiguous();
  const int64_t* first = dense.data_ptr<int64_t>() + i * tokens.size(1);
  return {first, first + many};
}

inline bool same(const at::Tensor& a, const at::Tensor& b) {
  return a.defined() == b.defined() && (!a.defined() || at::equal(a, b));
}

inline void expect_same_batch(const Batch& a, const Batch& b) {
  EXPECT_TRUE(same(a.tokens, b.tokens));
  EXPECT_TRUE(same(a.lengths, b.lengths));
  EXPECT_TRUE(same(a.targets, b.targets));
  EXPECT_TRUE(same(a.source, b.source));
  EXPECT_TRUE(same(a.source_lengths, b.source_lengths));
}

/// What every task promises: batches are functions of step and micro-step; those
/// differ; a row is the same in a larger batch and in a
/// part of one; the model it shapes takes the batch.
inline void expect_task_keeps_its_promises(const TaskConfig& config) {
  const auto task = make_task(config), again = make_task(config);
  EXPECT_EQ(task->hash(), again->hash());
  expect_same_batch(task->train_batch(3, 1, 4), again->train_batch(3, 1, 4));
  const Batch few = task->train_batch(5, 0, 3), many = task->train_batch(5, 0, 8);
  for (int64_t i = 0; i < 3; ++i)
    EXPECT_EQ(row_of(few.tokens, few.lengths, i), row_of(many.tokens, many.lengths, i));
  const Batch part = task->train_batch(5, 0, Rows(2, 5));
  for (int64_t i = 2; i < 5; ++i)
    EXPECT_EQ(row_of(part.tokens, part.lengths, i - 2),
              row_of(many.tokens, many.lengths, i));
  const auto differs = [&](const Batch& other) {
    return !same(many.tokens, other.tokens) || !same(many.targets, other.targets);
  };
  EXPECT_TRUE(differs(task->train_batch(6, 0, 8)));
  EXPECT_TRUE(differs(task->train_batch(5, 1, 8)));
  TaskConfig reseeded = config;
  ++reseeded.seed;
  EXPECT_TRUE(differs(make_task(reseeded)->train_batch(5, 0, 8)));

  ModelConfig shape;
  shape.dim = 8, shape.heads = 2, shape.layers = 1;
  task->shape(shape);
  const auto model = make_model(shape);
  model->eval();
  for (const Batch& batch : {few, task->eval_batch("train", 0, 2)}) {
    const Loss loss = model->loss(batch, {});
    EXPECT_GT(loss.count, 0);
    EXPECT_TRUE(std::isfinite(task->value(loss)));
  }
  EXPECT_THROW(task->eval_batch("train", 0, task->size("train") + 1),
               std::invalid_argument);
  EXPECT_THROW(task->eval_batch("train", -1, 1), std::invalid_argument);
  EXPECT_THROW(task->size("nowhere"), std::invalid_argument);
}

inline Loss loss_of(double sum, int64_t count, int64_t right) {
  Loss loss;
  loss.sum = at::scalar_tensor(sum, at::kDouble);
  loss.count = count, loss.right = right;
  return loss;
}

/// The one-line message of the exception that `act` throws.
template <class Error = std::invalid_argument, class Act>
std::string refusal(const Act& act) {
  try {
    act();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    return error.what();
  }
  return "(nothing was refused)";
}

}  // namespace lagwise::testing
