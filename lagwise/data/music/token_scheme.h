#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lagwise/core/grammar.h"
#include "lagwise/core/spec.h"
#include "lagwise/data/music/music.h"
#include "lagwise/data/sets/vocabulary.h"

namespace lagwise::data {

/// What a scheme could not say of some music. Nothing is refused: it is moved to the
/// nearest thing the scheme has, or dropped, and named here.
struct TokenLoss {
  int64_t notes = 0;                           ///< in the music
  int64_t kept = 0;                            ///< in the tokens
  double onset_error = 0, duration_error = 0;  ///< mean over the kept, in beats
  double velocity_error = 0;
  std::map<std::string, int64_t> changed;  ///< what, and how many of it

  /// Counts a kept note by its distance from the original.
  void keep(double onset, double duration, double velocity);
  void add(const TokenLoss& other);
};

struct Tokenised {
  std::vector<int32_t> ids;
  TokenLoss loss;
};

/// Tokens of music understood one at a time: what decode() does, without an end and, if
/// the notes are taken out of `music` as they come, in memory that does not grow.
class MusicDecoder {
 public:
  virtual ~MusicDecoder() = default;

  /// Adds what the token completes to `music`: a note when it is known how long it is.
  /// Tokens without sense where they stand are passed over, as are all after the end.
  virtual void take(int32_t id) = 0;
  virtual void finish() = 0;        ///< ends what still sounds, and sets music.end
  virtual int64_t now() const = 0;  ///< the tick that has been reached

  Music music;  ///< with all its tracks from the first; not tidy
};

/// A way to say music in tokens. It is one file, x.cpp, with a class and a registry
/// row; nothing else knows it by name.
class TokenScheme {
 public:
  virtual ~TokenScheme() = default;
  virtual const Vocabulary& vocabulary() const = 0;
  virtual Tokenised encode(const Music& music) const = 0;  ///< of tidy music

  /// The music of any ids whatever, tidy (data/music/music.h): tokens without sense where
  /// they stand, and ids outside the vocabulary, are passed over.
  Music decode(std::span<const int32_t> ids) const;

  virtual std::unique_ptr<MusicDecoder> decoder() const = 0;

  /// A model that follows it writes what encode() could have written.
  virtual std::unique_ptr<Grammar> grammar() const = 0;

  /// The token that ends a piece: the last of encode(), after which none is legal.
  virtual int32_t end() const = 0;

  /// Moves every pitch (and chord) by so many semitones, drums excepted. Returns
  /// false and changes nothing if a pitch would leave the vocabulary.
  virtual bool transpose(std::span<int32_t> ids, int semitones) const = 0;

  /// Where bars begin, as places in `ids`: good places to cut a window from. Of ids as
  /// encode() writes them, from the start of a piece.
  virtual std::vector<int64_t> bar_starts(std::span<const int32_t> ids) const = 0;

  /// How many of `ids`, from the start of a piece, are its first `bars` bars of four
  /// beats: all before the token that leads to the next bar line or past it, and before
  /// the end of the piece. Fewer bars: all there are.
  int64_t first_bars(std::span<const int32_t> ids, int64_t bars) const;

  static constexpr int64_t kMaxBars = 65536;  ///< later notes are dropped, by name
};

struct TokenSchemeRow {
  std::string_view name, summary, paper;
  std::unique_ptr<TokenScheme> (*make)(Spec& spec);
  /// The texts that make schemes with different words; nullptr: the name alone.
  std::vector<std::string> (*variants)() = nullptr;
};

/// Adds a row. Define one per file, at namespace scope.
struct RegisterTokenScheme {
  explicit RegisterTokenScheme(TokenSchemeRow row);
};

/// Every row, sorted by name.
const std::vector<TokenSchemeRow>& token_schemes();

/// Builds a scheme from "name:key=value,...". std::invalid_argument lists the legal
/// names or options.
std::unique_ptr<TokenScheme> make_token_scheme(std::string_view text);

/// The scheme that has exactly these words, such as a model was saved with; nullptr:
/// there is none.
std::unique_ptr<TokenScheme> token_scheme_of(const std::vector<std::string>& words);

}  // namespace lagwise::data
