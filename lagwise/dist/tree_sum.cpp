#include "lagwise/dist/tree_sum.h"

#include <ATen/TensorOperators.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace lagwise::dist {
namespace {

constexpr int64_t kPieceBytes = 25 << 20;

}  // namespace

void TreeSum::add(at::Tensor term) {
  Tree tree{1, std::move(term)};
  while (!trees_.empty() && trees_.back().leaves == tree.leaves) {
    tree.sum = trees_.back().sum.add_(tree.sum);
    tree.leaves *= 2;
    trees_.pop_back();
  }
  trees_.push_back(std::move(tree));
}

at::Tensor TreeSum::total(const ops::Peers* peers) {
  if (trees_.size() != 1)
    throw std::logic_error("TreeSum: expected a power of two of terms");
  at::Tensor sum = std::move(trees_.back().sum);
  trees_.clear();
  if (peers != nullptr) sum_over_peers_(sum, *peers);
  return sum;
}

void sum_over_peers_(at::Tensor& sum, const ops::Peers& peers) {
  if (!is_power_of_two(peers.size()))
    throw std::logic_error("sum_over_peers_: expected a power of two of peers");
  at::Tensor flat = sum.view({-1});
  const int64_t piece = std::max<int64_t>(1, kPieceBytes / sum.element_size());
  for (int64_t begin = 0; begin < flat.numel(); begin += piece) {
    at::Tensor part = flat.narrow(0, begin, std::min(piece, flat.numel() - begin));
    for (int distance = 1; distance < peers.size(); distance *= 2)
      part.add_(peers.exchange(part, peers.rank() ^ distance));
  }
}

}  // namespace lagwise::dist
