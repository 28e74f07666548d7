#include "lagwise/core/sampler.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "lagwise/core/errors.h"
#include "lagwise/core/noise_streams.h"

namespace lagwise {
namespace {

template <class T>
void expect(bool legal, const char* name, const char* range, T got) {
  if (!legal)
    throw std::invalid_argument(std::string(name) + ": expected " + range + ", got " +
                                std::to_string(got));
}

bool within(double x, double least, double most) { return x >= least && x <= most; }

}  // namespace

void check(const Sampling& s) {
  expect(s.temperature >= 0 && !std::isinf(s.temperature), "temperature",
         "a number from 0 on", s.temperature);
  expect(s.top_k >= 0, "top-k", "0 (all tokens) or more", s.top_k);
  expect(within(s.top_p, 0, 1), "top-p", "a number from 0 to 1", s.top_p);
  expect(within(s.min_p, 0, 1), "min-p", "a number from 0 to 1", s.min_p);
  expect(s.repetition_penalty > 0 && !std::isinf(s.repetition_penalty),
         "repetition-penalty", "a number above 0", s.repetition_penalty);
  expect(s.repetition_window >= 0, "repetition-window", "0 (no tokens) or more",
         s.repetition_window);
}

Sampler::Sampler(const Sampling& sampling, int64_t sample)
    : sampling_(sampling),
      noise_(Noise(sampling.seed, streams::kSampling).at({.feature = sample})) {
  check(sampling);
}

/// The order of heaps that have the likeliest at their front.
bool Sampler::after(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit < b.logit : a.id > b.id;
}

void Sampler::gather(std::span<const float> logits, const Grammar* grammar) {
  candidates_.clear();
  for (size_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i]))
      throw Diverged("the model gives no numbers: the logit of token " +
                     std::to_string(i) + " is NaN");
    if (grammar == nullptr || grammar->legal(static_cast<int32_t>(i)))
      candidates_.push_back({logits[i], 0, static_cast<int64_t>(i)});
  }
}

void Sampler::penalise(std::span<const int64_t> history) {
  const double penalty = sampling_.repetition_penalty;
  const auto window = static_cast<size_t>(sampling_.repetition_window);
  if (penalty == 1 || candidates_.empty()) return;
  said_.assign(static_cast<size_t>(candidates_.back().id) + 1, false);
  for (const int64_t token : history.last(std::min(window, history.size())))
    if (token >= 0 && static_cast<size_t>(token) < said_.size())
      said_[static_cast<size_t>(token)] = true;
  for (Candidate& candidate : candidates_)
    if (said_[static_cast<size_t>(candidate.id)])
      candidate.logit *= candidate.logit > 0 ? 1 / penalty : penalty;
}

void Sampler::keep_top_k() {
  const auto k = static_cast<size_t>(sampling_.top_k);
  if (k == 0 || k >= candidates_.size()) return;
  std::nth_element(candidates_.begin(), candidates_.begin() + sampling_.top_k,
                   candidates_.end(),
                   [](const Candidate& a, const Candidate& b) { return after(b, a); });
  candidates_.resize(k);
}

/// Weighs the candidates, the one of the logit `top` with 1; returns the sum.
double Sampler::weigh(double top) {
  double sum = 0;
  for (Candidate& one : candidates_)
    sum += one.weight = std::exp((one.logit - top) / sampling_.temperature);
  return sum;
}

/// The candidates are a heap but for the `sorted` likeliest, which stand at the end in
/// rising order: most draws are decided by the first few, and so need no more of them.
const Sampler::Candidate& Sampler::next_likeliest(size_t sorted) {
  const auto end = candidates_.end() - static_cast<int64_t>(sorted);
  std::pop_heap(candidates_.begin(), end, after);
  return *(end - 1);
}

/// Drops what top p and min p leave out, of weights that sum to `whole`.
Sampler::Kept Sampler::cut_tail(double whole) {
  if (sampling_.top_p == 1 && sampling_.min_p == 0) return {0, whole};
  Kept kept;
  while (kept.sorted < candidates_.size()) {
    const double next = next_likeliest(kept.sorted).weight;
    if (kept.sorted > 0 && next < sampling_.min_p) break;  // the likeliest weighs 1
    ++kept.sorted;
    kept.mass += next;
    if (sampling_.top_p < 1 && kept.mass > sampling_.top_p * whole) break;
  }
  candidates_.erase(candidates_.begin(),
                    candidates_.end() - static_cast<int64_t>(kept.sorted));
  return kept;
}

/// The first, in falling order, whose running sum of weights exceeds `goal`.
int64_t Sampler::first_above(double goal, size_t sorted) {
  double reached = 0;
  int64_t last = -1;
  for (size_t i = 0; i < candidates_.size(); ++i) {
    const Candidate& next =
        i < sorted ? candidates_[candidates_.size() - 1 - i] : next_likeliest(i);
    if (next.weight == 0) break;
    last = next.id;
    reached += next.weight;
    if (reached > goal) break;
  }
  return last;  // rounding may leave a little of the goal
}

int64_t Sampler::pick(std::span<const float> logits, int64_t position,
                      std::span<const int64_t> history, const Grammar* grammar) {
  gather(logits, grammar);
  if (candidates_.empty()) return -1;
  penalise(history);
  const Candidate likeliest =
      *std::max_element(candidates_.begin(), candidates_.end(), after);
  if (sampling_.temperature == 0 || std::isinf(likeliest.logit)) return likeliest.id;
  keep_top_k();
  const double whole = weigh(likeliest.logit);
  std::make_heap(candidates_.begin(), candidates_.end(), after);
  const Kept kept = cut_tail(whole);
  return first_above(noise_.uniform(position) * kept.mass, kept.sorted);
}

double log_probability(std::span<const float> logits, int64_t token) {
  const double top = *std::max_element(logits.begin(), logits.end());
  const double own = logits[static_cast<size_t>(token)];
  if (std::isinf(top)) return own == top ? 0 : own - top;
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - top);
  return own - top - std::log(sum);
}

bool ends_with_any(std::span<const int64_t> tokens,
                   std::span<const std::vector<int64_t>> stops) {
  const auto ends_with = [&](const std::vector<int64_t>& stop) {
    return !stop.empty() && stop.size() <= tokens.size() &&
           std::equal(stop.begin(), stop.end(), tokens.last(stop.size()).begin());
  };
  return std::any_of(stops.begin(), stops.end(), ends_with);
}

}  // namespace lagwise
