#include "lagwise/encodings/coordinates.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>

namespace lagwise {
namespace {

int64_t unplaced(const Placement& at, int64_t start, int64_t rows) {
  return std::clamp<int64_t>(at.off_grid - start, 0, rows);
}

std::string sizes_of(at::IntArrayRef sizes) {
  std::string text = "[";
  for (const int64_t size : sizes)
    text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + "]";
}

/// [rows], [B, rows], or with one more axis of A coordinates -> [B|1, rows, A].
at::Tensor from_given(const at::Tensor& given, int64_t axes, int64_t rows,
                      bool on_grid) {
  at::Tensor p = given.to(at::kDouble);
  if (!on_grid) p = p.unsqueeze(-1);
  if (p.dim() == 2) p = p.unsqueeze(0);
  if (p.dim() != 3 || p.size(1) != rows || p.size(2) != axes)
    throw std::invalid_argument(
        "positions: expected [rows] or [B, rows]" +
        std::string(on_grid ? ", each with the axes of the grid," : "") + " for " +
        std::to_string(rows) + " rows, got " + sizes_of(given.sizes()));
  return p;
}

/// The cells of a grid row by row: the last axis runs fastest.
void fill_cells(const std::vector<int64_t>& grid, int64_t first, int64_t rows,
                double* out) {
  const auto axes = static_cast<int64_t>(grid.size());
  for (int64_t i = 0; i < rows; ++i) {
    int64_t cell = first + i;
    for (int64_t a = axes - 1; a >= 0; --a) {
      out[i * axes + a] = static_cast<double>(cell % grid[size_t(a)]);
      cell /= grid[size_t(a)];
    }
  }
}

at::Tensor coordinates(const Placement& at, const at::Tensor& given, int64_t start,
                       int64_t rows) {
  const bool on_grid = !at.grid.empty();
  const int64_t axes = on_grid ? static_cast<int64_t>(at.grid.size()) : 1;
  if (given.defined()) return from_given(given, axes, rows, on_grid);

  at::Tensor p = at::zeros({1, rows, axes}, at::kDouble);
  const int64_t skipped = unplaced(at, start, rows);
  const int64_t placed = rows - skipped, first = start + skipped - at.off_grid;
  double* const out = p.data_ptr<double>() + skipped * axes;
  if (!on_grid) {
    std::iota(out, out + placed, static_cast<double>(first));
    return p;
  }
  const int64_t cells = std::accumulate(at.grid.begin(), at.grid.end(), int64_t{1},
                                        std::multiplies<int64_t>());
  if (placed > 0 && (first < 0 || first + placed > cells))
    throw std::invalid_argument("positions: cell " +
                                std::to_string(first < 0 ? first : first + placed - 1) +
                                " is not in the grid " + sizes_of(at.grid) + " of " +
                                std::to_string(cells) + " cells");
  fill_cells(at.grid, first, placed, out);
  return p;
}

}  // namespace

at::Tensor query_coordinates(const Placement& at, int64_t rows) {
  return coordinates(at, at.query_at, at.query_start, rows);
}

at::Tensor key_coordinates(const Placement& at, int64_t rows) {
  return coordinates(at, at.key_at, at.key_start, rows);
}

int64_t unplaced_queries(const Placement& at, int64_t rows) {
  return at.query_at.defined() ? 0 : unplaced(at, at.query_start, rows);
}

bool same_places(const Placement& at, int64_t queries, int64_t keys) {
  if (at.query_at.defined() || at.key_at.defined())
    return queries == keys && at.query_at.is_same(at.key_at);
  return queries == keys && at.query_start == at.key_start;
}

void check_grid(const Placement& at, int64_t dims, const std::string& encoding) {
  if (static_cast<int64_t>(at.grid.size()) <= dims) return;
  throw std::invalid_argument(encoding + ": expected a grid of at most " +
                              std::to_string(dims) + " axes, got " +
                              std::to_string(at.grid.size()));
}

}  // namespace lagwise
