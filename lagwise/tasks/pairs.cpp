// A text is heard, another is written: translations, questions and answers, dates in
// another form (data/sources/pair_examples.h says what is read; without a path dates are
// made, data/sources/dates.h). Tokens are bytes, or those of a set that was prepared with
// a tokenizer, and one more, the mark |, that stands before the first token of a target
// and behind its last:
//
//     source     3 . 3 . 1 9 9 8            what the encoder is given
//     tokens     | 1 9 9 8 - 0 3 - 0 3      what the decoder is given
//     targets    1 9 9 8 - 0 3 - 0 3 |      predicted
//
// A pair is taken whole or not at all: a source has at most `length` tokens, a target one
// less, for the mark. Longer pairs are refused, or with long=leave left out.
//
// The metric is token accuracy: which part of the tokens is guessed, each after the true
// ones before it. How good whole answers are is for `lagwise eval` to say, which has the
// model write them (train/answers.h).

#include <algorithm>
#include <stdexcept>

#include "lagwise/core/errors.h"
#include "lagwise/data/formats/fnv1a.h"
#include "lagwise/data/sets/language_corpus.h"
#include "lagwise/data/sources/dates.h"
#include "lagwise/data/sources/pair_examples.h"
#include "lagwise/tasks/draws.h"
#include "lagwise/tasks/padded.h"
#include "lagwise/tasks/set_tokenizer.h"
#include "lagwise/tasks/taking.h"
#include "lagwise/tasks/task.h"
#include "lagwise/tasks/tokenizer_text.h"

namespace lagwise {
namespace {

constexpr const char* kPairsTask = "pairs";

/// Bytes or tokens of a tokenizer, and the mark.
class PairText : public TokenText {
 public:
  explicit PairText(std::shared_ptr<const data::Tokenizer> tokenizer)
      : tokenizer_(std::move(tokenizer)) {}

  const data::Tokenizer* tokenizer() const { return tokenizer_.get(); }
  int64_t mark() const { return tokenizer_ ? tokenizer_->vocabulary() : 256; }
  int64_t begin() const override { return mark(); }
  int64_t end() const override { return mark(); }

  std::vector<int64_t> encode(const std::string& text) const override {
    if (tokenizer_) return TokenizerText(tokenizer_).encode(text);
    const data::Bytes bytes = data::bytes_of(text);
    return {bytes.begin(), bytes.end()};
  }
  std::string decode(const std::vector<int64_t>& tokens) const override {
    std::vector<int64_t> real;
    std::ranges::copy_if(tokens, std::back_inserter(real),
                         [&](int64_t token) { return token != mark(); });
    if (tokenizer_) return TokenizerText(tokenizer_).decode(real);
    return {real.begin(), real.end()};
  }

 private:
  std::shared_ptr<const data::Tokenizer> tokenizer_;
};

/// Pairs by split, and where each comes from.
struct PairSet {
  data::ExampleSet examples{data::kPairsLayout};
  std::shared_ptr<const data::Tokenizer> tokenizer;
  std::map<std::string, std::string> file;           // of a split
  std::map<std::string, std::vector<int64_t>> rows;  // of its examples

  void add(const data::Pair& pair) {
    const std::string split(pair.split);
    examples.add(split, data::pair_example(pair));
    file[split] = pair.file;
    rows[split].push_back(pair.row);
  }

  /// "a.tsv, row 3"; where nobody knows the row, "set, pair 2 of train".
  std::string place(const std::string& path, const std::string& split,
                    int64_t example) const {
    const auto found = rows.find(split);
    if (found == rows.end() || file.at(split).empty())
      return (path.empty() ? "dates" : path) + ", pair " + std::to_string(example) +
             " of " + split;
    return file.at(split) + ", row " +
           std::to_string(found->second[static_cast<size_t>(example)]);
  }
};

class Pairs : public Task {
 public:
  Pairs(const TaskConfig& config, bool leaves_long, PairSet set)
      : length_(config.length),
        seed_(config.seed),
        set_(std::move(set)),
        text_(set_.tokenizer) {
    for (const std::string& split : set_.examples.splits())
      take_fitting(config, split, leaves_long);
    if (kept_["train"].empty())
      throw DataError(config.path.empty() ? "dates" : config.path, -1,
                      "pairs to train on of at most data.length = " +
                          std::to_string(length_) + " tokens, got none");
  }

