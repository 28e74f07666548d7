// The next token of a piece of music.
//
// Where it comes from   data.path: a set that `lagwise data midi` or `data grooves`
//                       made; a folder of MIDI files, read with the option scheme
//                       (damaged ones are left out, and told; `lagwise data midi`
//                       names all);
//                       or nothing: grooves, made on the spot (styles, songs, corpus).
// Training              crops of length + 1 tokens from a piece picked by its length;
//                       bars=true: that begin with a bar. transpose=K moves each crop
//                       by -K .. K semitones, nearer to none where a pitch would leave
//                       the vocabulary.
// Evaluation            windows that do not overlap and do not leave their piece, the
//                       first of every piece, then the second of every piece, ..: the
//                       first few windows are so of many pieces. bars=true: each
//                       begins with a bar. Up to the training length a shorter piece
//                       is one padded window; longer windows need pieces as long.
// Stream                the pieces of a split one after the other.

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>
#include <stdexcept>

#include "lagwise/core/errors.h"
#include "lagwise/data/music/music_corpus.h"
#include "lagwise/data/sets/shards.h"
#include "lagwise/tasks/draws.h"
#include "lagwise/tasks/music_text.h"
#include "lagwise/tasks/padded.h"
#include "lagwise/tasks/taking.h"

namespace lagwise {
namespace {

constexpr const char* kMusicTask = "music";

struct MusicOptions {
  std::string scheme;
  int64_t styles, songs, corpus, transpose;
  bool bars;
};

data::MusicCorpus read_corpus(const TaskConfig& config, const MusicOptions& options) {
  if (config.path.empty())
    return data::make_groove_corpus(static_cast<int>(options.styles), options.songs,
                                    static_cast<uint64_t>(options.corpus),
                                    options.scheme);
  data::MidiReport report;
  data::MusicCorpus corpus =
      data::read_midi_folder(config.path, options.scheme, &report);
  tell(config, report.left_out());
  return corpus;
}

/// A part of a piece: tokens [first, first + count).
struct Window {
  size_t piece;
  int64_t first, count;
};

class MusicTask : public Task {
 public:
  MusicTask(const TaskConfig& config, const MusicOptions& options,
            data::MusicCorpus corpus)
      : length_(config.length),
        seed_(config.seed),
        options_(options),
        corpus_(std::move(corpus)),
        text_(data::make_token_scheme(corpus_.scheme)),
        scheme_(text_.music()) {
    if (!corpus_.splits.contains("train"))
      throw DataError(config.path, -1, "pieces for the split train");
    for (const auto& piece : pieces("train")) {
      ends_.push_back((ends_.empty() ? 0 : ends_.back()) + ssize(piece));
      starts_.push_back(crop_starts(piece, length_));
    }
  }

  void shape(ModelConfig& config) const override {
    config.model = "decoder_lm";
    config.vocabulary = scheme_->vocabulary().size(), config.classes = 0;
    config.length = length_;
  }

  std::string metric() const override { return "nats per token"; }
  double value(const Loss& total) const override {
    return total.sum.item<double>() /
           static_cast<double>(std::max<int64_t>(total.count, 1));
  }

  std::optional<double> guess(const std::string&) const override {
    return std::log(static_cast<double>(scheme_->vocabulary().size()));
  }

  Batch train_batch(int64_t step, int64_t micro_step, Rows rows) const override {
    std::vector<std::vector<int64_t>> crops;
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      data::Dice dice = row_dice(seed_, step, micro_step, row);
      const int64_t token = pick(dice, ends_.back());
      const auto piece =
          static_cast<size_t>(std::ranges::upper_bound(ends_, token) - ends_.begin());
      const int64_t first =
          crop_start(pieces("train")[piece], starts_[piece], length_, dice);
      crops.push_back(transposed(window("train", {piece, first, length_ + 1}), dice));
    }
    return batch_of(crops);
  }

  /// From the pieces that are long enough; the crops of others would end too soon.
  Batch train_windows(int64_t step, int64_t micro_step, Rows rows,
                      int64_t length) const override {
    const data::Pieces& all = pieces("train");
    std::vector<size_t> long_enough;
    std::vector<int64_t> ends;  // of these, end to end
    for (size_t i = 0; i < all.size(); ++i) {
      if (ssize(all[i]) <= length) continue;
      long_enough.push_back(i);
      ends.push_back((ends.empty() ? 0 : ends.back()) + ssize(all[i]));
    }
    if (ends.empty())
      throw std::invalid_argument("music: no piece to train on has more than " +
                                  std::to_string(length) + " tokens");
    std::vector<std::vector<int64_t>> crops;
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      data::Dice dice = row_dice(seed_, step, micro_step, row);
      const int64_t token = pick(dice, ends.back());
      const size_t piece = long_enough[static_cast<size_t>(
          std::ranges::upper_bound(ends, token) - ends.begin())];
      const int64_t first =
          crop_start(all[piece], crop_starts(all[piece], length), length, dice);
      crops.push_back(transposed(window("train", {piece, first, length + 1}), dice));
    }
    return batch_of(crops);
  }

