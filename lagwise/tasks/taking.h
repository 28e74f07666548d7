#pragma once

#include <stdexcept>
#include <string>

#include "lagwise/core/spec.h"
#include "lagwise/tasks/task.h"

namespace lagwise {

/// An option that says what part of the data a split is: at least 0, below 0.5, so that
/// two of them leave something to train on.
inline double take_fraction(Spec& options, const char* key, double fallback) {
  const double part = options.take(key, fallback);
  if (!(part >= 0 && part < 0.5))
    throw std::invalid_argument(options.name() + ": " + key +
                                ": expected a fraction from 0 to below 0.5, got " +
                                std::to_string(part));
  return part;
}

/// An option that says how many of something to make.
inline int64_t take_count(Spec& options, const char* key, int64_t fallback) {
  const int64_t count = options.take(key, fallback);
  if (count < 0 || count > 100000000)
    throw std::invalid_argument(options.name() + ": " + key +
                                ": expected 0 to 100000000, got " +
                                std::to_string(count));
  return count;
}

/// An option that a prepared set has fixed: refused unless it is the same, or not given.
template <class Value>
void take_fixed(Spec& options, const char* key, const Value& fixed) {
  if (options.take(key, fixed) != fixed)
    throw std::invalid_argument(options.name() + ": the set was prepared with " + key +
                                "=" + options.options().back().fallback +
                                "; expected the same, or none");
}

/// What the data left out goes to who asked to be told.
inline void tell(const TaskConfig& config, const std::vector<std::string>& lines) {
  for (const std::string& line : lines)
    if (config.tell) config.tell(line);
}

/// For tasks that make nothing themselves.
inline void need_path(const std::string& task, const std::string& path) {
  if (path.empty())
    throw std::invalid_argument(
        task + ": expected data.path, got none (--set data.path=PATH gives it)");
}

}  // namespace lagwise
