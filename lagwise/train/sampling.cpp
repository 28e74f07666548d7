#include "lagwise/train/sampling.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "lagwise/core/errors.h"
#include "lagwise/core/nucleus.h"
#include "lagwise/ops/encoded.h"

namespace lagwise {

void check(const Sampling& sampling) {
  if (!(sampling.temperature >= 0) || std::isinf(sampling.temperature))
    throw std::invalid_argument("temperature: expected a number from 0 on, got " +
                                std::to_string(sampling.temperature));
  if (sampling.top_k < 0)
    throw std::invalid_argument("top-k: expected 0 (all tokens) or more, got " +
                                std::to_string(sampling.top_k));
  if (!(sampling.top_p >= 0 && sampling.top_p <= 1))
    throw std::invalid_argument("top-p: expected a number from 0 to 1, got " +
                                std::to_string(sampling.top_p));
}

Sampler::Sampler(const Sampling& sampling, int64_t sample)
    : sampling_(sampling),
      noise_(Noise(sampling.seed, streams::kSampling).at({.feature = sample})) {
  check(sampling);
}

void Sampler::gather(std::span<const float> logits, const data::Grammar* grammar) {
  candidates_.clear();
  for (size_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i]))
      throw Diverged("the model gives no numbers: the logit of token " +
                     std::to_string(i) + " is NaN");
    if (grammar == nullptr || grammar->legal(static_cast<int32_t>(i)))
      candidates_.push_back({logits[i], static_cast<int64_t>(i)});
  }
  std::sort(candidates_.begin(), candidates_.end(),
            [](const Candidate& a, const Candidate& b) {
              return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
            });
  if (sampling_.top_k > 0 && candidates_.size() > static_cast<size_t>(sampling_.top_k))
    candidates_.resize(static_cast<size_t>(sampling_.top_k));
}

int64_t Sampler::pick(std::span<const float> logits, int64_t position,
                      const data::Grammar* grammar) {
  gather(logits, grammar);
  if (candidates_.empty()) return -1;
  const double top = candidates_[0].logit;
  if (sampling_.temperature == 0 || std::isinf(top)) return candidates_[0].id;
  logits_.clear();
  for (const Candidate& candidate : candidates_) logits_.push_back(candidate.logit);
  // Candidates are sorted, so the nucleus is the first few of them.
  const Nucleus kept =
      nucleus(softmax(logits_, sampling_.temperature), sampling_.top_p);
  const double goal = noise_.uniform(position);
  double reached = 0;
  for (size_t i = 0; i < kept.ids.size(); ++i) {
    reached += kept.probabilities[i];
    if (reached > goal) return candidates_[static_cast<size_t>(kept.ids[i])].id;
  }
  return candidates_[kept.ids.size() - 1].id;  // what rounding left of 1
}

}  // namespace lagwise
