// A soprano is heard; alto, tenor and bass are written (data/music/chorale_tokens.h has the
// words). Per sixteenth the model hears three words and writes three, so that row i of
// both stands at the same time.
//
//     written      a_0 t_0 b_0 a_1 t_1 b_1 ..     predicted
//     tokens     begin a_0 t_0 b_0 a_1 t_1 ..     what the decoder is given
//     source       s_0  n_0 p_0 s_1 n_1 p_1 ..    pitch, new or held, place in the bar
//
// Windows are of length / 3 sixteenths. Training crops chorales at any sixteenth and,
// with transpose=n, moves each by up to n semitones. The metric is what a sixteenth
// costs: the three voices together, in nats.
//
// To generate: encode() gives the source of a soprano, as notes ("C5:4 D5:4") or as
// that of a chorale ("valid:3"); writing starts from token 0.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <stdexcept>

#include "lagwise/core/errors.h"
#include "lagwise/data/music/chorale_tokens.h"
#include "lagwise/tasks/draws.h"
#include "lagwise/tasks/padded.h"
#include "lagwise/tasks/taking.h"
#include "lagwise/tasks/task.h"

namespace lagwise {
namespace {

constexpr const char* kHarmoniseTask = "harmonise";
constexpr data::ExampleLayout kMelodyAndChorale{.labelled = false, .paired = true};
constexpr int64_t kVoices = 3;

/// Steps [begin, begin + steps) of a chorale, moved by so many semitones.
struct Piece {
  int64_t chorale, begin, steps;
  int semitones = 0;
};

struct NotesOnly : Grammar {
  bool legal(int32_t id) const override {
    return id == data::kChoraleRest ||
           (id >= data::kChoralePitch && id < data::kChoraleWords);
  }
  void advance(int32_t) override {}
};

/// What can be heard and written without any chorale.
struct ChoraleText : TokenText {
  std::vector<int64_t> encode(const std::string& text) const override {
    return heard(data::soprano_of_text(text));
  }
  std::string decode(const std::vector<int64_t>& tokens) const override {
    return data::chords_text(tokens);
  }
  bool asks_for_data(const std::string& prompt) const override {
    return is_piece_name(prompt);
  }
  std::unique_ptr<Grammar> grammar() const override {
    return std::make_unique<NotesOnly>();
  }
  /// Counted from its first sixteenth, as the words of places are.
  int64_t first_bars(const std::vector<int64_t>& tokens, int64_t bars) const override {
    constexpr int64_t kBar = kVoices * data::kChoralePlaces;
    const int64_t all = std::ssize(tokens);
    return bars <= all / kBar ? bars * kBar : all;
  }
  static std::vector<int64_t> heard(const std::vector<int64_t>& soprano) {
    return data::heard_soprano(soprano, 0, static_cast<int64_t>(soprano.size()));
  }
};

class Harmonise : public Task {
 public:
  Harmonise(const TaskConfig& config, int transpose, data::ExampleSet set)
      : length_(config.length),
        seed_(config.seed),
        transpose_(transpose),
        set_(std::move(set)) {
    if (length_ < kVoices)
      throw std::invalid_argument(
          "harmonise: data.length: expected at least 3, one sixteenth, got " +
          std::to_string(length_));
    set_.expect_vocabulary(data::kChoraleWords);
    for (const std::string& name : set_.splits()) check(config.path, name);
    if (!set_.has("train") || set_.split("train").size() == 0)
      throw DataError(config.path, -1, "chorales to train on, got none");
  }

  void shape(ModelConfig& config) const override {
    config.model = "encoder_decoder";
    config.vocabulary = data::kChoraleWords, config.classes = 0;
    config.length = steps(0) * kVoices;
  }

  std::string metric() const override { return "nats per sixteenth"; }

  Batch train_batch(int64_t step, int64_t micro_step, Rows rows) const override {
    const data::ExampleSplit& split = set_.split("train");
    std::vector<Piece> pieces;
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      data::Dice dice = row_dice(seed_, step, micro_step, row);
      const int64_t chorale = pick(dice, split.size());
      const int64_t all = split.length(chorale), many = std::min(all, steps(0));
      const int64_t begin = pick(dice, all - many + 1);
      pieces.push_back({chorale, begin, many, dice.between(-transpose_, transpose_)});
    }
    return gather(split, pieces);
  }

  int64_t size(const std::string& split, int64_t length) const override {
    return static_cast<int64_t>(pieces(split, length).size());
  }

  Batch eval_batch(const std::string& split, int64_t begin, int64_t end,
                   int64_t length) const override {
    const std::vector<Piece> all = pieces(split, length);
    if (begin < 0 || begin >= end || end > static_cast<int64_t>(all.size()))
      throw std::invalid_argument("harmonise: expected pieces within 0 to " +
                                  std::to_string(all.size()) + " of " + split);
    return gather(set_.split(split), {all.begin() + begin, all.begin() + end});
  }

  double value(const Loss& total) const override {
    return total.sum.item<double>() * kVoices / counted(total);
  }

  std::optional<double> guess(const std::string&) const override {
    constexpr double kLegal = data::kChoraleWords - data::kChoralePitch + 1;  // a rest
    return kVoices * std::log(kLegal);
  }

  std::map<std::string, double> more(const std::string&,
                                     const Loss& total) const override {
    return {{"note accuracy", static_cast<double>(total.right) / counted(total)}};
  }

  std::vector<int64_t> encode(const std::string& text) const override {
    return ChoraleText::heard(soprano_asked(text));
  }

  std::string decode(const std::vector<int64_t>& tokens) const override {
    return ChoraleText().decode(tokens);
  }

