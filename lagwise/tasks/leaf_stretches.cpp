#include "lagwise/tasks/leaf_stretches.h"

#include <algorithm>

#include "lagwise/tasks/draws.h"

namespace lagwise {

LeafStretches::LeafStretches(const std::vector<int64_t>& ends, const Rows& rows,
                             int64_t length) {
  const auto parts = static_cast<int64_t>(ends.size());
  const auto add = [&](int64_t begin, int64_t end) {
    if (end - begin > length)
      stretches_.push_back({begin, places() + end - begin - length});
  };
  const auto add_every = [&](int64_t first, int64_t apart) {
    for (int64_t i = first; i < parts; i += apart)
      add(i == 0 ? 0 : ends[size_t(i - 1)], ends[size_t(i)]);
  };
  add_every(rows.leaf % parts, std::min(rows.leaves, parts));
  if (stretches_.empty()) add_every(0, 1);
  if (stretches_.empty()) add(0, ends.back());
}

int64_t LeafStretches::start(data::Dice& dice) const {
  const int64_t place = pick(dice, places());
  const auto at = std::ranges::upper_bound(stretches_, place, {}, &Stretch::end);
  return at->begin + place - (at == stretches_.begin() ? 0 : (at - 1)->end);
}

}  // namespace lagwise
