#pragma once

#include <cstdint>
#include <string>
#include <unordered_set>

namespace lagwise::data {

/// The rules of ListOps; the defaults are those of the Long Range Arena.
struct ListopsRules {
  int max_depth = 10;  ///< a node at this depth is a digit (the root has depth 1)
  int max_arguments = 10;
  int longer_than = 500;  ///< symbols, brackets counted, both bounds excluded
  int shorter_than = 2000;
};

struct ListopsRow {
  std::string expression;  ///< with parentheses, as the files have it
  int label = 0;
  int length = 0;  ///< symbols
};

/// Makes rows of ListOps (Nangia and Bowman, 2018, arXiv:1804.06028) by the rules of
/// the Long Range Arena (Tay et al., 2020, arXiv:2011.04006):
///
///     node at depth d: with probability 1/4, if d < max_depth, one of MIN MAX MED SM
///     over 2 .. max_arguments nodes of depth d + 1; else a digit 0 .. 9
///
/// Trees outside the bounds of length and those that came before are passed over.
/// Tree t of a seed is a function of (seed, t) alone, to the bit, on any machine.
class ListopsGenerator {
 public:
  /// std::invalid_argument for rules no tree can keep.
  explicit ListopsGenerator(uint64_t seed, const ListopsRules& rules = {});

  ListopsRow next();
  int64_t trees() const { return trees_; }  ///< tried so far

 private:
  bool grow(int64_t tree, ListopsRow& row) const;

  uint64_t seed_;
  ListopsRules rules_;
  int64_t trees_ = 0;
  std::unordered_set<uint64_t> seen_;  // hashes of the expressions
};

/// Writes `rows` further rows as the Long Range Arena does: header "Source<TAB>Target",
/// CRLF. Whole or not at all.
void write_listops(const std::string& file, ListopsGenerator& generator, int64_t rows);

}  // namespace lagwise::data
