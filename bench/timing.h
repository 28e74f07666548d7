#pragma once

#include <functional>
#include <string>
#include <vector>

namespace lagwise::bench {

/// One of the rivals of a comparison.
struct Side {
  std::function<void()> run;  ///< one call
  int threads = 1;
};

struct Times {
  double median_ms = 0;
  double best_ms = 0;  ///< the least disturbed repetition
};

/// How long to go on. A repetition calls a short side as often as fills
/// `repetition_ms`; `budget_ms` bounds all repetitions of a side together, but
/// `least` of them are always made.
struct Patience {
  int least = 5, most = 25;
  double repetition_ms = 2;
  double budget_ms = 1000;
};

/// Times the sides in turn, A B A B ..., after a warm-up of each, so that a slow
/// moment of the machine falls on all of them.
std::vector<Times> time_in_turn(const std::vector<Side>& sides,
                                const Patience& patience = {});

/// Times each side by itself, in three rounds, or in one where a call takes long; a
/// call of several seconds is made once and is its own warm-up. For sides that call
/// OpenBLAS on all cores: its threads spin for a while after a product and would take a
/// core from whoever is timed next; here the warm-up of each side bears that.
std::vector<Times> time_apart(const std::vector<Side>& sides,
                              const Patience& patience = {});

/// Threads of ATen's own loops, and so of lagwise.
void set_threads(int threads);

/// Threads of OpenBLAS, where it is loaded: it keeps a pool of its own, which ATen's
/// setting does not reach. Set once per run and not between sides: threads that it has
/// just started spin for a while and take a core away from whoever is timed next.
void set_blas_threads(int threads);

/// One line that says under what settings this process measures.
std::string describe_settings();

}  // namespace lagwise::bench
