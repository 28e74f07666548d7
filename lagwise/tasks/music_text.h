#pragma once

#include <memory>

#include "lagwise/tasks/token_text.h"

namespace lagwise {

/// Tokens of music as people give and read them. A prompt is a MIDI file or words of
/// the vocabulary, without the token that ends a piece:
///
///     song.mid           a MIDI file
///     BOS On_drums_36    words
class MusicText : public TokenText {
 public:
  explicit MusicText(std::unique_ptr<data::TokenScheme> scheme)
      : scheme_(std::move(scheme)) {}

  std::vector<int64_t> encode(const std::string& text) const override;
  std::string decode(const std::vector<int64_t>& tokens) const override;
  bool asks_for_data(const std::string& prompt) const override {
    return is_piece_name(prompt);
  }
  std::unique_ptr<Grammar> grammar() const override { return scheme_->grammar(); }
  const data::TokenScheme* music() const override { return scheme_.get(); }

 private:
  std::unique_ptr<data::TokenScheme> scheme_;
};

}  // namespace lagwise
