#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lagwise/core/sampler.h"
#include "lagwise/data/music/token_scheme.h"
#include "lagwise/runtime/lagwise.h"

namespace lagwise::runtime {

/// A model of music that plays on from a prompt, token by token, for as long as it is
/// asked: only legal tokens, never the end of the piece, in memory that does not grow.
class Player {
 public:
  /// `model` must outlive it. std::invalid_argument where its tokens are no music, where
  /// the prompt is empty, or where an id is none of its own.
  Player(const lagwise_model* model, std::span<const int64_t> prompt,
         const Sampling& sampling, int64_t sample = 0);

  /// Draws the next token and takes it; -1 where nothing may follow.
  int64_t next();

  /// Tracks, and the notes that are complete and have not been forgotten yet: at first
  /// those of the prompt.
  const data::Music& heard() const { return decoder_->music; }
  void forget();

  int64_t now() const { return decoder_->now(); }  ///< the tick it has come to

 private:
  void remember(int64_t token);

  struct EndState {
    void operator()(lagwise_state* state) const { lagwise_end(state); }
  };

  const lagwise_model* model_;
  std::unique_ptr<data::TokenScheme> scheme_;
  std::unique_ptr<Grammar> grammar_;
  std::unique_ptr<data::MusicDecoder> decoder_;
  std::unique_ptr<lagwise_state, EndState> state_;
  Sampler sampler_;
  size_t window_;                 ///< how many tokens of the past the sampler looks at
  std::vector<int64_t> history_;  ///< no more than twice as many
};

}  // namespace lagwise::runtime
