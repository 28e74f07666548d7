// The next token of a text (data/sets/language_corpus.h says what is read): its bytes, or
// the tokens of a set that was prepared with a tokenizer. Training takes crops of
// length + 1 tokens from anywhere; evaluation windows that do not overlap, from the
// start of the split: what is left at its end and fills no window is not judged.
//
// A byte, a piece of a word and a word are not equally hard to guess. Bits per byte of
// the text, and perplexity per word of it, can be compared between all three.

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "lagwise/core/errors.h"
#include "lagwise/data/sets/language_corpus.h"
#include "lagwise/tasks/draws.h"
#include "lagwise/tasks/leaf_stretches.h"
#include "lagwise/tasks/taking.h"
#include "lagwise/tasks/task.h"
#include "lagwise/tasks/tokenizer_text.h"

namespace lagwise {
namespace {

constexpr const char* kLanguageTask = "language";

/// Tokens are bytes.
struct ByteText : TokenText {
  std::vector<int64_t> encode(const std::string& text) const override {
    const data::Bytes bytes = data::bytes_of(text);
    return {bytes.begin(), bytes.end()};
  }
  std::string decode(const std::vector<int64_t>& tokens) const override {
    return {tokens.begin(), tokens.end()};
  }
};

class Language : public Task {
 public:
  Language(const TaskConfig& config, double valid, double test)
      : length_(config.length), seed_(config.seed), corpus_(config.path, valid, test) {
    for (const std::string& split : corpus_.splits())
      if (corpus_.split(split).size() <= length_)
        throw DataError(config.path, -1,
                        "more than data.length = " + std::to_string(length_) +
                            (corpus_.tokenizer() ? " tokens" : " bytes") +
                            " in the split " + split + ", got " +
                            std::to_string(corpus_.split(split).size()));
  }

  void shape(ModelConfig& config) const override {
    config.model = "decoder_lm";
    config.vocabulary = corpus_.vocabulary(), config.classes = 0;
    config.length = length_;
  }

  /// Tokens of a tokenizer are judged by themselves while a model is trained, for the
  /// bytes of a token differ from split to split; `more` has bits per byte.
  std::string metric() const override {
    return corpus_.tokenizer() ? "nats per token" : "bits per byte";
  }

  Batch train_batch(int64_t step, int64_t micro_step, Rows rows) const override {
    return train_windows(step, micro_step, rows, length_);
  }

  Batch train_windows(int64_t step, int64_t micro_step, Rows rows,
                      int64_t length) const override {
    const data::TokenStream& text = corpus_.split("train");
    if (text.size() <= length)
      throw std::invalid_argument("language: expected windows below the " +
                                  std::to_string(text.size()) +
                                  (corpus_.tokenizer() ? " tokens" : " bytes") +
                                  " of the split train, got " + std::to_string(length));
    // Rows are functions of their step, so those of the next are known by now.
    for (const int64_t next : starts(text, step + 1, micro_step, rows, length))
      text.will_read(next, length + 1);
    return windows(text, starts(text, step, micro_step, rows, length), length);
  }

  int64_t size(const std::string& split, int64_t length) const override {
    return (corpus_.split(split).size() - 1) / window(length);
  }

  Batch eval_batch(const std::string& split, int64_t begin, int64_t end,
                   int64_t length) const override {
    if (begin < 0 || begin >= end || end > size(split, length))
      throw std::invalid_argument("language: expected windows within 0 to " +
                                  std::to_string(size(split, length)) + " of " + split);
    std::vector<int64_t> starts;
    for (int64_t i = begin; i < end; ++i) starts.push_back(i * window(length));
    return windows(corpus_.split(split), starts, window(length));
  }

  double value(const Loss& total) const override {
    return corpus_.tokenizer() ? nats(total) : nats(total) / std::log(2.0);
  }

