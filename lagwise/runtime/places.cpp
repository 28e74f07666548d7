#include "lagwise/runtime/places.h"

#include <algorithm>

#include "lagwise/kernels/turn_table.h"
#include "lagwise/kernels/wave_row.h"

namespace lagwise::runtime {
namespace {

bool same_angles(const OneTokenPlace& a, const OneTokenPlace& b) {
  return a.frequency.data() == b.frequency.data() &&
         a.frequency.size() == b.frequency.size() && a.planes == b.planes &&
         a.turn_scale == b.turn_scale && a.turns.data() == b.turns.data() &&
         a.phase.data() == b.phase.data() && a.turns.size() == b.turns.size();
}

}  // namespace

Places::Places(const Plan& plan, int64_t most_rows)
    : heads_(plan.heads), positions_(static_cast<size_t>(most_rows)) {
  int64_t most_planes = 0;
  for (const OneTokenLayer& layer : plan.one.layers) {
    const OneTokenPlace& place = layer.place;
    size_t same = 0;
    while (same < shared_.size() && !same_angles(*shared_[same].place, place)) ++same;
    which_.push_back(same);
    if (same < shared_.size()) continue;
    Shared to{&place, 0, place.turns.size(), 0, {}};
    if (place.planes > 0) to.sets = place.frequency.size() / place.planes;
    to.row_size = to.sets * 2 * place.planes + 4 * to.pairs;
    to.table.resize(static_cast<size_t>(most_rows * to.row_size));
    most_planes = std::max(most_planes, place.planes);
    shared_.push_back(std::move(to));
  }
  scratch_.resize(static_cast<size_t>(kernels::turn_table_scratch(most_planes)));
}

void Places::stand_at(const int64_t* positions, int64_t rows) {
  for (Shared& each : shared_)
    if (each.pairs > 0)
      wave_rows(each, positions, rows);
    else if (each.sets > 0)
      turn_rows(each, positions, rows);
}

void Places::turn_rows(Shared& to, const int64_t* positions, int64_t rows) {
  for (int64_t i = 0; i < rows; ++i)
    positions_[static_cast<size_t>(i)] = static_cast<double>(positions[i]);
  const int64_t planes = to.place->planes;
  for (int64_t set = 0; set < to.sets; ++set)
    kernels::turn_table<float>(
        {positions_.data(), rows, 1, 1}, to.place->frequency.data() + set * planes,
        to.place->turn_scale,
        {to.table.data() + set * 2 * planes, rows, 2 * planes, to.row_size},
        scratch_.data());
}

void Places::wave_rows(Shared& to, const int64_t* positions, int64_t rows) {
  const double* const turns = to.place->turns.data();
  for (int64_t i = 0; i < rows; ++i) {
    float* const row = to.table.data() + i * to.row_size;
    const auto p = static_cast<double>(positions[i]);
    kernels::wave_row(turns, to.place->phase.data(), to.pairs, p, row, row + to.pairs);
    kernels::wave_row(turns, nullptr, to.pairs, p, row + 2 * to.pairs,
                      row + 3 * to.pairs);
  }
}

MatView<const float> Places::turn(size_t layer, int64_t row, int64_t head) const {
  const Shared& from = of(layer);
  const int64_t width = 2 * from.place->planes, set = from.sets > 1 ? head : 0;
  return {from.table.data() + row * from.row_size + set * width, 1, width, width};
}

Places::Waves Places::query_waves(size_t layer, int64_t row, int64_t head) const {
  const Shared& from = of(layer);
  const float* const first =
      from.table.data() + row * from.row_size + head * (from.pairs / heads_);
  return {first, first + from.pairs};
}

Places::Waves Places::key_waves(size_t layer, int64_t row, int64_t head) const {
  const Shared& from = of(layer);
  const float* const first = from.table.data() + row * from.row_size + 2 * from.pairs +
                             head * (from.pairs / heads_);
  return {first, first + from.pairs};
}

}  // namespace lagwise::runtime
