#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lagwise/core/noise.h"
#include "lagwise/data/music/token_scheme.h"

namespace lagwise {

/// How the next token is drawn from the logits.
struct Sampling {
  double temperature = 1;  ///< 0: the most likely token, no chance
  int64_t top_k = 0;       ///< of the k most likely tokens alone; 0: all
  double top_p = 1;        ///< of the fewest whose probabilities exceed p; 0: of one
  uint64_t seed = 0;
};

/// std::invalid_argument says what is legal.
void check(const Sampling& sampling);

/// Draws the tokens of one sample.
///
///     p(v) = softmax(logits / temperature) over the legal tokens, then the k most
///     likely, then the fewest of those that exceed top_p of what is left
///     (core/nucleus.h)
///
/// Tokens are ordered by falling logit, equal ones by id, and the first is taken whose
/// running sum of p exceeds u = uniform(seed, sample, position): a pure function, so
/// that sample 3 is the same whether it is drawn alone or with others, and a text
/// continued in two calls is the one continued in one.
class Sampler {
 public:
  Sampler(const Sampling& sampling, int64_t sample);

  /// The token at `position` of the sequence. `grammar`: which are legal; nullptr: all.
  /// -1 where none is. Diverged where a logit is not a number.
  int64_t pick(std::span<const float> logits, int64_t position,
               const data::Grammar* grammar = nullptr);

 private:
  struct Candidate {
    float logit;
    int64_t id;
  };
  void gather(std::span<const float> logits, const data::Grammar* grammar);

  Sampling sampling_;
  NoiseRow noise_;
  std::vector<Candidate> candidates_;  // kept for its memory
  std::vector<double> logits_;
};

}  // namespace lagwise
