#include "lagwise/tasks/task.h"

#include <stdexcept>

#include "lagwise/core/registry.h"
#include "lagwise/data/sets/shards.h"
#include "lagwise/tasks/tokenizer_text.h"

namespace lagwise {
namespace {

Registry<TaskRow>& registry() {
  static Registry<TaskRow> registry("task");
  return registry;
}

/// Texts that were read as bytes, in the tokens of a tokenizer.
std::vector<Unlabelled> in_tokens(std::vector<Unlabelled> all,
                                  const std::string& tokenizer) {
  if (tokenizer.empty()) return all;
  const auto reads = saved_tokenizer(tokenizer);
  const auto encode = [&](std::vector<int64_t>& tokens) {
    const std::vector<int32_t> ids = data::encode_bytes(*reads, tokens);
    tokens.assign(ids.begin(), ids.end());
  };
  for (Unlabelled& one : all) encode(one.first), encode(one.second);
  return all;
}

}  // namespace

std::optional<double> Task::guess(const std::string&) const { return std::nullopt; }

std::map<std::string, double> Task::more(const std::string&, const Loss&) const {
  return {};
}

std::optional<IdealLosses> Task::ideal(const std::string&, int64_t, int64_t,
                                       int64_t) const {
  return std::nullopt;
}

Batch Task::train_windows(int64_t, int64_t, Rows, int64_t) const {
  throw std::invalid_argument(
      "this task is no stream of tokens, so nothing comes before its examples; "
      "expected "
      "one such as language, music or markov");
}

std::vector<int64_t> Task::stream(const std::string&, int64_t, int64_t) const {
  throw std::invalid_argument(
      "this task is no stream of tokens; expected one such as language");
}

RegisterTask::RegisterTask(TaskRow row) { registry().add(row); }

const std::vector<TaskRow>& tasks() { return registry().rows(); }

std::vector<Spec::Option> task_options(const TaskRow& row) {
  // A maker takes all its options and refuses others before it works, so one that no
  // task has makes it stop there. Makers that need data also ask for a path first, and
  // some look what lies there: nothing, so that the folder we are in changes nothing.
  for (const char* path : {"", "/no-such-path-to-data"}) {
    Spec spec(std::string(row.name) + ":no-such-option=1");
    try {
      row.make({.task = spec.text(), .path = path}, spec);
    } catch (const std::exception&) {
      if (!spec.options().empty()) return spec.options();
    }
  }
  return {};
}

std::unique_ptr<TokenText> make_token_text(const std::string& task,
                                           const std::vector<std::string>& words,
                                           const std::string& tokenizer) {
  const TaskRow& row = registry().find(Spec(task).name());
  return row.text ? row.text(words, tokenizer) : nullptr;
}

std::vector<Unlabelled> read_unlabelled(const std::string& task,
                                        const std::string& name, data::Bytes bytes,
                                        const ModelConfig& model,
                                        const std::string& tokenizer) {
  Spec options(task);
  const TaskRow& row = registry().find(options.name());
  if (row.unlabelled)
    return in_tokens(row.unlabelled(name, bytes, model, options), tokenizer);
  std::string names;
  for (const TaskRow& one : tasks())
    if (one.unlabelled) names += (names.empty() ? "" : ", ") + std::string(one.name);
  throw std::invalid_argument("expected a run of a task that classifies files: " +
                              names + "; got " + options.name());
}

bool has_examples(const Task& task, const std::string& split) {
  try {
    return task.size(split) > 0;
  } catch (const std::invalid_argument&) {
    return false;
  }
}

std::unique_ptr<Task> make_task(const TaskConfig& config) {
  Spec options(config.task);
  const TaskRow& row = registry().find(options.name());
  if (config.length < 1)
    throw std::invalid_argument("data.length: expected at least 1, got " +
                                std::to_string(config.length));
  std::unique_ptr<Task> task = row.make(config, options);
  try {
    options.finish();
  } catch (const std::invalid_argument& error) {
    if (!data::is_shard_set(config.path)) throw;
    throw std::invalid_argument(std::string(error.what()) + ", for " + config.path +
                                " is prepared and has the others fixed");
  }
  return task;
}

}  // namespace lagwise
