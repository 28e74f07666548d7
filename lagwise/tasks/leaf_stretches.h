#pragma once

#include <cstdint>
#include <vector>

#include "lagwise/data/sources/dice.h"
#include "lagwise/tasks/rows.h"

namespace lagwise {

/// The places from which the rows of a leaf are cropped, where a stream has several parts,
/// shards or documents: those of parts leaf, leaf + leaves, leaf + 2 leaves and so on, or,
/// where there are fewer parts than leaves, one of them. So a process that has one leaf
/// reads its own files, and its page cache holds those alone; and since it is a matter of
/// the leaf, not of the process, nothing depends on who reads.
class LeafStretches {
 public:
  /// `ends`: where each part ends, in tokens. Crops have `length` + 1 tokens, and lie
  /// within a part; a leaf whose parts are all shorter takes those of all leaves, and
  /// where no part is long enough, the whole stream.
  LeafStretches(const std::vector<int64_t>& ends, const Rows& rows, int64_t length);

  /// The first token of a crop, any place as likely as another.
  int64_t start(data::Dice& dice) const;

 private:
  struct Stretch {
    int64_t begin;  // of its first crop
    int64_t end;    // how many places it and the stretches before it have
  };
  int64_t places() const { return stretches_.empty() ? 0 : stretches_.back().end; }

  std::vector<Stretch> stretches_;
};

}  // namespace lagwise
