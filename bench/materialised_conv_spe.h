#pragma once

#include <ATen/core/Tensor.h>

#include <tuple>

namespace lagwise::bench {

/// ConvSPE as its authors wrote it, in plain torch operators: draw noise (R, H D, 4
/// kernel + N), run two depthwise convolutions over it, cut out the codes [N, H, D, R],
/// mix in the gate, multiply and sum over d.
///
/// Shapes    q, k [B, H, N, D]; kernels [H D, 1, kernel]; gate [H, D] or undefined.
/// Requires  z (R, H D, 4 kernel + N) and eps [H, D, R] to use given noise; undefined:
///           drawn by torch, as the authors do.
std::tuple<at::Tensor, at::Tensor> materialised_conv_spe(
    const at::Tensor& q, const at::Tensor& k, const at::Tensor& query_kernel,
    const at::Tensor& key_kernel, const at::Tensor& gate, int64_t realizations,
    const at::Tensor& z = {}, const at::Tensor& eps = {});

}  // namespace lagwise::bench
