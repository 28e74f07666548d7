#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lagwise/core/grammar.h"
#include "lagwise/core/noise.h"

namespace lagwise {

/// How the next token is drawn from the logits.
struct Sampling {
  double temperature = 1;          ///< 0: the most likely token, no chance
  int64_t top_k = 0;               ///< of the k most likely tokens alone; 0: all
  double top_p = 1;                ///< of the fewest whose probabilities exceed p;
                                   ///<   0: of one
  double min_p = 0;                ///< of those at least so many times as probable as
                                   ///<   the most likely; 0: all
  double repetition_penalty = 1;   ///< above 1: what was said lately is less likely
  int64_t repetition_window = 64;  ///< how many tokens back that looks
  uint64_t seed = 0;
};

/// std::invalid_argument says what is legal.
void check(const Sampling& sampling);

/// Draws the tokens of one sample.
///
///     l(v)  the logit; of a token among the last `repetition_window` ones, divided by
///           the penalty where it is above 0, multiplied where it is below
///     p(v)  softmax(l / temperature) over the legal tokens; of those the k most likely,
///           then the fewest that exceed top_p of what is left, then those with
///           p >= min_p times the largest
///
/// Tokens are ordered by falling l, equal ones by id, and the first is taken whose
/// running sum of p exceeds u = uniform(seed, sample, position) of the whole: a pure
/// function, so that sample 3 is the same whether it is drawn alone or with others, and
/// a text continued in two calls is the one continued in one.
///
/// Papers  top k: Fan et al. 2018; top p: Holtzman et al. 2020; min p: Nguyen et al.
///         2024; the penalty: Keskar et al., "CTRL", 2019.
class Sampler {
 public:
  Sampler(const Sampling& sampling, int64_t sample);

  /// The token at `position` of the sequence. `history`: the tokens before it, the
  /// latest last; of more than the window the latest count. `grammar`: which are legal;
  /// nullptr: all. -1 where none is. Diverged where a logit is not a number.
  int64_t pick(std::span<const float> logits, int64_t position,
               std::span<const int64_t> history = {}, const Grammar* grammar = nullptr);

 private:
  struct Candidate {
    double logit, weight;
    int64_t id;
  };
  struct Kept {
    size_t sorted = 0;  ///< of the candidates, at their end
    double mass = 0;    ///< of all of them
  };
  static bool after(const Candidate& a, const Candidate& b);

  void gather(std::span<const float> logits, const Grammar* grammar);
  void penalise(std::span<const int64_t> history);
  void keep_top_k();
  double weigh(double top);
  Kept cut_tail(double whole);
  int64_t first_above(double goal, size_t sorted);
  const Candidate& next_likeliest(size_t sorted);

  Sampling sampling_;
  NoiseRow noise_;
  std::vector<Candidate> candidates_;  // kept for its memory
  std::vector<bool> said_;
};

/// ln softmax(logits)[token]: how likely the model itself held the token, whatever the
/// temperature, the penalty, the grammar and the choice of few make of it.
double log_probability(std::span<const float> logits, int64_t token);

/// Whether `tokens` ends with one of the `stops`. An empty stop ends nothing.
bool ends_with_any(std::span<const int64_t> tokens,
                   std::span<const std::vector<int64_t>> stops);

}  // namespace lagwise
