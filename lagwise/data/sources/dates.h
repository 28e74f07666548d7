#pragma once

#include <cstdint>

#include "lagwise/data/sources/pair_examples.h"

namespace lagwise::data {

struct DateMaking {
  int64_t pairs = 20000;
  double valid = 0.1, test = 0.1;  ///< parts of all days
  uint64_t seed = 0;
};

/// Makes pairs that need no download: a day of 1900 to 2099 as people write it, and as
/// ISO 8601 has it.
///
///     Tuesday, 3 March 1998    1998-03-03
///     March 3, 1998            1998-03-03
///     3.3.1998                 1998-03-03
///
/// A day belongs to one split alone, whatever it is written as, so that no answer of
/// valid or test was trained on. Days and forms are drawn evenly, and may come twice.
void make_date_pairs(const DateMaking& making, const VisitPair& visit);

}  // namespace lagwise::data
