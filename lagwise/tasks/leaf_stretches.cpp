#include "lagwise/tasks/leaf_stretches.h"

#include "lagwise/tasks/draws.h"

namespace lagwise {

LeafStretches::LeafStretches(const std::vector<int64_t>& ends, const Rows& rows,
                             int64_t length) {
  const auto shards = static_cast<int64_t>(ends.size());
  const auto add = [&](int64_t begin, int64_t end) {
    if (end - begin <= length) return;
    stretches_.push_back({begin, end - begin - length});
    places_ += end - begin - length;
  };
  const int64_t apart = rows.leaves < shards ? rows.leaves : shards;
  for (int64_t i = rows.leaf % shards; i < shards; i += apart)
    add(i == 0 ? 0 : ends[size_t(i - 1)], ends[size_t(i)]);
  if (stretches_.empty()) add(0, ends.back());
}

int64_t LeafStretches::start(data::Dice& dice) const {
  int64_t place = pick(dice, places_);
  for (const Stretch& stretch : stretches_) {
    if (place < stretch.places) return stretch.begin + place;
    place -= stretch.places;
  }
  return stretches_.back().begin;
}

}  // namespace lagwise
