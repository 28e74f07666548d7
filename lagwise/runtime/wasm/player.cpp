#include "lagwise/runtime/wasm/player.h"

#include <stdexcept>

#include "lagwise/runtime/wasm/words.h"

namespace lagwise::runtime {
namespace {

/// A grammar that never lets the piece end.
class WithoutEnd : public Grammar {
 public:
  WithoutEnd(std::unique_ptr<Grammar> inner, int32_t end)
      : inner_(std::move(inner)), end_(end) {}
  bool legal(int32_t id) const override { return id != end_ && inner_->legal(id); }
  void advance(int32_t id) override { inner_->advance(id); }

 private:
  std::unique_ptr<Grammar> inner_;
  int32_t end_;
};

std::unique_ptr<data::TokenScheme> scheme_of(const lagwise_model* model) {
  auto scheme = data::token_scheme_of(words_of(model));
  if (!scheme)
    throw std::invalid_argument("expected a model of music; its tokens are none");
  return scheme;
}

}  // namespace

Player::Player(const lagwise_model* model, std::span<const int64_t> prompt,
               const Sampling& sampling, int64_t sample)
    : model_(model),
      scheme_(scheme_of(model)),
      grammar_(std::make_unique<WithoutEnd>(scheme_->grammar(), scheme_->end())),
      decoder_(scheme_->decoder()),
      state_(lagwise_start(model)),
      sampler_(sampling, sample),
      window_(static_cast<size_t>(sampling.repetition_window)) {
  if (prompt.empty())
    throw std::invalid_argument("expected a prompt of one token or more");
  if (!state_ || lagwise_prefill(model_, state_.get(), prompt.data(), prompt.size()))
    throw std::invalid_argument("expected tokens of the model's vocabulary");
  for (const int64_t token : prompt) remember(token);
}

void Player::remember(int64_t token) {
  const auto id = static_cast<int32_t>(token);
  if (grammar_->legal(id)) grammar_->advance(id);  // a prompt may begin anywhere
  decoder_->take(id);
  history_.push_back(token);
  if (history_.size() > 2 * window_)
    history_.erase(history_.begin(), history_.end() - static_cast<int64_t>(window_));
}

int64_t Player::next() {
  const std::span<const float> logits(lagwise_logits(state_.get()),
                                      static_cast<size_t>(lagwise_vocabulary(model_)));
  const int64_t token =
      sampler_.pick(logits, lagwise_position(state_.get()), history_, grammar_.get());
  if (token < 0 || lagwise_step(model_, state_.get(), token) != 0) return -1;
  remember(token);
  return token;
}

void Player::forget() {
  for (data::Track& track : decoder_->music.tracks) track.notes.clear();
  decoder_->music.tempos.clear();
  decoder_->music.texts.clear();
}

}  // namespace lagwise::runtime
