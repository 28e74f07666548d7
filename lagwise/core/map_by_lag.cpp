#include "lagwise/core/map_by_lag.h"

#include <algorithm>
#include <vector>

namespace lagwise {
namespace {

int64_t last_query(MatView<const double> map, const MapRegion& region) {
  return region.last < 0 ? map.rows : std::min(region.last, map.rows);
}

/// The keys [begin, end) of a row.
struct Keys {
  int64_t begin, end;
};
Keys keys_of(MatView<const double> map, const MapRegion& region, int64_t query) {
  const int64_t begin =
      region.farthest < 0 ? 0 : std::max<int64_t>(0, query - region.farthest);
  return {begin, std::min(query + 1, map.cols)};
}

/// Mean and sum of squared differences from it, number by number (Welford, 1962).
struct Moments {
  double count = 0, mean = 0, squares = 0;
  void add(double x) {
    const double before = x - mean;
    mean += before / ++count;
    squares += before * (x - mean);
  }
};

}  // namespace

double variance_within_lags(MatView<const double> map, const MapRegion& region) {
  std::vector<Moments> by_lag(static_cast<size_t>(std::max<int64_t>(map.rows, 0)));
  Moments all;
  for (int64_t i = region.first; i < last_query(map, region); ++i) {
    const auto [begin, end] = keys_of(map, region, i);
    for (int64_t j = begin; j < end; ++j) {
      by_lag[static_cast<size_t>(i - j)].add(map(i, j));
      all.add(map(i, j));
    }
  }
  double within = 0;
  for (const Moments& lag : by_lag) within += lag.squares;
  return all.squares > 0 ? within / all.squares : 0;
}

double inversions(MatView<const double> map, const MapRegion& region) {
  int64_t wrong = 0, pairs = 0;
  for (int64_t i = region.first; i < last_query(map, region); ++i) {
    const auto [begin, end] = keys_of(map, region, i);
    for (int64_t j = begin; j < end; ++j)
      for (int64_t k = j + 1; k < end; ++k, ++pairs) wrong += map(i, j) > map(i, k);
  }
  return pairs > 0 ? static_cast<double>(wrong) / static_cast<double>(pairs) : 0;
}

}  // namespace lagwise
