#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace lagwise {

/// Examples [begin, end) of a split.
struct Stretch {
  int64_t begin, end;
};

/// `examples` of `size` (0: all), in batches of `batch` that lie spread over the split,
/// the last one at its end: the first of a file are no fair sample where examples are
/// sorted, as the folders neg and pos are.
inline std::vector<Stretch> spread(int64_t size, int64_t examples, int64_t batch) {
  const int64_t end = examples > 0 ? std::min(examples, size) : size;
  const int64_t batches = (end + batch - 1) / batch;
  std::vector<Stretch> all;
  for (int64_t i = 0; i < batches; ++i) {
    const int64_t rows = std::min(batch, end - i * batch);
    const int64_t begin =
        i * batch + (size - end) * i / std::max<int64_t>(batches - 1, 1);
    all.push_back({begin, begin + rows});
  }
  return all;
}

}  // namespace lagwise
