#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <utility>

#include "lagwise/kernels/conv_spe.h"
#include "lagwise/ops/conv_spe.h"

namespace lagwise::ops {

/// conv_spe after all checks: words turned into what the kernels take.
struct ConvSpeCall {
  at::Tensor q, k, query_kernel, key_kernel, z;
  int64_t b = 0, h = 0, d = 0, r = 0;
  std::array<kernels::ConvWindow, 2> window = {};  ///< of queries and of keys
  std::array<int64_t, 3> pitch = {0, 0, 1};
  std::array<int64_t, 3> z_origin = {0, 0, 0};
  kernels::NoiseKind kind = kernels::NoiseKind::normal;
  Draw draw = {};
  bool chosen = false;  ///< the caller named the method; else the faster one is taken
  kernels::ConvMethod method = kernels::ConvMethod::direct;
  double scale = 1;

  /// Queries and keys stand at the same places and share their noise.
  bool together() const {
    return window[0].origin == window[1].origin && window[0].extent == window[1].extent;
  }
};

/// Checks everything once, so that the code below need not.
ConvSpeCall check_conv_spe(const at::Tensor& q, const at::Tensor& k,
                           const at::Tensor& query_kernel, const at::Tensor& key_kernel,
                           const ConvSpeOptions& options);

/// q', k'.
std::tuple<at::Tensor, at::Tensor> conv_spe_cpu(const ConvSpeCall& call);

/// Gradients of q, k, query_kernel and key_kernel.
std::array<at::Tensor, 4> conv_spe_backward_cpu(const ConvSpeCall& call,
                                                const at::Tensor& d_q,
                                                const at::Tensor& d_k);

}  // namespace lagwise::ops
