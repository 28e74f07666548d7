#pragma once

#include <string>
#include <vector>

#include "tests/golden_runner/golden_case.h"

namespace lagwise::golden {

/// A list of cases in a file: one per line, `#` begins a comment. An entry is
///
///     a method        every case of it
///     method [name]   every case of it that stores a tensor of that name
///     the id of a case
class CaseList {
 public:
  /// No file, or an empty name: an empty list.
  explicit CaseList(const std::string& file);

  bool contains(const GoldenCase& golden) const;

 private:
  std::vector<std::string> entries_;
};

}  // namespace lagwise::golden