  void shape(ModelConfig& config) const override {
    config.model = "encoder_decoder";
    config.vocabulary = text_.mark() + 1, config.classes = 0;
    config.length = length_;
  }

  std::string metric() const override { return "token accuracy"; }
  bool higher_is_better() const override { return true; }

  Batch train_batch(int64_t step, int64_t micro_step, Rows rows) const override {
    const std::vector<int64_t>& all = kept("train");
    std::vector<int64_t> examples;
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      data::Dice dice = row_dice(seed_, step, micro_step, row);
      examples.push_back(all[static_cast<size_t>(pick(dice, std::ssize(all)))]);
    }
    return gather(set_.examples.split("train"), examples);
  }

  int64_t size(const std::string& split, int64_t) const override {
    return std::ssize(kept(split));
  }

  Batch eval_batch(const std::string& split, int64_t begin, int64_t end,
                   int64_t) const override {
    const std::vector<int64_t>& all = kept(split);
    if (begin < 0 || begin >= end || end > std::ssize(all))
      throw std::invalid_argument("pairs: expected pairs within 0 to " +
                                  std::to_string(all.size()) + " of " + split);
    return gather(set_.examples.split(split), {all.begin() + begin, all.begin() + end});
  }

  double value(const Loss& total) const override {
    return static_cast<double>(total.right) /
           static_cast<double>(std::max<int64_t>(total.count, 1));
  }

  std::vector<int64_t> encode(const std::string& text) const override {
    return text_.encode(text);
  }
  std::string decode(const std::vector<int64_t>& tokens) const override {
    return text_.decode(tokens);
  }
  int64_t begin() const override { return text_.begin(); }
  int64_t end() const override { return text_.end(); }

  std::string tokenizer() const override {
    return set_.tokenizer ? set_.tokenizer->json() : "";
  }

  uint64_t hash() const override {
    if (!set_.tokenizer) return set_.examples.hash();
    return data::fnv1a(data::bytes_of(data::hash_text(set_.tokenizer->hash())),
                       set_.examples.hash());
  }

 private:
  /// The pairs of a split that are short enough: all, unless others may be left out.
  void take_fitting(const TaskConfig& config, const std::string& split,
                    bool leaves_long) {
    const std::string& path = config.path;
    const data::ExampleSplit& pairs = set_.examples.split(split);
    std::vector<int64_t>& kept = kept_[split];
    int64_t first = -1, many = 0, longest = 0;  // of those that are not
    for (int64_t i = 0; i < pairs.size(); ++i) {
      if (pairs.length(i, 0) < 1)
        throw DataError(set_.place(path, split, i), -1, "a source, got no token");
      const int64_t needed = std::max(pairs.length(i, 0), pairs.length(i, 1) + 1);
      if (needed <= length_) {
        kept.push_back(i);
        continue;
      }
      if (many++ == 0) first = i;
      longest = std::max(longest, needed);
    }
    if (many > 0 && !leaves_long) refuse_long(path, split, first, many, longest);
    if (many > 0)
      tell(config, {"left out: " + std::to_string(many) + " of " +
                    std::to_string(pairs.size()) + " pairs of " + split +
                    ", longer than data.length = " + std::to_string(length_) +
                    ", such as " + set_.place(path, split, first)});
  }

