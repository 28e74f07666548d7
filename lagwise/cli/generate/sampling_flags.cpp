#include "lagwise/cli/generate/sampling_flags.h"

#include <stdexcept>

#include "lagwise/cli/checks.h"

namespace lagwise::cli {
namespace {

void add_choice_flags(CLI::App& verb, SamplingFlags& flags) {
  verb.add_option("--temperature", flags.temperature,
                  "Below 1 more likely tokens, above 1 less likely ones; 0 always the "
                  "most likely")
      ->check(number(0, 1000))
      ->capture_default_str();
  verb.add_option("--top-k", flags.top_k,
                  "Draw from the so many most likely tokens alone; 0: from all")
      ->check(whole_number(0, kMostCount))
      ->capture_default_str();
  verb.add_option("--top-p", flags.top_p,
                  "Draw from the fewest tokens that together are so probable, 0 to 1")
      ->check(number(0, 1))
      ->capture_default_str();
  verb.add_option("--min-p", flags.min_p,
                  "Draw from the tokens that are at least so many times as probable as "
                  "the most likely, 0 to 1")
      ->check(number(0, 1))
      ->capture_default_str();
}

void add_repetition_flags(CLI::App& verb, SamplingFlags& flags) {
  verb.add_option("--repetition-penalty", flags.repetition_penalty,
                  "Above 1: tokens of the last --repetition-window are less likely")
      ->check(number(0.01, 100))
      ->capture_default_str();
  verb.add_option("--repetition-window", flags.repetition_window,
                  "How many tokens back the penalty looks")
      ->check(whole_number(0, kMostCount))
      ->capture_default_str();
}

}  // namespace

Sampling SamplingFlags::sampling() const {
  return {.temperature = temperature,
          .top_k = top_k,
          .top_p = top_p,
          .min_p = min_p,
          .repetition_penalty = repetition_penalty,
          .repetition_window = repetition_window,
          .seed = static_cast<uint64_t>(seed)};
}

std::vector<std::vector<int64_t>> SamplingFlags::stop_tokens(
    const TokenText& text) const {
  std::vector<std::vector<int64_t>> all;
  for (const std::string& stop : stops) {
    all.push_back(text.encode(stop));
    if (all.back().empty())
      throw std::invalid_argument(
          "--stop: expected a text of one token or more, got '" + stop + "'");
  }
  return all;
}

void add_sampling_flags(CLI::App& verb, SamplingFlags& flags) {
  add_choice_flags(verb, flags);
  add_repetition_flags(verb, flags);
  verb.add_option("--stop", flags.stops,
                  "A sample ends after this text; of music, after these words of the "
                  "vocabulary. May be given again: the first that comes counts")
      ->allow_extra_args(false);
  verb.add_flag(
      "--logprobs", flags.log_probabilities,
      "Also give ln p of each token drawn, as the model has it: at temperature "
      "1, before anything is left out. In --json and cards");
  verb.add_option("--seed", flags.seed, "Of chance: the same seed, the same text")
      ->check(whole_number(0, kMostCount))
      ->capture_default_str();
}

}  // namespace lagwise::cli
