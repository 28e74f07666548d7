#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lagwise {

/// How the frequencies of RoPE are stretched so that a model trained on `original`
/// positions serves more of them.
struct RopeScaling {
  std::string kind = "none";  ///< none, linear, ntk, dynamic_ntk, yarn, llama3
  double factor = 1;          ///< by how much longer
  double original = 2048;     ///< positions trained on
  double length = 0;          ///< dynamic_ntk: longest position, known beforehand
  double low = 1, high = 4;   ///< llama3: periods in `original` between which it blends
  double beta_fast = 32, beta_slow = 1;  ///< yarn: the same, in turns
};

struct RopeFrequencies {
  std::vector<double> f;  ///< radians per position, d/2 of them
  double attention = 1;   ///< multiplies cos and sin (YaRN's temperature)
};

/// The frequencies of d rotated coordinates, d even:
///
///     none         f_j = base^(-2j/d)
///     linear       f_j / factor                                  (arXiv:2306.15595)
///     ntk          base <- base factor^(d/(d-2))
///     dynamic_ntk  base <- base (factor L/original - (factor - 1))^(d/(d-2)),
///                  L = max(length, original)
///     yarn         a blend of f_j and f_j/factor by turns made   (arXiv:2309.00071)
///     llama3       a blend of the two by wavelength
RopeFrequencies rope_frequencies(int64_t d, double base, const RopeScaling& scaling);

}  // namespace lagwise