  int64_t size(const std::string& split, int64_t length) const override {
    return static_cast<int64_t>(windows(split, length).size());
  }

  Batch eval_batch(const std::string& split, int64_t begin, int64_t end,
                   int64_t length) const override {
    const std::vector<Window> all = windows(split, length);
    if (begin < 0 || begin >= end || end > ssize(all))
      throw std::invalid_argument("music: expected windows within 0 to " +
                                  std::to_string(all.size()) + " of " + split);
    std::vector<std::vector<int64_t>> rows;
    for (int64_t i = begin; i < end; ++i)
      rows.push_back(window(split, all[static_cast<size_t>(i)]));
    return batch_of(rows);
  }

  std::vector<int64_t> stream(const std::string& split, int64_t first,
                              int64_t count) const override {
    if (first < 0 || count < 0)
      throw std::invalid_argument("music: expected a place and a count of 0 or more");
    std::vector<int64_t> tokens;
    for (const auto& piece : pieces(split)) {
      const int64_t skipped = std::min(first, ssize(piece));
      const int64_t taken = std::min(ssize(piece) - skipped, count - ssize(tokens));
      tokens.insert(tokens.end(), piece.begin() + skipped,
                    piece.begin() + skipped + taken);
      first -= skipped;
    }
    return tokens;
  }

  /// A beginning to go on from, without its end token: what MusicText takes, or
  ///
  ///     test:3, test:3:64  piece 3 of a split, or its first 64 tokens
  std::vector<int64_t> encode(const std::string& text) const override {
    if (!is_piece(text)) return text_.encode(text);
    std::vector<int64_t> tokens = piece_tokens(text);
    if (!tokens.empty() && tokens.back() == scheme_->end()) tokens.pop_back();
    return tokens;
  }

  std::string decode(const std::vector<int64_t>& tokens) const override {
    return text_.decode(tokens);
  }

  std::unique_ptr<Grammar> grammar() const override { return text_.grammar(); }
  const data::TokenScheme* music() const override { return scheme_; }
  std::vector<std::string> words() const override {
    return scheme_->vocabulary().words();
  }
  uint64_t hash() const override { return corpus_.hash(); }

 private:
  template <class List>
  static int64_t ssize(const List& list) {
    return static_cast<int64_t>(list.size());
  }

  const data::Pieces& pieces(const std::string& split) const {
    const auto found = corpus_.splits.find(split);
    if (found != corpus_.splits.end()) return found->second;
    throw std::invalid_argument("music: no split '" + split + "'; expected one of " +
                                legal_splits());
  }

  std::string legal_splits() const {
    std::string legal;
    for (const auto& [name, pieces] : corpus_.splits)
      legal += (legal.empty() ? "" : ", ") + name;
    return legal;
  }

  bool is_piece(const std::string& text) const {
    return corpus_.splits.contains(text.substr(0, text.find(':')));
  }

  std::vector<int64_t> piece_tokens(const std::string& text) const {
    std::istringstream rest(text.substr(text.find(':') + 1));
    const data::Pieces& all = pieces(text.substr(0, text.find(':')));
    int64_t piece = 0, count = std::numeric_limits<int64_t>::max();
    char colon = 0;
    rest >> piece;
    const bool whole = rest.eof(), read = !rest.fail();
    if (!whole) rest >> colon >> count;
    if (!read || rest.fail() || !rest.eof() || (!whole && colon != ':') || piece < 0 ||
        piece >= ssize(all) || count < 1)
      throw std::invalid_argument(
          "music: expected a piece such as test:0, or test:0:64 "
          "for its first 64 tokens, below test:" +
          std::to_string(all.size()) + "; got '" + text + "'");
    const std::vector<int32_t>& ids = all[static_cast<size_t>(piece)];
    return {ids.begin(), ids.begin() + std::min(count, ssize(ids))};
  }

  /// Where a training crop of that length may begin; empty: anywhere it fits.
  std::vector<int64_t> crop_starts(const std::vector<int32_t>& piece,
                                   int64_t length) const {
    if (!options_.bars) return {};
    std::vector<int64_t> starts = scheme_->bar_starts(piece);
    std::erase_if(starts, [&](int64_t s) { return s + length + 1 > ssize(piece); });
    if (starts.empty()) starts.push_back(0);
    return starts;
  }

  /// `starts`: crop_starts of the piece.
  static int64_t crop_start(const std::vector<int32_t>& piece,
                            const std::vector<int64_t>& starts, int64_t length,
                            data::Dice& dice) {
    if (!starts.empty()) return starts[static_cast<size_t>(pick(dice, ssize(starts)))];
    return pick(dice, std::max<int64_t>(ssize(piece) - length, 1));
  }

