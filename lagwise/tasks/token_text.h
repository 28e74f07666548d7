#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lagwise/data/music/token_scheme.h"

namespace lagwise {

/// What tokens stand for: all it takes to give a model a prompt and to read what it
/// writes. It needs no data. Tasks that do not generate refuse with
/// std::invalid_argument.
class TokenText {
 public:
  virtual ~TokenText() = default;

  virtual std::vector<int64_t> encode(const std::string& text) const;
  virtual std::string decode(const std::vector<int64_t>& tokens) const;

  /// Whether a prompt means a piece of the data, such as test:3: encode() of the task
  /// itself knows it then.
  virtual bool asks_for_data(const std::string& prompt) const;

  // Of texts that a model writes while it listens to another: the token before the
  // first, and the one that says that all is written; -1: none says so.
  virtual int64_t begin() const { return 0; }
  virtual int64_t end() const { return -1; }

  /// Which tokens may come next; nullptr: any.
  virtual std::unique_ptr<Grammar> grammar() const;

  /// How tokens become music; nullptr: they do not.
  virtual const data::TokenScheme* music() const { return nullptr; }

  /// How many of the tokens of a prompt are its first bars, of four beats; all, where it
  /// has no more. Tasks without bars refuse with std::invalid_argument.
  virtual int64_t first_bars(const std::vector<int64_t>& tokens, int64_t bars) const;
};

/// Whether a text has the form of a piece: a split's name, a colon, a number.
bool is_piece_name(const std::string& text);

}  // namespace lagwise
