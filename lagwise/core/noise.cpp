#include "lagwise/core/noise.h"

#include <Random123/philox.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>
#include <stdexcept>
#include <string>

#include "lagwise/core/noise_series.h"

// a * b + c must round twice everywhere: a fused multiply-add, where the
// processor has one, would change the last bit of a normal.
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off")
#endif

namespace lagwise {
namespace {

using Words = std::array<uint32_t, 4>;
using Draws = std::array<double, 4>;

constexpr uint32_t low_half(uint64_t x) { return static_cast<uint32_t>(x); }
constexpr uint32_t high_half(uint64_t x) { return static_cast<uint32_t>(x >> 32); }

// A permutation of 64-bit numbers, one for each key.
uint64_t philox2(uint32_t key, uint64_t counter) {
  const r123::Philox2x32::ctr_type in = {{low_half(counter), high_half(counter)}};
  const auto out = r123::Philox2x32()(in, {{key}});
  return uint64_t{out[1]} << 32 | out[0];
}

// A permutation of 128-bit numbers, one for each key.
Words philox4(uint64_t key, uint64_t low, uint64_t high) {
  const r123::Philox4x32::ctr_type in = {
      {low_half(low), high_half(low), low_half(high), high_half(high)}};
  const auto out = r123::Philox4x32()(in, {{low_half(key), high_half(key)}});
  return {out[0], out[1], out[2], out[3]};
}

// The series below use only + - * / and sqrt, which IEEE 754 defines to the bit.

// c[0] + c[1] x + c[2] x^2 + ...
template <size_t size>
double polynomial(const double (&c)[size], double x) {
  double sum = c[size - 1];
  for (size_t i = size - 1; i-- > 0;) sum = sum * x + c[i];
  return sum;
}

// ln(2^e m) = e ln 2 + 2 artanh(s) with s = (m - 1) / (m + 1), where 1/sqrt(2)
// <= m < sqrt(2) keeps |s| < 0.172 and eleven terms of the series suffice.
double natural_log(double x) {
  constexpr uint64_t kSqrtHalf = std::bit_cast<uint64_t>(std::numbers::sqrt2 / 2);
  const auto bits = std::bit_cast<uint64_t>(x);
  // Subtracting sqrt(1/2) as bits leaves the exponent of x / sqrt(1/2) on top.
  const int64_t e = static_cast<int64_t>(bits - kSqrtHalf) >> 52;
  const auto m = std::bit_cast<double>(bits - (static_cast<uint64_t>(e) << 52));
  const double s = (m - 1) / (m + 1);
  return static_cast<double>(e) * std::numbers::ln2 +
         2 * s * polynomial(noise_series::kArtanh, s * s);
}

struct Turn {
  double cosine, sine;
};

// cos and sin of 2 pi u(w). The nearest quarter turn is split off exactly, in
// whole numbers; Taylor's series serve the rest, at most an eighth of a turn.
Turn turn(uint32_t w) {
  const uint32_t quarters = (w + (1u << 29)) >> 30;  // wraps: four quarters are none
  const auto rest = static_cast<int32_t>(w - (quarters << 30));
  const double x = (rest + 0.5) * 0x1p-32 * (2 * std::numbers::pi);
  const double c = polynomial(noise_series::kCos, x * x),
               s = x * polynomial(noise_series::kSin, x * x);
  switch (quarters) {
    case 0:
      return {c, s};
    case 1:
      return {-s, c};
    case 2:
      return {-c, -s};
    default:
      return {s, -c};
  }
}

// What four random words become. The number is the kind's place in the counter.
struct Uniform {
  static constexpr uint64_t kNumber = 0;
  static double of(uint32_t w) { return (w + 0.5) * 0x1p-32; }
  static Draws of(const Words& w) { return {of(w[0]), of(w[1]), of(w[2]), of(w[3])}; }
};

struct Normal {
  static constexpr uint64_t kNumber = 1;
  static Draws of(const Words& w) {
    const double r = std::sqrt(-2 * natural_log(Uniform::of(w[0])));
    const double t = std::sqrt(-2 * natural_log(Uniform::of(w[2])));
    const Turn a = turn(w[1]), b = turn(w[3]);
    return {r * a.cosine, r * a.sine, t * b.cosine, t * b.sine};
  }
};

struct Sign {
  static constexpr uint64_t kNumber = 2;
  static double of(uint32_t w) { return w >> 31 ? 1.0 : -1.0; }
  static Draws of(const Words& w) { return {of(w[0]), of(w[1]), of(w[2]), of(w[3])}; }
};

// `value` as a field of so many bits of a key or counter. Wrapping it would hand
// two coordinates the same noise.
uint64_t field(const char* what, int64_t value, int bits) {
  if (value < 0 || value >> bits != 0)
    throw std::invalid_argument(std::string("noise: expected ") + what + " in [0, 2^" +
                                std::to_string(bits) + "), got " +
                                std::to_string(value));
  return static_cast<uint64_t>(value);
}

void check_positions(int64_t first, uint64_t count) {
  constexpr int64_t kEnd = int64_t{1} << 47;
  if (first < -kEnd || first > kEnd || count > static_cast<uint64_t>(kEnd - first))
    throw std::invalid_argument("noise: expected positions in [-2^47, 2^47), got " +
                                std::to_string(count) + " from " +
                                std::to_string(first));
}

}  // namespace

Noise::Noise(uint64_t seed, int64_t stream, int64_t step, int64_t micro_step) {
  const uint64_t moment = field("stream", stream, 16) << 48 |
                          field("micro_step", micro_step, 16) << 32 |
                          field("step", step, 32);
  key_ = philox2(high_half(seed), philox2(low_half(seed), moment));
}

NoiseRow Noise::at(const NoiseAt& at) const {
  const uint64_t rest = field("head", at.head, 16) << 48 |
                        field("feature", at.feature, 24) << 24 |
                        field("realisation", at.realisation, 24);
  return NoiseRow(key_, field("layer", at.layer, 16) << 48, rest);
}

// The draws at positions 4 index .. 4 index + 3.
template <class Kind>
Draws NoiseRow::block(int64_t index) const {
  constexpr uint64_t kLow46 = (uint64_t{1} << 46) - 1;
  const uint64_t low =
      layer_ | Kind::kNumber << 46 | (static_cast<uint64_t>(index) & kLow46);
  return Kind::of(philox4(key_, low, rest_));
}

// Shifting right rounds towards minus infinity, also below zero (C++20).
template <class Kind>
double NoiseRow::draw(int64_t position) const {
  check_positions(position, 1);
  return block<Kind>(position >> 2)[static_cast<size_t>(position & 3)];
}

template <class Kind, class T>
void NoiseRow::fill(int64_t first, std::span<T> out) const {
  check_positions(first, out.size());
  auto lane = static_cast<size_t>(first & 3);  // only the first block starts inside
  int64_t index = first >> 2;
  for (size_t done = 0; done < out.size(); ++index, lane = 0) {
    const Draws draws = block<Kind>(index);
    const size_t end = std::min<size_t>(4, lane + out.size() - done);
    for (; lane < end; ++lane) out[done++] = static_cast<T>(draws[lane]);
  }
}

double NoiseRow::uniform(int64_t position) const { return draw<Uniform>(position); }
double NoiseRow::normal(int64_t position) const { return draw<Normal>(position); }
double NoiseRow::sign(int64_t position) const { return draw<Sign>(position); }

template <class T>
void NoiseRow::fill_uniform(int64_t first, std::span<T> out) const {
  fill<Uniform>(first, out);
}
template <class T>
void NoiseRow::fill_normal(int64_t first, std::span<T> out) const {
  fill<Normal>(first, out);
}
template <class T>
void NoiseRow::fill_sign(int64_t first, std::span<T> out) const {
  fill<Sign>(first, out);
}

template void NoiseRow::fill_uniform(int64_t, std::span<float>) const;
template void NoiseRow::fill_uniform(int64_t, std::span<double>) const;
template void NoiseRow::fill_normal(int64_t, std::span<float>) const;
template void NoiseRow::fill_normal(int64_t, std::span<double>) const;
template void NoiseRow::fill_sign(int64_t, std::span<float>) const;
template void NoiseRow::fill_sign(int64_t, std::span<double>) const;

}  // namespace lagwise
