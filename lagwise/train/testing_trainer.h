#pragma once

// Support for the tests of training; never part of the library.

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "lagwise/core/errors.h"
#include "lagwise/data/testing_files.h"
#include "lagwise/train/testing_task.h"
#include "lagwise/train/trainer.h"

namespace lagwise::testing {

/// Whose splits are as the options say: valid=none is not there, valid=broken cannot be
/// read.
class OddlySplitTask : public CountingTask {
 public:
  OddlySplitTask(const TaskConfig& config, Spec& options)
      : CountingTask(config, options.take("examples", 20)),
        valid_(options.take("valid", "")) {}
  int64_t size(const std::string& split, int64_t length = 0) const override {
    if (valid_ == "none" && split == "valid")
      throw std::invalid_argument("no split 'valid'");
    return CountingTask::size(split, length);
  }
  Batch eval_batch(const std::string& split, int64_t begin, int64_t end,
                   int64_t length = 0) const override {
    if (valid_ == "broken" && break_evaluation) throw DataError("x", -1, "valid data");
    return CountingTask::eval_batch(split, begin, end, length);
  }
  static inline bool break_evaluation = true;

 private:
  std::string valid_;
};

/// A recipe of the task "counting", an OddlySplitTask: steps of a millisecond.
inline Recipe tiny() {
  Recipe recipe;
  recipe.data.task = "counting";
  recipe.data.length = 12;
  recipe.model.layers = 1, recipe.model.dim = 16, recipe.model.heads = 2;
  recipe.model.encoding = "sine_spe:realizations=4,sines=2";
  recipe.model.dropout = 0.1;
  recipe.train.steps = 30, recipe.train.batch = 4, recipe.train.accumulate = 2;
  recipe.train.warmup = 5, recipe.train.lr = 1e-2;
  recipe.train.eval_every = 8, recipe.train.checkpoint_every = 7;
  recipe.train.log_every = 3, recipe.train.threads = 1;
  return recipe;
}

/// Asks to stop after so many steps.
struct StopsAfter : TrainListener {
  explicit StopsAfter(int64_t step) : step(step) {}
  void stepped(const TrainingLine& line) override { stop = line.step >= step; }
  int64_t step;
  bool stop = false;
};

inline void train(const Recipe& recipe, const std::string& folder) {
  TrainListener nobody;
  Trainer(recipe, folder).run(nobody);
}

inline void train_until(const Recipe& recipe, const std::string& folder, int64_t step) {
  StopsAfter listener(step);
  TrainerOptions options;
  options.stop = [&] { return listener.stop; };
  Trainer trainer(recipe, folder, options);
  EXPECT_THROW(trainer.run(listener), Interrupted);
}

template <class Error, class Act>
std::string message(const Act& act) {
  try {
    act();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    return error.what();
  }
  return "(no error)";
}

inline std::string model_bytes(const std::string& folder, const std::string& step) {
  std::string bytes = contents(folder + "/checkpoints/" + step + "/model.safetensors");
  EXPECT_GT(bytes.size(), 1000u) << folder;
  return bytes;
}

inline std::vector<nlohmann::json> lines(const std::string& folder) {
  std::vector<nlohmann::json> all;
  std::ifstream in(folder + "/metrics.jsonl");
  for (std::string line; std::getline(in, line);)
    all.push_back(nlohmann::json::parse(line));
  return all;
}

}  // namespace lagwise::testing
