#pragma once

#include <cstdint>

#include "lagwise/core/mat_view.h"

namespace lagwise::kernels {

/// Which keys a query sees. The lag of row i and key j is i + shift - j.
struct Sight {
  bool causal = false;  ///< lag >= 0
  int64_t shift = 0;    ///< position of query row 0 minus position of key row 0
  int64_t window = 0;   ///< |lag| < window; 0: any distance
};

/// One head of exact attention and the tables it reads by lag. Tables may be empty.
template <class T>
struct ExactHead {
  MatView<const T> q;  ///< [N, D]
  MatView<const T> k;  ///< [M, D]
  MatView<const T> v;  ///< [M, E]
  T scale = 1;
  Sight sight = {};
  MatView<const T> lag_bias = {};    ///< [L, 1]
  MatView<const T> lag_keys = {};    ///< [L, D]
  MatView<const T> lag_values = {};  ///< [L, E]
  int64_t lag_zero = 0;  ///< row i and key j read table entry lag_zero + i - j
  MatView<const T> key_bias = {};  ///< [M, 1]
};

/// Softmax attention with tables by lag, tile by tile: no N x M matrix is formed.
///
///     s_ij = scale (q_i . k_j + q_i . lag_keys[c]) + lag_bias[c] + key_bias[j]
///     c    = zero + i - j
///     w_ij = exp(s_ij) / sum over visible j' of exp(s_ij')
///     o_i  = sum over visible j of w_ij (v_j + lag_values[c])
///
/// Shapes    out [N, E]; stats [N, 2]: the largest score of each row (less the bias of
///           the last key that its tile sees), and one over the sum of
///           exp(s - largest). Rows [begin, end) of both are written.
/// Requires  `packed`, of exact_packed numbers, filled by exact_pack for this head;
///           scratch of exact_scratch numbers; L covers every i - j.
/// Cost      2 N M (D + E) flops over visible pairs; lag_keys add 2 N M D and
///           lag_values 2 N M E, and a twentieth for the ragged band of a tile.
/// Threads   none; rows may be split between callers at multiples of kExactRows:
///           the bits stay the same.
/// Numerics  rows that see nothing, or only keys with a bias of -inf, give zeros. NaN
///           in gives NaN out, and so do scores that are all -inf of themselves: 0 / 0.
///           Values of hidden keys are never touched, so a NaN there stays hidden.
/// Paper     Milakov, Gimelshein, arXiv:1805.02867 (the online softmax); Dao et al.,
///           arXiv:2205.14135 (tiles, recomputed backward).
template <class T>
void exact_rows(const ExactHead<T>& head, const T* packed, int64_t begin, int64_t end,
                MatView<T> out, MatView<T> stats, T* scratch) noexcept;

/// Keys, values and tables in the order that exact_rows reads them.
template <class T>
void exact_pack(const ExactHead<T>& head, T* packed) noexcept;
template <class T>
int64_t exact_packed(const ExactHead<T>& head);
template <class T>
int64_t exact_scratch(const ExactHead<T>& head);

/// Rows of a tile. Callers that split rows do it at multiples of this.
inline constexpr int64_t kExactRows = 96;
/// Keys of a tile. Callers that split keys do it at multiples of this.
inline constexpr int64_t kExactKeys = 288;

/// Where exact_gradient writes, for the keys of one call. Empty: not computed.
template <class T>
struct ExactGradients {
  MatView<T> q;              ///< [N, D]: the part that comes through these keys
  MatView<T> k;              ///< [M, D]: rows [begin, end) are written
  MatView<T> v;              ///< [M, E]: rows [begin, end) are written
  MatView<T> lag_bias;       ///< [L, 1]: the part of these keys; so are the next two
  MatView<T> lag_keys;       ///< [L, D]
  MatView<T> lag_values;     ///< [L, E]
  MatView<T> key_bias = {};  ///< [M, 1]: rows [begin, end) are written
};

/// The gradients of exact_rows that pass through keys [begin, end), with
/// g_i = d loss / d o_i:
///
///     dp_ij = g_i . (v_j + lag_values[c])     ds_ij = w_ij (dp_ij - g_i . o_i)
///     dv_j  = sum_i w_ij g_i                  dk_j  = scale sum_i ds_ij q_i
///     dq_i  = scale sum_j ds_ij (k_j + lag_keys[c])
///     d lag_bias[c] = sum_{i-j=c} ds_ij       d lag_keys[c] = scale sum ds_ij q_i
///     d lag_values[c] = sum_{i-j=c} w_ij g_i  d key_bias[j] = sum_i ds_ij
///
/// Weights are computed again from the scores and `stats`. Table rows that these
/// rows and keys cannot reach come out zero.
/// Requires  `packed`, of exact_gradient_packed numbers, filled by
///           exact_gradient_pack for this head; scratch of exact_gradient_scratch.
/// Threads   none; keys may be split between callers at multiples of kExactKeys.
template <class T>
void exact_gradient(const ExactHead<T>& head, MatView<const T> d_out,
                    MatView<const T> stats, const T* packed, int64_t begin, int64_t end,
                    const ExactGradients<T>& to, T* scratch) noexcept;

template <class T>
void exact_gradient_pack(const ExactHead<T>& head, MatView<const T> out,
                         MatView<const T> d_out, T* packed) noexcept;
template <class T>
int64_t exact_gradient_packed(const ExactHead<T>& head);
template <class T>
int64_t exact_gradient_scratch(const ExactHead<T>& head, int64_t keys);

}  // namespace lagwise::kernels