  std::unique_ptr<Grammar> grammar() const override { return ChoraleText().grammar(); }
  int64_t first_bars(const std::vector<int64_t>& tokens, int64_t bars) const override {
    return ChoraleText().first_bars(tokens, bars);
  }

  std::vector<std::string> words() const override { return data::chorale_words(); }
  uint64_t hash() const override { return set_.hash(); }

 private:
  int64_t steps(int64_t length) const {
    return (length > 0 ? length : length_) / kVoices;
  }

  static double counted(const Loss& total) {
    return static_cast<double>(std::max<int64_t>(total.count, 1));
  }

  void check(const std::string& path, const std::string& name) const {
    const data::ExampleSplit& split = set_.split(name);
    for (int64_t i = 0; i < split.size(); ++i)
      if (split.length(i) < 1 || split.length(i, 1) != kVoices * split.length(i))
        throw DataError(path, -1,
                        "three voices under each note of the soprano, in " + name +
                            " " + std::to_string(i));
  }

  /// The chorales of a split, cut one after another.
  std::vector<Piece> pieces(const std::string& name, int64_t length) const {
    const data::ExampleSplit& split = set_.split(name);
    const int64_t most = std::max<int64_t>(steps(length), 1);
    std::vector<Piece> pieces;
    for (int64_t i = 0; i < split.size(); ++i)
      for (int64_t at = 0; at < split.length(i); at += most)
        pieces.push_back({i, at, std::min(most, split.length(i) - at)});
    return pieces;
  }

  static std::vector<int64_t> read(const data::ExampleSplit& split, int64_t chorale,
                                   int part, int64_t begin, int64_t many) {
    std::vector<int64_t> tokens(static_cast<size_t>(many));
    split.read(chorale, part, begin, tokens);
    return tokens;
  }

  static Batch gather(const data::ExampleSplit& split,
                      const std::vector<Piece>& pieces) {
    std::vector<std::vector<int64_t>> heard, written, given;
    for (const Piece& piece : pieces) {
      const auto soprano = read(split, piece.chorale, 0, 0, piece.begin + piece.steps);
      auto voices =
          read(split, piece.chorale, 1, kVoices * piece.begin, kVoices * piece.steps);
      const int semitones = fitting(piece.semitones, soprano, voices);
      heard.push_back(
          data::heard_soprano(soprano, piece.begin, piece.steps, semitones));
      for (int64_t& token : voices)
        if (token >= data::kChoralePitch) token += semitones;
      std::vector<int64_t> shifted = {data::kChoraleBegin};
      shifted.insert(shifted.end(), voices.begin(), voices.end() - 1);
      written.push_back(std::move(voices));
      given.push_back(std::move(shifted));
    }
    Batch batch;
    batch.tokens = padded(given, data::kChoraleBegin);
    batch.targets = padded(written, -1);
    batch.source = padded(heard, data::kChoraleBegin);
    batch.lengths = lengths_of(given);
    batch.source_lengths = lengths_of(heard);
    return batch;
  }

  /// 0 where a pitch would leave MIDI.
  static int fitting(int semitones, const std::vector<int64_t>& soprano,
                     const std::vector<int64_t>& voices) {
    for (const auto* tokens : {&soprano, &voices})
      for (const int64_t token : *tokens) {
        if (token < data::kChoralePitch) continue;
        if (token + semitones < data::kChoralePitch ||
            token + semitones >= data::kChoraleWords)
          return 0;
      }
    return semitones;
  }

  /// "valid:3", or notes.
  std::vector<int64_t> soprano_asked(const std::string& text) const {
    const size_t colon = text.find(':');
    const std::string name = text.substr(0, colon);
    if (colon == std::string::npos || !set_.has(name))
      return data::soprano_of_text(text);
    const data::ExampleSplit& split = set_.split(name);
    int64_t chorale = -1;
    const char* last = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data() + colon + 1, last, chorale);
    if (error != std::errc() || end != last || chorale < 0 || chorale >= split.size())
      throw std::invalid_argument(
          "harmonise: expected a chorale from " + name + ":0 to " + name + ":" +
          std::to_string(split.size() - 1) + ", got '" + text + "'");
    return read(split, chorale, 0, 0, split.length(chorale));
  }

  int64_t length_;
  uint64_t seed_;
  int transpose_;
  data::ExampleSet set_;
};

std::unique_ptr<Task> make_harmonise(const TaskConfig& config, Spec& options) {
  need_path(kHarmoniseTask, config.path);
  const int64_t transpose = options.take("transpose", 0);
  if (transpose < 0 || transpose > 12)
    throw std::invalid_argument(
        "harmonise: transpose: expected 0 to 12 semitones, got " +
        std::to_string(transpose));
  options.finish();  // before the work
  const auto most = static_cast<int>(transpose);
  if (data::is_shard_set(config.path))
    return std::make_unique<Harmonise>(
        config, most, data::ExampleSet(config.path, kHarmoniseTask, kMelodyAndChorale));
  data::ExampleSet set(kMelodyAndChorale);
  data::read_chorale_examples(
      config.path, [&](const std::string& split, const data::Example& example, double) {
        set.add(split, example);
      });
  return std::make_unique<Harmonise>(config, most, std::move(set));
}

const RegisterTask harmonise_registered({
    .name = kHarmoniseTask,
    .summary = "three voices under a soprano: Bach's chorales",
    .metric = "nats per sixteenth",
    .make = make_harmonise,
    .text = [](const std::vector<std::string>&, const std::string&)
        -> std::unique_ptr<TokenText> { return std::make_unique<ChoraleText>(); },
});

}  // namespace
}  // namespace lagwise
