#include "lagwise/tasks/padded.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <algorithm>

namespace lagwise {

at::Tensor padded(const std::vector<std::vector<int64_t>>& rows, int64_t filler) {
  size_t longest = 1;
  for (const auto& row : rows) longest = std::max(longest, row.size());
  at::Tensor x =
      at::full({static_cast<int64_t>(rows.size()), static_cast<int64_t>(longest)},
               filler, at::kLong);
  auto* out = x.data_ptr<int64_t>();
  for (size_t i = 0; i < rows.size(); ++i)
    std::copy(rows[i].begin(), rows[i].end(), out + i * longest);
  return x;
}

at::Tensor lengths_of(const std::vector<std::vector<int64_t>>& rows) {
  size_t shortest = SIZE_MAX, longest = 1;
  for (const auto& row : rows) {
    shortest = std::min(shortest, row.size());
    longest = std::max(longest, row.size());
  }
  if (shortest >= longest) return {};
  at::Tensor x = at::empty({static_cast<int64_t>(rows.size())}, at::kLong);
  for (size_t i = 0; i < rows.size(); ++i)
    x.data_ptr<int64_t>()[i] = static_cast<int64_t>(rows[i].size());
  return x;
}

}  // namespace lagwise
