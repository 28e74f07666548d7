#pragma once

#include <cstdint>
#include <vector>

#include "lagwise/core/mat_view.h"
#include "lagwise/runtime/plan.h"

namespace lagwise::runtime {

/// What layers have in common of the positions of the rows in a pass: cosines and sines
/// of rotations and of waves. Layers with the same angles (the same numbers of the file)
/// share one table.
class Places {
 public:
  Places(const Plan& plan, int64_t most_rows);

  /// Fills all tables for rows at these positions.
  void stand_at(const int64_t* positions, int64_t rows);

  /// [1, 2 planes] of a rotation: cosines, then sines, of that row and head.
  MatView<const float> turn(size_t layer, int64_t row, int64_t head) const;

  /// cos and sin of the waves of one head, [D K] each.
  struct Waves {
    const float *cosine, *sine;
  };
  Waves query_waves(size_t layer, int64_t row, int64_t head) const;
  Waves key_waves(size_t layer, int64_t row, int64_t head) const;

 private:
  /// Of one set of angles. `table`: rotations [rows, sets, 2 planes]; waves [rows, 4,
  /// pairs]: cosines and sines of queries, then of keys.
  struct Shared {
    const OneTokenPlace* place;
    int64_t sets, pairs, row_size;
    std::vector<float> table;
  };
  const Shared& of(size_t layer) const { return shared_[which_[layer]]; }
  void turn_rows(Shared& to, const int64_t* positions, int64_t rows);
  static void wave_rows(Shared& to, const int64_t* positions, int64_t rows);

  int64_t heads_;
  std::vector<Shared> shared_;
  std::vector<size_t> which_;  // by layer
  std::vector<double> positions_, scratch_;
};

}  // namespace lagwise::runtime
