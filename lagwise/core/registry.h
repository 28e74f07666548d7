#pragma once

#include <algorithm>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "lagwise/core/nearest.h"

namespace lagwise {

/// A table whose rows add themselves while the program starts, in any order: each
/// file with a thing in it defines one row, and no list of things is kept by hand.
///
/// Row has a member `name`. Keep a registry as a static inside a function, so that
/// it exists before the first row arrives.
template <class Row>
class Registry {
 public:
  /// `kind` names the things in messages: "encoding".
  explicit Registry(std::string_view kind) : kind_(kind) {}

  void add(const Row& row) {
    const auto at = std::lower_bound(
        rows_.begin(), rows_.end(), row.name,
        [](const Row& one, std::string_view name) { return one.name < name; });
    if (at != rows_.end() && at->name == row.name)
      throw std::logic_error(kind_ + " '" + std::string(row.name) +
                             "' is registered twice");
    rows_.insert(at, row);
  }

  /// Every row, sorted by name.
  const std::vector<Row>& rows() const { return rows_; }

  /// The row of that name; std::invalid_argument lists the legal ones, and after them
  /// `more` names, that the caller knows to replace before it asks.
  const Row& find(std::string_view name,
                  const std::vector<std::string>& more = {}) const {
    std::vector<std::string> names;
    std::string list;
    for (const Row& row : rows_) {
      if (row.name == name) return row;
      names.emplace_back(row.name);
      list += (list.empty() ? "" : ", ") + names.back();
    }
    for (const std::string& other : more) {
      names.push_back(other);
      list += ", " + other;
    }
    const std::string meant = did_you_mean(name, names);
    throw std::invalid_argument("unknown " + kind_ + " '" + std::string(name) + "'" +
                                (meant.empty() ? "; " : meant + " ") +
                                "expected one of " + list);
  }

 private:
  std::string kind_;
  std::vector<Row> rows_;
};

}  // namespace lagwise