  /// Of the text itself, whatever its tokens are:
  ///
  ///     bits per byte    nats per token * tokens / bytes / ln 2
  ///     word perplexity  exp(nats per token * tokens / words), an end of line counted
  ///                      as a word, as is usual for WikiText
  ///
  /// Where words are not in the vocabulary, both are too low: guessing <unk> is
  /// easier than guessing the word. `unknown tokens` says what part that concerns, with
  /// those that the text itself has as <unk>, as WikiText does.
  std::map<std::string, double> more(const std::string& split,
                                     const Loss& total) const override {
    const auto tokens = static_cast<double>(corpus_.split(split).size());
    const double all = nats(total) * tokens;
    std::map<std::string, double> more;
    if (const int64_t words = corpus_.words(split); words > 0)
      more["word perplexity"] = std::exp(all / static_cast<double>(words));
    if (!corpus_.tokenizer()) return more;
    more["bits per byte"] =
        all / static_cast<double>(corpus_.bytes(split)) / std::log(2.0);
    if (corpus_.tokenizer()->unknown() >= 0)
      more["unknown tokens"] = static_cast<double>(corpus_.unknown(split)) / tokens;
    return more;
  }

  std::vector<int64_t> stream(const std::string& split, int64_t first,
                              int64_t count) const override {
    const data::TokenStream& text = corpus_.split(split);
    if (first < 0 || count < 0)
      throw std::invalid_argument(
          "language: expected a place and a count of 0 or more");
    const int64_t kept = std::clamp<int64_t>(text.size() - first, 0, count);
    std::vector<int64_t> tokens(static_cast<size_t>(kept));
    if (kept > 0) text.read(first, tokens);
    return tokens;
  }

  std::vector<int64_t> encode(const std::string& text) const override {
    return token_text()->encode(text);
  }

  std::string decode(const std::vector<int64_t>& tokens) const override {
    return token_text()->decode(tokens);
  }

  std::string tokenizer() const override {
    return corpus_.tokenizer() ? corpus_.tokenizer()->json() : "";
  }

  uint64_t hash() const override { return corpus_.hash(); }

 private:
  std::unique_ptr<TokenText> token_text() const {
    if (!corpus_.tokenizer()) return std::make_unique<ByteText>();
    // It lives as long as the corpus, and whoever asks has that.
    return std::make_unique<TokenizerText>(std::shared_ptr<const data::Tokenizer>(
        std::shared_ptr<void>(), corpus_.tokenizer()));
  }

  int64_t window(int64_t length) const { return length > 0 ? length : length_; }

  std::vector<int64_t> starts(const data::TokenStream& text, int64_t step,
                              int64_t micro_step, const Rows& rows,
                              int64_t length) const {
    const LeafStretches stretches(text.shard_ends(), rows, length);
    std::vector<int64_t> starts;
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      data::Dice dice = row_dice(seed_, step, micro_step, row);
      starts.push_back(stretches.start(dice));
    }
    return starts;
  }

  static double nats(const Loss& total) {
    return total.sum.item<double>() /
           static_cast<double>(std::max<int64_t>(total.count, 1));
  }

  static Batch windows(const data::TokenStream& text,
                       const std::vector<int64_t>& starts, int64_t length) {
    const auto rows = static_cast<int64_t>(starts.size());
    at::Tensor both = at::empty({rows, length + 1}, at::kLong);
    for (int64_t row = 0; row < rows; ++row)
      text.read(starts[static_cast<size_t>(row)],
                {both.data_ptr<int64_t>() + row * (length + 1),
                 static_cast<size_t>(length + 1)});
    Batch batch;
    batch.tokens = both.slice(1, 0, length).contiguous();
    batch.targets = both.slice(1, 1, length + 1).contiguous();
    return batch;
  }

  int64_t length_;
  uint64_t seed_;
  data::LanguageCorpus corpus_;
};

std::unique_ptr<Task> make_language(const TaskConfig& config, Spec& options) {
  need_path(kLanguageTask, config.path);
  const double valid = take_fraction(options, "valid", 0.05);
  const double test = take_fraction(options, "test", 0.05);
  options.finish();  // before the work
  return std::make_unique<Language>(config, valid, test);
}

const RegisterTask language_registered({
    .name = kLanguageTask,
    .summary = "the next byte, piece of a word or word of a text: any text, WikiText",
    .metric = "bits per byte",
    .make = make_language,
    .text = [](const std::vector<std::string>&,
               const std::string& tokenizer) -> std::unique_ptr<TokenText> {
      if (tokenizer.empty()) return std::make_unique<ByteText>();
      return std::make_unique<TokenizerText>(saved_tokenizer(tokenizer));
    },
});

}  // namespace
}  // namespace lagwise
