#pragma once

#include <ATen/core/Tensor.h>

#include "bench/linear_calls.h"
#include "lagwise/ops/exact_attention.h"

/// What `lagwise bench exact` times: each function makes its inputs ready and returns
/// the call to be timed, which returns what it computed.
namespace lagwise::bench {

/// One head dimension for all: q, k, v [1, H, N, D].
struct ExactInputs {
  at::Tensor q, k, v, grad_out;
  at::Tensor lag_bias;  ///< [H, 2N-1], ALiBi's
  at::Tensor table;     ///< [N, D], Huang's: the last row for distance 0
};

ExactInputs exact_inputs(int64_t n, int64_t heads, int64_t d);

enum class Pass { forward, both, backward };

/// Ours: full with ALiBi, causal with ALiBi, causal with Huang's table (its gradient
/// included).
Call our_alibi(const ExactInputs& in, bool causal, Pass pass);
Call our_huang(const ExactInputs& in, Pass pass);

/// Plain ATen with the N x N matrix (naive_relative.h).
Call naive_alibi(const ExactInputs& in, Pass pass);
Call naive_huang(const ExactInputs& in, Pass pass);

/// Full linear attention with ALiBi's bias as a Toeplitz factor.
Call our_toeplitz(const ExactInputs& in, Pass pass);

/// A cache of `length` tokens, and a token that reads it.
struct ExactDecoding {
  at::Tensor q;         ///< [1, H, D]
  at::Tensor k, v;      ///< [1, H, length, D], Float or BFloat16
  at::Tensor lag_bias;  ///< [H, length]
};

ExactDecoding exact_decoding(int64_t length, int64_t heads, int64_t d,
                             at::ScalarType storage);
Call our_exact_step(const ExactDecoding& at);
Call naive_step(const ExactDecoding& at);

/// Reads every byte of the cache once, and does nothing else.
Call read_cache(const ExactDecoding& at);

}  // namespace lagwise::bench
