#include "lagwise/train/generation.h"

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
Grammars grammars_after(const TokenText* text, const Writing& writing,
                        const Decoder::Past& past) {
  Grammars grammars;
  for (const auto& prompt : writing.prompts) {
    grammars.push_back(text ? text->grammar() : nullptr);
    if (writing.never >= 0)
      grammars.back() =
          std::make_unique<Without>(std::move(grammars.back()), writing.never);
    if (!grammars.back()) continue;
    for (const auto* const part : {&past.tokens, &prompt})
      for (const int64_t token : *part)
        if (grammars.back()->legal(static_cast<int32_t>(token)))
          grammars.back()->advance(static_cast<int32_t>(token));
  }
  return grammars;
}

/// The samples of one call, from step to step.
class Writer {
 public:
  Writer(const TokenText* text, const Writing& writing, const Decoder::Past& past)
      : writing_(writing),
        grammars_(grammars_after(text, writing, past)),
        before_(past.before) {
    for (size_t b = 0; b < writing.prompts.size(); ++b) {
      samplers_.emplace_back(writing.sampling,
                             writing.first_sample + static_cast<int64_t>(b));
    }
    histories_ = writing.prompts;
    for (auto& history : histories_)
      history.insert(history.begin(), past.tokens.begin(), past.tokens.end());
    written_.tokens.resize(samplers_.size());
    written_.log_probabilities.resize(samplers_.size());
    ended_.resize(samplers_.size());
  }

  /// Draws the next token of every sample that has not ended; false: all have.
  bool draw(const Decoder& decoder) {
    next_.assign(samplers_.size(), -1);
    bool drawn = false;
    for (size_t b = 0; b < samplers_.size(); ++b) {
      if (ended_[b]) continue;
      const std::span<const float> row = decoder.logits(b);
      next_[b] = samplers_[b].pick(row, before_ + size_of(histories_[b]), histories_[b],
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
  int64_t before_;                               ///< tokens before the histories
  std::vector<std::vector<int64_t>> histories_;  ///< prompt and new tokens
  std::vector<bool> ended_;
  std::vector<int64_t> next_;
  Written written_;
};

}  // namespace

Written write_on(Decoder& decoder, const TokenText* text, const Writing& writing,
                 const EachStep& each) {
  if (writing.prompts.empty() || writing.length < 0)
    throw std::invalid_argument("expected at least one sample and a length from 0 on");
  const auto begin = Clock::now();
  Writer writer(text, writing, decoder.past());
  decoder.read(writing.prompts);
  const auto middle = Clock::now();

  int64_t step = 0;
  while (step < writing.length && writer.draw(decoder)) {
    ++step;
    const bool last =
        (each && !each(writer.next())) || step == writing.length || writer.ended();
    if (!last || writing.take_last) decoder.step(writer.next());
    if (last) break;
  }
  Written& written = writer.written();
  written.prompt_seconds = seconds_between(begin, middle);
  written.seconds = seconds_between(middle, Clock::now());
  written.steps = step;
  written.state_bytes = decoder.state_bytes();
  return std::move(written);
}

Written write_on(Model& model, const TokenText* text, const Draw& draw,
                 const Writing& writing, const EachStep& each) {
  const EvaluationMode no_dropout(model);
  const auto decoder = torch_decoder(
      model, static_cast<int64_t>(writing.prompts.size()), draw, writing.source);
  return write_on(*decoder, text, writing, each);
}

}  // namespace lagwise
