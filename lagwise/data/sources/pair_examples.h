#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "lagwise/data/sets/examples.h"
#include "lagwise/data/sources/text_columns.h"

namespace lagwise::data {

/// A text and what is to be made of it, both of at least one byte and in UTF-8. The views
/// hold until the next pair is read.
struct Pair {
  std::string_view split, source, target;
  std::string_view file;  ///< empty: it was made
  int64_t row = 0;        ///< of the file; its header is row 1
};

using VisitPair = std::function<void(const Pair& pair)>;

struct PairReading {
  std::string path;
  double valid = 0.1;  ///< of train, where no file is valid
  double test = 0.1;   ///< of a single file
  std::string source_column = {}, target_column = {};  ///< empty: found by their names
};

/// Reads pairs of texts:
///
///     a folder of train, valid, test   tables (split_tables.h)
///     a file                           one table
///
/// A table has a header, or is an object a line (data/sources/text_columns.h). A source
/// is the column source, src or input, a target the column target, tgt or output. What
/// no file says is dealt evenly (data/sets/split_dealer.h). DataError names the file and
/// the row that is wrong.
void read_pairs(const PairReading& reading, const VisitPair& visit);

/// The columns of such a table.
Column source_column(const std::string& asked = "");
Column target_column(const std::string& asked = "");

/// How a prepared set keeps pairs: the tokens of a source, then those of its target.
inline constexpr const char* kPairsScheme = "pairs";
inline constexpr ExampleLayout kPairsLayout{.labelled = false, .paired = true};

/// A pair in bytes.
Example pair_example(const Pair& pair);

}  // namespace lagwise::data
