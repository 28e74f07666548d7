#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lagwise/core/spec.h"
#include "lagwise/models/model.h"

namespace lagwise {

/// What a task is made from: the [data] table of a recipe.
struct TaskConfig {
  std::string task;      ///< a row of the table of tasks
  std::string path;      ///< a file, a folder or a prepared set; empty: generated
  std::string options;   ///< "key=value,...": options of the task
  int64_t length = 512;  ///< tokens of a training window
  uint64_t seed = 0;     ///< of shuffling, cropping and generating
};

/// A data set and what to do with it. Batches are pure functions of what is asked:
/// that is what makes resuming exact.
class Task {
 public:
  virtual ~Task() = default;

  /// Fills in what the data decides: model, vocabulary, classes, grid.
  virtual void shape(ModelConfig& config) const = 0;

  virtual std::string metric() const = 0;  ///< "accuracy", "bits per byte", ...
  virtual bool higher_is_better() const { return false; }

  /// The training batch of one micro-step.
  virtual Batch train_batch(int64_t step, int64_t micro_step, int64_t size) const = 0;

  /// How many examples a split has (train, valid, test); std::invalid_argument lists
  /// the splits there are.
  virtual int64_t size(const std::string& split) const = 0;

  /// Examples [begin, end) of a split, in a fixed order. `length`: of a window, for
  /// tasks on streams; 0: that of training.
  virtual Batch eval_batch(const std::string& split, int64_t begin, int64_t end,
                           int64_t length = 0) const = 0;

  /// The metric from summed losses.
  virtual double value(const Loss& total) const;

  /// Tokens of a prompt, and text of tokens: for generation. Tasks that have none
  /// refuse with std::invalid_argument.
  virtual std::vector<int64_t> encode(const std::string& text) const;
  virtual std::string decode(const std::vector<int64_t>& tokens) const;

  /// Names of the tokens, saved with a model; empty: bytes.
  virtual std::vector<std::string> words() const { return {}; }
};

struct TaskRow {
  std::string_view name;
  std::string_view summary;
  std::string_view metric;
  std::unique_ptr<Task> (*make)(const TaskConfig& config, Spec& options);
};

struct RegisterTask {
  explicit RegisterTask(TaskRow row);
};

const std::vector<TaskRow>& tasks();

/// std::invalid_argument lists the legal names or options; DataError names the file.
std::unique_ptr<Task> make_task(const TaskConfig& config);

}  // namespace lagwise
