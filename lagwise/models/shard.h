#pragma once

#include <cstdint>

#include "lagwise/models/batch.h"

namespace lagwise {

/// Columns [begin, end) of a batch.
struct Columns {
  int64_t begin = 0, end = 0;
};

/// Those of n columns that a rank has: contiguous, in the order of ranks, and as even as
/// whole `patch`es of them can be. Where there are more ranks than patches some are empty.
Columns columns_of(int64_t n, int rank, int size, int64_t patch = 1);

/// The part of a batch that one of its peers computes: these columns of its tokens, the
/// targets of these columns, and how many of them are real. A class [B] is the target of
/// rank 0 alone, the others have -1 there: so the sum of all losses counts it once.
///
/// The parts are computed together: every rank calls the model with its own, and the
/// gradients of a parameter are to be added up over all ranks.
Batch shard(const Batch& whole, const Columns& columns, const ops::Peers& peers);

}  // namespace lagwise
