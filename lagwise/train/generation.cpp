#include "lagwise/train/generation.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <span>
#include <stdexcept>

#include "lagwise/core/clock.h"
#include "lagwise/models/model.h"
#include "lagwise/train/evaluation_mode.h"

namespace lagwise {
namespace {

using Grammars = std::vector<std::unique_ptr<Grammar>>;

double seconds_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

int64_t size_of(const std::vector<int64_t>& tokens) {
  return static_cast<int64_t>(tokens.size());
}

/// Takes in the prompts and returns the logits after each, [B, V]; zeros after an empty
/// one.
at::Tensor read_prompts(Model& model, DecodingState& state,
                        const std::vector<std::vector<int64_t>>& prompts) {
  constexpr int64_t kChunk = 1024;
  const auto rows = static_cast<int64_t>(prompts.size());
  int64_t shortest = size_of(prompts[0]), longest = shortest;
  for (const auto& prompt : prompts) {
    shortest = std::min(shortest, size_of(prompt));
    longest = std::max(longest, size_of(prompt));
  }
  at::Tensor after = at::zeros({rows, model.config().vocabulary}, at::kFloat);
  for (int64_t begin = 0; begin < longest; begin += kChunk) {
    const int64_t count = std::min(kChunk, longest - begin);
    const at::Tensor tokens = at::zeros({rows, count}, at::kLong);
    const at::Tensor lengths = at::zeros({rows}, at::kLong);
    for (int64_t b = 0; b < rows; ++b) {
      const auto& prompt = prompts[static_cast<size_t>(b)];
      const int64_t here = std::clamp<int64_t>(size_of(prompt) - begin, 0, count);
      std::copy_n(prompt.begin() + std::min(begin, size_of(prompt)), here,
                  tokens.data_ptr<int64_t>() + b * count);
      lengths.data_ptr<int64_t>()[b] = here;
    }
    // Rows of one length need no lengths, and decode faster without.
    const at::Tensor logits =
        model.extend(state, tokens, shortest == longest ? at::Tensor() : lengths);
    after = at::where(lengths.gt(0).unsqueeze(1), logits.to(at::kFloat), after);
  }
  return after;
}

/// A grammar without one of its tokens.
class Without : public Grammar {
 public:
  Without(std::unique_ptr<Grammar> inner, int64_t never)
      : inner_(std::move(inner)), never_(never) {}
  bool legal(int32_t id) const override {
    return id != never_ && (!inner_ || inner_->legal(id));
  }
  void advance(int32_t id) override {
    if (inner_) inner_->advance(id);
  }

 private:
  std::unique_ptr<Grammar> inner_;
  int64_t never_;
};

/// One grammar a sample that has read its prompt; what it does not allow there is
/// passed over, for a prompt may begin in the middle of a piece.
Grammars grammars_after(const TokenText* text, const Writing& writing) {
  Grammars grammars;
  for (const auto& prompt : writing.prompts) {
    grammars.push_back(text ? text->grammar() : nullptr);
    if (writing.never >= 0)
      grammars.back() =
          std::make_unique<Without>(std::move(grammars.back()), writing.never);
    if (!grammars.back()) continue;
    for (const int64_t token : prompt)
      if (grammars.back()->legal(static_cast<int32_t>(token)))
        grammars.back()->advance(static_cast<int32_t>(token));
  }
  return grammars;
}

/// The samples of one call, from step to step.
class Writer {
 public:
  Writer(const TokenText* text, const Writing& writing)
      : writing_(writing), grammars_(grammars_after(text, writing)) {
    for (size_t b = 0; b < writing.prompts.size(); ++b) {
      samplers_.emplace_back(writing.sampling,
                             writing.first_sample + static_cast<int64_t>(b));
    }
    histories_ = writing.prompts;
    written_.tokens.resize(samplers_.size());
    written_.log_probabilities.resize(samplers_.size());
    ended_.resize(samplers_.size());
  }

  /// Draws the next token of every sample that has not ended; false: all have.
  bool draw(const at::Tensor& logits) {
    const at::Tensor x = logits.to(at::kFloat).contiguous();
    const auto width = static_cast<size_t>(x.size(1));
    next_.assign(samplers_.size(), -1);
    bool drawn = false;
    for (size_t b = 0; b < samplers_.size(); ++b) {
      if (ended_[b]) continue;
      const std::span<const float> row(x.data_ptr<float>() + b * width, width);
      next_[b] = samplers_[b].pick(row, size_of(histories_[b]), histories_[b],
                                   grammars_[b].get());
      ended_[b] = next_[b] < 0;
      if (ended_[b]) continue;
      drawn = true;
      take(b, row);
    }
    return drawn;
  }

  bool ended() const { return std::ranges::all_of(ended_, std::identity()); }

  const std::vector<int64_t>& next() const { return next_; }
  Written& written() { return written_; }

 private:
  /// Adds the token that sample b drew from these logits to all that remembers it.
  void take(size_t b, std::span<const float> logits) {
    const int64_t token = next_[b];
    histories_[b].push_back(token);
    written_.tokens[b].push_back(token);
    if (writing_.log_probabilities)
      written_.log_probabilities[b].push_back(log_probability(logits, token));
    if (grammars_[b]) grammars_[b]->advance(static_cast<int32_t>(token));
    ended_[b] = ends_with_any(written_.tokens[b], writing_.stops);
  }

  const Writing& writing_;
  Grammars grammars_;
  std::vector<Sampler> samplers_;
  std::vector<std::vector<int64_t>> histories_;  ///< prompt and new tokens
  std::vector<bool> ended_;
  std::vector<int64_t> next_;
  Written written_;
};

}  // namespace

Written write_on(Model& model, const TokenText* text, const Draw& draw,
                 const Writing& writing, const EachStep& each) {
  const c10::NoGradGuard no_graph;
  const EvaluationMode no_dropout(model);
  if (writing.prompts.empty() || writing.length < 0)
    throw std::invalid_argument("expected at least one sample and a length from 0 on");
  const auto rows = static_cast<int64_t>(writing.prompts.size());
  const auto begin = Clock::now();
  const auto state = model.start(rows, draw, writing.source);
  at::Tensor logits = read_prompts(model, *state, writing.prompts);
  const auto middle = Clock::now();

  Writer writer(text, writing);
  int64_t step = 0;
  while (step < writing.length && writer.draw(logits)) {
    ++step;
    if (each && !each(writer.next())) break;
    if (step == writing.length || writer.ended()) break;
    const at::Tensor next = at::tensor(writer.next(), at::kLong).clamp_min(0);
    logits = model.extend(*state, next.unsqueeze(1));
  }
  Written& written = writer.written();
  written.prompt_seconds = seconds_between(begin, middle);
  written.seconds = seconds_between(middle, Clock::now());
  written.steps = step;
  written.state_bytes = state->bytes();
  return std::move(written);
}

}  // namespace lagwise
