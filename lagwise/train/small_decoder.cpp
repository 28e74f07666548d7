#include <stdexcept>

#include "lagwise/train/decoder.h"

namespace lagwise {

SmallDecoder::SmallDecoder(const runtime::Model& model, int64_t texts,
                           const runtime::State* from)
    : model_(model), nothing_(static_cast<size_t>(model.plan().vocabulary)) {
  for (int64_t i = 0; i < texts; ++i)
    states_.push_back(from ? std::make_unique<runtime::State>(*from) : model.start());
  if (from == nullptr) return;
  from->recent_tokens(runtime::StateLayout::kRecentTokens, past_.tokens);
  past_.before = from->position() - static_cast<int64_t>(past_.tokens.size());
}

void SmallDecoder::expect_can_take(size_t text, std::span<const int64_t> tokens) const {
  const runtime::State& state = *states_[text];
  if (model_.can_take(state, tokens)) return;
  const int64_t end = state.position() + static_cast<int64_t>(tokens.size());
  if (end > model_.most_positions())
    throw std::invalid_argument(
        "expected at most " + std::to_string(model_.most_positions()) +
        " tokens, where the positions of this model end, got " + std::to_string(end));
  throw std::invalid_argument("expected tokens from 0 to " +
                              std::to_string(model_.plan().vocabulary - 1));
}

void SmallDecoder::read(const std::vector<std::vector<int64_t>>& prompts) {
  for (size_t i = 0; i < prompts.size(); ++i) {
    expect_can_take(i, prompts[i]);
    model_.prefill(*states_[i], prompts[i]);
  }
}

void SmallDecoder::step(const std::vector<int64_t>& tokens) {
  std::vector<runtime::State*> states;
  std::vector<int64_t> alive;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < 0) continue;
    expect_can_take(i, {&tokens[i], 1});
    states.push_back(states_[i].get()), alive.push_back(tokens[i]);
  }
  model_.step_many(states, alive);
}

std::span<const float> SmallDecoder::logits(size_t text) const {
  const float* const logits = states_[text]->logits();
  if (logits == nullptr) return nothing_;
  return {logits, nothing_.size()};
}

int64_t SmallDecoder::state_bytes() const {
  return static_cast<int64_t>(states_.size() * runtime::state_bytes(model_.layout()));
}

}  // namespace lagwise
