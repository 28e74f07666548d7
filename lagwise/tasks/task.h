#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lagwise/core/spec.h"
#include "lagwise/data/formats/bytes.h"
#include "lagwise/models/batch.h"
#include "lagwise/models/model_config.h"
#include "lagwise/tasks/rows.h"
#include "lagwise/tasks/token_text.h"

namespace lagwise {

/// What a task is made from: the [data] table of a recipe.
struct TaskConfig {
  std::string task = "language";  ///< a row of the table of tasks, with its options:
                                  ///<   "images:patch=2"
  std::string path = {};  ///< a file, a folder or a prepared set; empty: generated
  int64_t length = 512;   ///< tokens of a training window
  uint64_t seed = 0;      ///< of shuffling, cropping and generating
  /// Is told what of the data was left out, a line each.
  std::function<void(const std::string& line)> tell = {};
};

/// What can be known of each target of some examples, in nats [B, N], by one who knows
/// how they were made.
struct IdealLosses {
  at::Tensor best;    ///< of the best predictor that sees only the tokens before
  at::Tensor source;  ///< of one that also knows what the tokens were drawn from
};

/// A data set and what to do with it. Batches are pure functions of what is asked:
/// that is what makes resuming exact.
class Task : public TokenText {
 public:
  /// Fills in what the data decides: model, vocabulary, classes, grid.
  virtual void shape(ModelConfig& config) const = 0;

  virtual std::string metric() const = 0;  ///< "accuracy", "bits per byte", ...
  virtual bool higher_is_better() const { return false; }

  /// Rows of the training batch of one micro-step: train_batch(step, 0, 16) is all of a
  /// batch of sixteen.
  virtual Batch train_batch(int64_t step, int64_t micro_step, Rows rows) const = 0;

  /// The same with windows of `length` tokens in place of the training length, every
  /// one whole: what training with a past reads (train/past.h). For tasks on streams;
  /// others refuse.
  virtual Batch train_windows(int64_t step, int64_t micro_step, Rows rows,
                              int64_t length) const;

  /// How many examples a split has (train, valid, test); std::invalid_argument lists
  /// the splits there are. For tasks on streams: windows of `length` (0: that of
  /// training) that do not overlap.
  virtual int64_t size(const std::string& split, int64_t length = 0) const = 0;

  /// Examples [begin, end) of a split, in a fixed order.
  virtual Batch eval_batch(const std::string& split, int64_t begin, int64_t end,
                           int64_t length = 0) const = 0;

  /// What can be known of the targets of eval_batch, for tasks that make their data by
  /// chance; nothing of others.
  virtual std::optional<IdealLosses> ideal(const std::string& split, int64_t begin,
                                           int64_t end, int64_t length = 0) const;

  /// Whether examples of another length are other examples, so that the metric at each
  /// length says what length costs, and not the loss along one long window.
  virtual bool judged_by_length() const { return false; }

  /// The metric from summed losses; `more`: further figures by name, such as the
  /// word-level perplexity of a corpus that defines words.
  virtual double value(const Loss& total) const = 0;
  virtual std::map<std::string, double> more(const std::string& split,
                                             const Loss& total) const;

  /// The metric of one who guesses blindly: of classes always the one most frequent in
  /// train, of tokens each as likely as any other. Nothing where nobody can say.
  virtual std::optional<double> guess(const std::string& split) const;

  /// `count` tokens in a row from `first` on, for tasks on streams: others refuse.
  /// Fewer where the split ends.
  virtual std::vector<int64_t> stream(const std::string& split, int64_t first,
                                      int64_t count) const;

  /// Names of the tokens, saved with a model; empty: bytes.
  virtual std::vector<std::string> words() const { return {}; }

  /// What its tokens stand for, as tokenizer.json has it; empty: it has none.
  virtual std::string tokenizer() const { return {}; }

  /// Names of the classes, saved with a model, for tasks that have some.
  virtual std::vector<std::string> class_names() const { return {}; }

  /// Identifies the data, to notice that a run is resumed on other data.
  virtual uint64_t hash() const = 0;
};

/// Something without a label, to be classified.
struct Unlabelled {
  std::string name;                  ///< a file, and the row in it
  std::vector<int64_t> first;        ///< tokens
  std::vector<int64_t> second = {};  ///< of tasks on pairs
};

struct TaskRow {
  std::string_view name;
  std::string_view summary;
  std::string_view metric;
  std::unique_ptr<Task> (*make)(const TaskConfig& config, Spec& options);
  /// What its tokens stand for, from their names or their tokenizer; nullptr: it does
  /// not generate.
  std::unique_ptr<TokenText> (*text)(const std::vector<std::string>& words,
                                     const std::string& tokenizer) = nullptr;
  /// What a file of this name and these bytes holds to be classified, for a model of
  /// this shape, texts as bytes; nullptr: the task has no classes, or makes its data.
  std::vector<Unlabelled> (*unlabelled)(const std::string& name, data::Bytes bytes,
                                        const ModelConfig& model,
                                        Spec& options) = nullptr;
};

struct RegisterTask {
  explicit RegisterTask(TaskRow row);
};

const std::vector<TaskRow>& tasks();

/// The options of a row with their defaults, as its maker takes them from raw files, or
/// where it makes its data itself, for windows of 512 tokens. Nothing is read or made.
std::vector<Spec::Option> task_options(const TaskRow& row);

/// Whether a split is there, with at least one example.
bool has_examples(const Task& task, const std::string& split);

/// std::invalid_argument lists the legal names or options; DataError names the file.
std::unique_ptr<Task> make_task(const TaskConfig& config);

/// What the tokens of a task stand for, without its data: `words` and `tokenizer` are
/// those a model was saved with. nullptr where it takes the data to know.
std::unique_ptr<TokenText> make_token_text(const std::string& task,
                                           const std::vector<std::string>& words,
                                           const std::string& tokenizer = "");

/// TaskRow::unlabelled of a task, in the tokens of the `tokenizer` a model was saved with,
/// if it was; std::invalid_argument lists the tasks that have it.
std::vector<Unlabelled> read_unlabelled(const std::string& task,
                                        const std::string& name, data::Bytes bytes,
                                        const ModelConfig& model,
                                        const std::string& tokenizer = "");

}  // namespace lagwise
