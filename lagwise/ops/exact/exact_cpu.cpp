#include <ATen/Dispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "lagwise/ops/exact/exact_call.h"
#include "lagwise/ops/exact/exact_waves.h"
#include "lagwise/ops/parallel/grouped_tasks.h"

namespace lagwise::ops {
namespace {

using kernels::kExactRows;

template <class T>
void forward(const ExactCall& call, const ExactForward& to) {
  std::vector<int64_t> sizes;
  int64_t scratch = 0;
  for (const ExactPiece& piece : call.pieces) {
    const auto head = head_of<T>(call, piece);
    sizes.push_back(kernels::exact_packed(head));
    scratch = std::max(scratch, kernels::exact_scratch(head));
  }
  const auto waves = waves_of(sizes, sizeof(T));
  at::Tensor space;
  for (size_t wave = 0; wave + 1 < waves.size(); ++wave) {
    std::vector<int64_t> offset, blocks;
    int64_t used = 0;
    for (size_t i = waves[wave]; i < waves[wave + 1]; ++i) {
      offset.push_back(used), used += sizes[i];
      blocks.push_back((call.pieces[i].rows + kExactRows - 1) / kExactRows);
    }
    if (!space.defined() || space.numel() < used)
      space = at::empty({used}, call.q.options());
    const auto packed = [&](size_t i) {
      return space.data_ptr<T>() + offset[i - waves[wave]];
    };
    for_each_task<T>(static_cast<int64_t>(offset.size()), 0, [&](int64_t task, T*) {
      const size_t i = waves[wave] + static_cast<size_t>(task);
      kernels::exact_pack<T>(head_of<T>(call, call.pieces[i]), packed(i));
    });
    for_each_grouped_task<T>(blocks, scratch, [&](int64_t group, int64_t task, T* own) {
      const size_t i = waves[wave] + static_cast<size_t>(group);
      const ExactPiece& piece = call.pieces[i];
      // The last rows of a causal head see most keys and take longest: begin with them.
      const int64_t block = blocks[static_cast<size_t>(group)] - 1 - task;
      const int64_t end = std::min((block + 1) * kExactRows, piece.rows);
      kernels::exact_rows<T>(head_of<T>(call, piece), packed(i), block * kExactRows,
                             end, rows_of<T>(to.out, piece, piece.row, piece.rows),
                             rows_of<T>(to.stats, piece, piece.row, piece.rows), own);
    });
  }
}

}  // namespace

ExactForward exact_forward_cpu(const ExactCall& call) {
  const auto options = call.q.options();
  const std::vector<int64_t> shape = {call.b, call.h, call.n, call.e};
  ExactForward to;
  to.out = at::empty(shape, options);
  to.stats = at::empty({call.b, call.h, call.n, 2}, options);
  if (!call.covers) to.out.zero_(), to.stats.zero_();
  AT_DISPATCH_FLOATING_TYPES(call.q.scalar_type(), "exact_attention",
                             [&] { forward<scalar_t>(call, to); });
  return to;
}

}  // namespace lagwise::ops