  [[noreturn]] void refuse_long(const std::string& path, const std::string& split,
                                int64_t first, int64_t many, int64_t longest) const {
    const data::ExampleSplit& pairs = set_.examples.split(split);
    const std::string tokens = set_.tokenizer ? " tokens" : " bytes";
    throw DataError(set_.place(path, split, first), -1,
                    "at most data.length = " + std::to_string(length_) + tokens +
                        " in a source and " + std::to_string(length_ - 1) +
                        " in a target, got " + std::to_string(pairs.length(first, 0)) +
                        " and " + std::to_string(pairs.length(first, 1)) + "; of " +
                        split + " " + std::to_string(many) + " of " +
                        std::to_string(pairs.size()) +
                        " pairs are longer: data.length=" + std::to_string(longest) +
                        " takes them, pairs:long=leave leaves them out");
  }

  /// std::invalid_argument lists the splits there are.
  const std::vector<int64_t>& kept(const std::string& split) const {
    set_.examples.split(split);
    return kept_.at(split);
  }

  Batch gather(const data::ExampleSplit& split,
               const std::vector<int64_t>& examples) const {
    std::vector<std::vector<int64_t>> heard, given, written;
    const auto read = [&](int64_t example, int part) {
      std::vector<int64_t> tokens(static_cast<size_t>(split.length(example, part)));
      split.read(example, part, 0, tokens);
      return tokens;
    };
    for (const int64_t example : examples) {
      heard.push_back(read(example, 0));
      written.push_back(read(example, 1));
      given.push_back(written.back());
      given.back().insert(given.back().begin(), text_.mark());
      written.back().push_back(text_.mark());
    }
    Batch batch;
    batch.tokens = padded(given, text_.mark());
    batch.targets = padded(written, -1);
    batch.source = padded(heard, text_.mark());
    batch.lengths = lengths_of(given);
    batch.source_lengths = lengths_of(heard);
    return batch;
  }

  int64_t length_;
  uint64_t seed_;
  PairSet set_;
  PairText text_;
  std::map<std::string, std::vector<int64_t>> kept_;  // by split, those that fit
};

/// A set of `lagwise data pairs`.
PairSet open_pairs(const std::string& path) {
  PairSet set;
  set.examples = data::ExampleSet(path, data::kPairsScheme, data::kPairsLayout);
  set.tokenizer = set_tokenizer(path, set.examples);
  set.examples.expect_vocabulary(set.tokenizer ? set.tokenizer->vocabulary() : 256);
  return set;
}

std::unique_ptr<Task> make_pairs(const TaskConfig& config, Spec& options) {
  const auto leaves_long = [&] {
    return options.take_choice("long", "refuse", {"refuse", "leave"}) == "leave";
  };
  if (!config.path.empty() && data::is_shard_set(config.path)) {
    const bool leaves = leaves_long();
    return std::make_unique<Pairs>(config, leaves, open_pairs(config.path));
  }
  data::PairReading reading{.path = config.path};
  reading.valid = take_fraction(options, "valid", reading.valid);
  reading.test = take_fraction(options, "test", reading.test);
  reading.source_column = options.take("source", "");
  reading.target_column = options.take("target", "");
  const bool leaves = leaves_long();
  const int64_t made = take_count(options, "made", data::DateMaking().pairs);
  options.finish();  // before the work
  PairSet set;
  const auto gather = [&](const data::Pair& pair) { set.add(pair); };
  if (config.path.empty())
    data::make_date_pairs({made, reading.valid, reading.test, config.seed}, gather);
  else
    data::read_pairs(reading, gather);
  return std::make_unique<Pairs>(config, leaves, std::move(set));
}

const RegisterTask pairs_registered({
    .name = kPairsTask,
    .summary = "a text from another: TSV, CSV, JSONL; made: dates in another form",
    .metric = "token accuracy",
    .make = make_pairs,
    .text = [](const std::vector<std::string>&,
               const std::string& tokenizer) -> std::unique_ptr<TokenText> {
      if (tokenizer.empty()) return std::make_unique<PairText>(nullptr);
      return std::make_unique<PairText>(saved_tokenizer(tokenizer));
    },
});

}  // namespace
}  // namespace lagwise
