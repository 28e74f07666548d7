#pragma once

#include <cstdint>
#include <vector>

#include "lagwise/data/sources/dice.h"
#include "lagwise/tasks/rows.h"

namespace lagwise {

/// The places from which the rows of a leaf are cropped, where a stream lies in several
/// files: those of shards leaf, leaf + leaves, leaf + 2 leaves and so on, or, where there
/// are fewer shards than leaves, one of them. So a process that has one leaf reads its
/// own files, and its page cache holds those alone; and since it is a matter of the leaf,
/// not of the process, nothing depends on who reads.
class LeafStretches {
 public:
  /// `ends`: where each shard ends, in tokens. Crops have `length` + 1 tokens, and lie
  /// within a shard; a leaf whose shards are all shorter takes the whole stream.
  LeafStretches(const std::vector<int64_t>& ends, const Rows& rows, int64_t length);

  /// The first token of a crop, any place as likely as another.
  int64_t start(data::Dice& dice) const;

 private:
  struct Stretch {
    int64_t begin, places;  // a crop begins at begin .. begin + places - 1
  };
  std::vector<Stretch> stretches_;
  int64_t places_ = 0;
};

}  // namespace lagwise
