#include <ATen/Dispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <vector>

#include "lagwise/ops/parallel/little_work.h"
#include "lagwise/ops/spe/conv_spe_call.h"

namespace lagwise::ops {
namespace {

using at::Tensor;
using kernels::ConvProblem;
using kernels::ConvRows;
using kernels::ConvWindow;

/// A stretch of rows, `count` from `first` on, that all heads go through.
struct Stretch {
  ConvWindow window;
  int64_t first, count;
};

/// Cuts a window along its first long axis, by its shape alone, into stretches whose
/// sums and noise stay in the second cache. Each cut draws kernel - 1 samples again.
std::vector<Stretch> stretches(const ConvSpeCall& call, const ConvWindow& window) {
  const size_t axis = window.extent[0] > 1 ? 0 : window.extent[1] > 1 ? 1 : 2;
  int64_t across = 1;
  for (size_t i = axis + 1; i < 3; ++i) across *= window.extent[i];
  const int64_t length = window.extent[axis];
  if (window.cells() == 0) return {};
  const int64_t most = call.h >= 4 ? 1024 : 512;
  const int64_t rows =
      std::clamp<int64_t>(4096 / std::max<int64_t>(call.b, 1), 256, most);
  const int64_t wanted =
      std::max({int64_t{1}, rows / across, std::min(length, 2 * window.kernel[axis])});
  const int64_t parts = (length + wanted - 1) / wanted;
  std::vector<Stretch> all;
  for (int64_t i = 0; i < parts; ++i) {
    const int64_t begin = length * i / parts, end = length * (i + 1) / parts;
    Stretch one{window, begin * across, (end - begin) * across};
    one.window.origin[axis] += begin;
    one.window.extent[axis] = end - begin;
    all.push_back(one);
  }
  return all;
}

template <class T>
ConvProblem<T> problem_of(const ConvSpeCall& call, const ConvWindow& window, int sides,
                          int64_t head) {
  const Noise noise = call.draw.noise(streams::kConvSpe);
  ConvProblem<T> p{.window = window, .noise = {.row = noise.at({.head = head})}};
  p.noise.kind = call.kind;
  p.noise.pitch = call.pitch;
  p.method = call.chosen ? call.method : kernels::faster_method(window);
  p.batch = call.b, p.d = call.d, p.r = call.r;
  p.sides = sides;
  p.scale = static_cast<T>(call.scale);
  if (!call.z.defined()) return p;
  const Tensor& z = call.z;
  p.noise.given = z.data_ptr<T>() + head * z.stride(0);
  p.noise.feature_step = z.stride(1), p.noise.realisation_step = z.stride(-1);
  const int64_t axes = z.dim() - 3;
  for (int64_t i = 0; i < axes; ++i)
    p.noise.step[static_cast<size_t>(3 - axes + i)] = z.stride(2 + i);
  p.noise.given_origin = call.z_origin;
  return p;
}

/// Rows of one head of a [B, H, N, width] tensor.
template <class T>
ConvRows<T> rows_of(const Tensor& x, int64_t head, const Stretch& stretch) {
  const auto all = head_view<T>(x, head);
  return {all.slice(stretch.first, stretch.first + stretch.count), x.stride(0)};
}

/// Calls fn(side, sides, window, ..) once for both sides, or for each.
template <class Fn>
void for_each_place(const ConvSpeCall& call, const Fn& fn) {
  if (call.together()) return fn(0, 2, call.window[0]);
  fn(0, 1, call.window[0]);
  fn(1, 1, call.window[1]);
}

/// Runs body(problem, head, stretch index, scratch) for all heads and stretches.
template <class T, class Body>
void run(const ConvSpeCall& call, const std::vector<Stretch>& all, int sides,
         const Body& body) {
  const auto count = static_cast<int64_t>(all.size());
  int64_t scratch = 0, work = 0;  // of direct; what is worth fourier is much anyway
  for (const Stretch& one : all) {
    scratch = std::max(
        scratch, kernels::conv_scratch<T>(problem_of<T>(call, one.window, sides, 0)));
    work += one.count * one.window.taps() * call.h * call.d * call.r * sides;
  }
  for_each_task_of<T>(work, call.h * count, scratch, [&](int64_t task, T* own) {
    const int64_t head = task / count, i = task % count;
    const Stretch& one = all[static_cast<size_t>(i)];
    body(problem_of<T>(call, one.window, sides, head), head, i, own);
  });
}

template <class T>
void forward(const ConvSpeCall& call, const std::array<Tensor, 2>& x,
             const std::array<Tensor, 2>& kernel, const std::array<Tensor, 2>& out) {
  for_each_place(call, [&](size_t first, int sides, const ConvWindow& window) {
    const auto all = stretches(call, window);
    run<T>(call, all, sides,
           [&](const ConvProblem<T>& p, int64_t head, int64_t i, T* scratch) {
             std::array<kernels::ConvSide<T>, 2> side;
             for (size_t s = 0; s < static_cast<size_t>(sides); ++s) {
               const Stretch& one = all[static_cast<size_t>(i)];
               side[s] = {
                   rows_of<const T>(x[first + s], head, one),
                   kernel[first + s].data_ptr<T>() + head * call.d * p.window.taps(),
                   rows_of<T>(out[first + s], head, one)};
             }
             kernels::conv_spe<T>(p, side.data(), scratch);
           });
  });
}

template <class T>
void backward(const ConvSpeCall& call, const std::array<Tensor, 2>& x,
              const std::array<Tensor, 2>& kernel, const std::array<Tensor, 2>& d_out,
              const std::array<Tensor, 2>& d_x, std::array<Tensor, 2>& d_kernel) {
  for_each_place(call, [&](size_t first, int sides, const ConvWindow& window) {
    const auto all = stretches(call, window);
    const auto count = static_cast<int64_t>(all.size());
    const int64_t size = call.d * window.taps();
    // Each stretch has its own share of the kernels' gradients:
    // [stretch, side, H D taps]
    const Tensor parts = at::empty({count, sides, call.h * size}, x[0].options());
    run<T>(call, all, sides,
           [&](const ConvProblem<T>& p, int64_t head, int64_t i, T* scratch) {
             std::array<kernels::ConvSideGradient<T>, 2> side;
             for (size_t s = 0; s < static_cast<size_t>(sides); ++s) {
               const Stretch& one = all[static_cast<size_t>(i)];
               const int64_t part = i * sides + static_cast<int64_t>(s);
               side[s] = {rows_of<const T>(x[first + s], head, one),
                          kernel[first + s].data_ptr<T>() + head * size,
                          rows_of<const T>(d_out[first + s], head, one),
                          rows_of<T>(d_x[first + s], head, one),
                          parts.data_ptr<T>() + (part * call.h + head) * size};
             }
             kernels::conv_spe_gradient<T>(p, side.data(), scratch);
           });
    for (int64_t i = 0; i < count; ++i)  // in this order, on any number of threads
      for (int64_t s = 0; s < sides; ++s) {
        Tensor& total = d_kernel[first + static_cast<size_t>(s)];
        total.add_(parts.select(0, i).select(0, s).view_as(total));
      }
  });
}

}  // namespace

std::tuple<Tensor, Tensor> conv_spe_cpu(const ConvSpeCall& call) {
  const auto make = [&](const Tensor& x) {
    return at::empty({call.b, call.h, x.size(2), call.r}, x.options());
  };
  const std::array<Tensor, 2> out = {make(call.q), make(call.k)};
  const std::array<Tensor, 2> kernel = {call.query_kernel.contiguous(),
                                        call.key_kernel.contiguous()};
  AT_DISPATCH_FLOATING_TYPES(call.q.scalar_type(), "conv_spe", [&] {
    forward<scalar_t>(call, {call.q, call.k}, kernel, out);
  });
  return {out[0], out[1]};
}

std::array<Tensor, 4> conv_spe_backward_cpu(const ConvSpeCall& call, const Tensor& d_q,
                                            const Tensor& d_k) {
  const auto empty = [](const Tensor& x) { return at::empty(x.sizes(), x.options()); };
  const std::array<Tensor, 2> kernel = {call.query_kernel.contiguous(),
                                        call.key_kernel.contiguous()};
  const std::array<Tensor, 2> d_x = {empty(call.q), empty(call.k)};
  std::array<Tensor, 2> d_kernel = {at::zeros(kernel[0].sizes(), kernel[0].options()),
                                    at::zeros(kernel[1].sizes(), kernel[1].options())};
  AT_DISPATCH_FLOATING_TYPES(call.q.scalar_type(), "conv_spe", [&] {
    backward<scalar_t>(call, {call.q, call.k}, kernel, {d_q, d_k}, d_x, d_kernel);
  });
  return {d_x[0], d_x[1], d_kernel[0], d_kernel[1]};
}

}  // namespace lagwise::ops