  std::vector<int64_t> transposed(std::vector<int64_t> row, data::Dice& dice) const {
    const auto most = static_cast<int>(options_.transpose);
    if (most == 0) return row;
    std::vector<int32_t> ids(row.begin(), row.end());
    int by = dice.between(-most, most);
    while (by != 0 && !scheme_->transpose(ids, by)) by += by > 0 ? -1 : 1;
    return {ids.begin(), ids.end()};
  }

  /// The tokens of a window: fewer where the piece ends.
  std::vector<int64_t> window(const std::string& split, const Window& at) const {
    const std::vector<int32_t>& piece = pieces(split)[at.piece];
    const int64_t end = std::min(at.first + at.count, ssize(piece));
    return {piece.begin() + at.first, piece.begin() + end};
  }

  /// All windows of a split: of piece 0, 1, .. the first, then the second of each.
  std::vector<Window> windows(const std::string& split, int64_t length) const {
    const int64_t wanted = length > 0 ? length : length_;
    std::vector<std::vector<Window>> rounds;
    const data::Pieces& all = pieces(split);
    for (size_t piece = 0; piece < all.size(); ++piece) {
      size_t round = 0;
      for (const int64_t first : window_starts(all[piece], wanted)) {
        if (round == rounds.size()) rounds.emplace_back();
        rounds[round++].push_back({piece, first, wanted + 1});
      }
    }
    std::vector<Window> flat;
    for (const auto& round : rounds)
      flat.insert(flat.end(), round.begin(), round.end());
    return flat;
  }

  std::vector<int64_t> window_starts(const std::vector<int32_t>& piece,
                                     int64_t length) const {
    const int64_t size = ssize(piece);
    if (size < length + 1)
      return length <= length_ && size > 1 ? std::vector<int64_t>{0}
                                           : std::vector<int64_t>{};
    std::vector<int64_t> starts;
    if (!options_.bars) {
      for (int64_t first = 0; first + length + 1 <= size; first += length)
        starts.push_back(first);
      return starts;
    }
    int64_t free = 0;
    for (const int64_t bar : scheme_->bar_starts(piece)) {
      if (bar < free || bar + length + 1 > size) continue;
      starts.push_back(bar);
      free = bar + length;
    }
    return starts;
  }

  /// Rows of tokens, the last of each a target only; shorter ones are filled up.
  static Batch batch_of(const std::vector<std::vector<int64_t>>& rows) {
    std::vector<std::vector<int64_t>> tokens, targets;
    for (const auto& row : rows) {
      tokens.emplace_back(row.begin(), row.end() - 1);
      targets.emplace_back(row.begin() + 1, row.end());
    }
    Batch batch;
    batch.tokens = padded(tokens, 0);
    batch.targets = padded(targets, -1);
    batch.lengths = lengths_of(tokens);
    return batch;
  }

  int64_t length_;
  uint64_t seed_;
  MusicOptions options_;
  data::MusicCorpus corpus_;
  MusicText text_;
  const data::TokenScheme* scheme_;           // of text_
  std::vector<int64_t> ends_;                 // of the training pieces, end to end
  std::vector<std::vector<int64_t>> starts_;  // of their crops
};

int64_t take_number(Spec& options, const char* key, int64_t fallback, int64_t least,
                    int64_t most) {
  const int64_t value = options.take(key, fallback);
  if (value >= least && value <= most) return value;
  throw std::invalid_argument(std::string(kMusicTask) + ": expected " + key + " from " +
                              std::to_string(least) + " to " + std::to_string(most) +
                              ", got " + std::to_string(value));
}

std::unique_ptr<Task> make_music(const TaskConfig& config, Spec& options) {
  const bool prepared = !config.path.empty() && data::is_shard_set(config.path);
  data::MusicCorpus corpus;
  if (prepared) {
    corpus = data::open_music_set(config.path);
    take_fixed(options, "scheme", corpus.scheme);
  }
  MusicOptions chosen;
  chosen.scheme = options.take("scheme", "groove");
  chosen.styles = take_number(options, "styles", 24, 1, 4096);
  chosen.songs = take_number(options, "songs", 480, 3, 1000000);
  chosen.corpus = take_number(options, "corpus", 1, 0, 1000000000);
  chosen.transpose = take_number(options, "transpose", 0, 0, 12);
  chosen.bars = options.take("bars", true);
  options.finish();  // before the work
  if (!prepared) corpus = read_corpus(config, chosen);
  return std::make_unique<MusicTask>(config, chosen, std::move(corpus));
}

const RegisterTask music_registered({
    .name = kMusicTask,
    .summary = "the next token of music: MIDI files, a prepared set, made-up grooves",
    .metric = "nats per token",
    .make = make_music,
    .text = [](const std::vector<std::string>& words,
               const std::string&) -> std::unique_ptr<TokenText> {
      auto scheme = data::token_scheme_of(words);
      return scheme ? std::make_unique<MusicText>(std::move(scheme)) : nullptr;
    },
});

}  // namespace
}  // namespace lagwise
