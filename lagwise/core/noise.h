#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace lagwise {

/// Names one row of draws within a Noise. Fields that mean nothing to the user
/// of the noise stay 0; one that is out of range is refused, never wrapped.
struct NoiseAt {
  int64_t layer = 0;        ///< [0, 2^16)
  int64_t head = 0;         ///< [0, 2^16)
  int64_t feature = 0;      ///< [0, 2^24)
  int64_t realisation = 0;  ///< [0, 2^24)
};

/// A row of draws, indexed by position in [-2^47, 2^47): each is a pure function
/// of the row and the position. For draws that have no position, let whichever
/// coordinate runs along the row take its place.
///
/// A fill gives out[i] = draw(first + i), rounded to T, whatever the split into
/// calls: a batch and a stream see the same noise. The three kinds of draw are
/// independent of each other. Position out of range: std::invalid_argument.
class NoiseRow {
 public:
  double uniform(int64_t position) const;  ///< in (0, 1); as a float it may round to 1
  double normal(int64_t position) const;   ///< mean 0, variance 1, |x| < 6.8
  double sign(int64_t position) const;     ///< -1 or +1, each half of the time

  template <class T>
  void fill_uniform(int64_t first, std::span<T> out) const;  ///< T: float, double
  template <class T>
  void fill_normal(int64_t first, std::span<T> out) const;
  template <class T>
  void fill_sign(int64_t first, std::span<T> out) const;

  /// The row so many features and realisations on, within the range of both.
  NoiseRow later(int64_t features, int64_t realisations) const {
    const auto more = static_cast<uint64_t>(features) << 24;
    return NoiseRow(key_, layer_, rest_ + more + static_cast<uint64_t>(realisations));
  }

  /// The key and the fixed parts of the counter, for kernels that draw many rows at
  /// once: see Noise.
  struct Counter {
    uint64_t key, layer, rest;
  };
  Counter counter() const { return {key_, layer_, rest_}; }

 private:
  friend class Noise;
  NoiseRow(uint64_t key, uint64_t layer, uint64_t rest)
      : key_(key), layer_(layer), rest_(rest) {}

  template <class Kind>
  double draw(int64_t position) const;
  template <class Kind, class T>
  void fill(int64_t first, std::span<T> out) const;
  template <class Kind>
  std::array<double, 4> block(int64_t index) const;

  uint64_t key_;
  uint64_t layer_;  // the part of the counter's low half that is fixed
  uint64_t rest_;   // the counter's high half
};

/// Random numbers that are functions, not a sequence.
///
/// There is no state to advance, so threads and processes agree without talking,
/// any length can be extended, and a run resumes by knowing its seed and step.
///
///     moment   = stream 16 | micro_step 16 | step 32
///     key      = P2[seed / 2^32](P2[seed mod 2^32](moment))
///     counter  = head 16 | feature 24 | realisation 24
///                | layer 16 | kind 2 | position/4 46
///     w_0..w_3 = P4[key](counter): word w_(position mod 4) serves the position
///
/// (fields with their bits, highest first) with P4 = Philox4x32-10, P2 = Philox2x32-10:
/// for a given key each permutes its counters. So no two coordinates of one seed ever
/// share a key and counter, and those of two seeds do with probability 2^-64.
///
///     uniform  u(w) = (w + 1/2) / 2^32
///     sign     +1 if the top bit of w is set, else -1
///     normal   of words 0 and 1, and again of 2 and 3 (Box and Muller, 1958):
///              r cos(a) and r sin(a)
///              with r = sqrt(-2 ln u(w_0)), a = 2 pi u(w_1)
///
/// Numerics  the same bits on every machine and compiler, for ever: a test pins
///           them. Normals use own series for ln, cos and sin, because those of
///           the C library differ in the last bit between processors.
/// Paper     Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011.
class Noise {
 public:
  /// `stream` names the use (each kind of noise in a program takes its own), in
  /// [0, 2^16); `step` in [0, 2^32) and `micro_step` in [0, 2^16) the moment.
  explicit Noise(uint64_t seed, int64_t stream = 0, int64_t step = 0,
                 int64_t micro_step = 0);

  NoiseRow at(const NoiseAt& at) const;

 private:
  uint64_t key_;
};

}  // namespace lagwise
