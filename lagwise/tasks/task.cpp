#include "lagwise/tasks/task.h"

#include <stdexcept>

#include "lagwise/core/registry.h"

namespace lagwise {
namespace {

Registry<TaskRow>& registry() {
  static Registry<TaskRow> registry("task");
  return registry;
}

[[noreturn]] void refuse(const std::string& what) {
  throw std::invalid_argument("this task " + what);
}

}  // namespace

std::map<std::string, double> Task::more(const std::string&, const Loss&) const {
  return {};
}

std::vector<int64_t> Task::stream(const std::string&, int64_t, int64_t) const {
  refuse("is no stream of tokens; expected one such as language");
}

std::vector<int64_t> Task::encode(const std::string&) const {
  refuse("takes no prompt; expected one that generates, such as language");
}

std::string Task::decode(const std::vector<int64_t>&) const {
  refuse("writes no text; expected one that generates, such as language");
}

std::unique_ptr<data::Grammar> Task::grammar() const { return nullptr; }

RegisterTask::RegisterTask(TaskRow row) { registry().add(row); }

const std::vector<TaskRow>& tasks() { return registry().rows(); }

std::vector<Spec::Option> task_options(const TaskRow& row) {
  // A maker takes all its options and refuses others before it works, so one that no
  // task has makes it stop there. Makers that need data also ask for a path first.
  for (const char* path : {"", "."}) {
    Spec spec(std::string(row.name) + ":no-such-option=1");
    try {
      row.make({.task = spec.text(), .path = path}, spec);
    } catch (const std::invalid_argument&) {
      if (!spec.options().empty()) return spec.options();
    }
  }
  return {};
}

std::unique_ptr<Task> make_task(const TaskConfig& config) {
  Spec options(config.task);
  const TaskRow& row = registry().find(options.name());
  if (config.length < 1)
    throw std::invalid_argument("data.length: expected at least 1, got " +
                                std::to_string(config.length));
  std::unique_ptr<Task> task = row.make(config, options);
  options.finish();
  return task;
}

}  // namespace lagwise
