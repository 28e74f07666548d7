#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "lagwise/core/errors.h"
#include "lagwise/data/formats/bytes.h"

namespace lagwise::data {

/// Reads JSON Lines: one object a line, empty lines passed over. A byte order mark in
/// front is no part of it. What is wrong is a DataError with the number of the line.
class JsonLines {
 public:
  JsonLines(const std::string& file, Bytes bytes);

  bool next(nlohmann::json& row);  ///< false at the end

  /// The text at `name` of a row.
  std::string text(const nlohmann::json& row, const std::string& name) const;

  int64_t line() const { return line_; }  ///< of the row just read, from 1
  /// What to throw to refuse the row just read.
  DataError refusal(const std::string& expected) const;

 private:
  std::string file_;
  std::string_view rest_;
  size_t start_ = 0, at_ = 0;  ///< of the row just read, and of what follows
  int64_t line_ = 0;
};

}  // namespace lagwise::data
