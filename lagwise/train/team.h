#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "lagwise/models/batch.h"
#include "lagwise/ops/peers.h"
#include "lagwise/tasks/rows.h"
#include "lagwise/train/recipe.h"

namespace lagwise {

/// Who trains a run: one process, or several that do the same steps, each its part.
///
/// A batch is cut into `train.leaves` slices of rows, the leaves of a tree of sums
/// (dist/tree_sum.h). W processes stand in groups of S = `train.sequence_ranks`: the W / S
/// groups share out the leaves, in order, and the S of a group share out the columns of
/// the same rows. Who has which leaf changes no bit of a sum, so a run does not depend
/// on W, and may go on with another W.
class Team {
 public:
  /// nullptr: alone. `columns`: those of our group, in the order of their columns.
  /// std::invalid_argument names the key that does not fit the number of processes.
  Team(const TrainConfig& config, const ops::Peers* peers, const ops::Peers* columns);

  bool alone() const { return peers_ == nullptr; }
  bool first() const { return rank() == 0; }  ///< who reads and writes the run's folder
  int rank() const { return alone() ? 0 : peers_->rank(); }
  int size() const { return alone() ? 1 : peers_->size(); }
  int group() const { return rank() / width_; }
  int groups() const { return size() / width_; }
  int width() const { return width_; }  ///< S, the processes of a group
  const ops::Peers* peers() const { return peers_; }

  int64_t first_leaf() const { return group() * own_leaves(); }
  int64_t own_leaves() const { return leaves_ / groups(); }
  Rows rows(int64_t leaf) const;  ///< of every micro-batch

  /// Our columns of a batch that our group computes together.
  Batch part(const Batch& batch, int64_t patch) const;

  /// [size, ...]: everybody's numbers.
  at::Tensor gather(const at::Tensor& numbers) const;

  // What rank 0 has, everybody has afterwards.
  void share_(at::Tensor& tensor) const;
  void share(std::string& text) const;
  void share(double& number) const;

  /// std::runtime_error names `what` and the first rank whose number is not that of
  /// rank 0.
  void expect_same(uint64_t number, const std::string& what) const;

 private:
  const ops::Peers* peers_;
  const ops::Peers* columns_;
  int width_;
  int64_t leaves_, batch_;
};

}  // namespace lagwise
