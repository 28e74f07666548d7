#pragma once

/// The series behind normal draws. core/noise.cpp computes one draw at a time and
/// kernels/noise_panel.cpp a panel of them; both must end with the same bits, so the
/// coefficients stand here once.
namespace lagwise::noise_series {

/// artanh(s) / s in powers of s^2: eleven terms suffice for |s| < 0.172.
inline constexpr double kArtanh[] = {1,        1.0 / 3,  1.0 / 5,  1.0 / 7,
                                     1.0 / 9,  1.0 / 11, 1.0 / 13, 1.0 / 15,
                                     1.0 / 17, 1.0 / 19, 1.0 / 21};

/// cos(x) in powers of x^2, for |x| <= pi / 4.
inline constexpr double kCos[] = {1,
                                  -1.0 / 2,
                                  1.0 / 24,
                                  -1.0 / 720,
                                  1.0 / 40320,
                                  -1.0 / 3628800,
                                  1.0 / 479001600,
                                  -1.0 / 87178291200,
                                  1.0 / 20922789888000};

/// sin(x) / x in powers of x^2, for |x| <= pi / 4.
inline constexpr double kSin[] = {1,
                                  -1.0 / 6,
                                  1.0 / 120,
                                  -1.0 / 5040,
                                  1.0 / 362880,
                                  -1.0 / 39916800,
                                  1.0 / 6227020800,
                                  -1.0 / 1307674368000,
                                  1.0 / 355687428096000};

}  // namespace lagwise::noise_series
