// The next token of a text: tasks/corpus_task.h says which, and in which windows.
//
// A byte, a piece of a word and a word are not equally hard to guess. Bits per byte of
// the text, and perplexity per word of it, can be compared between all three.

#include <cmath>

#include "lagwise/tasks/corpus_task.h"
#include "lagwise/tasks/taking.h"

namespace lagwise {
namespace {

constexpr const char* kLanguageTask = "language";

class Language : public CorpusTask {
 public:
  Language(const TaskConfig& config, CorpusParts parts)
      : CorpusTask(kLanguageTask, config, parts) {}

  void shape(ModelConfig& config) const override {
    config.model = "decoder_lm";
    config.vocabulary = corpus().vocabulary(), config.classes = 0;
    config.length = length();
  }

  /// Tokens of a tokenizer are judged by themselves while a model is trained, for the
  /// bytes of a token differ from split to split; `more` has bits per byte.
  std::string metric() const override {
    return corpus().tokenizer() ? "nats per token" : "bits per byte";
  }

  Batch train_batch(int64_t step, int64_t micro_step, Rows rows) const override {
    return train_windows(step, micro_step, rows, length());
  }

  Batch train_windows(int64_t step, int64_t micro_step, Rows rows,
                      int64_t length) const override {
    return asked(crops(step, micro_step, rows, length));
  }

  Batch eval_batch(const std::string& split, int64_t begin, int64_t end,
                   int64_t length) const override {
    return asked(windows(split, begin, end, length));
  }

  double value(const Loss& total) const override {
    return corpus().tokenizer() ? nats(total) : nats(total) / std::log(2.0);
  }

  std::optional<double> guess(const std::string&) const override {
    const double nats = std::log(static_cast<double>(corpus().vocabulary()));
    return corpus().tokenizer() ? nats : nats / std::log(2.0);
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
    const data::TextExtent judged = corpus().extent(split, length());
    const auto tokens = static_cast<double>(judged.tokens);
    const double all = nats(total) * tokens;
    std::map<std::string, double> more;
    if (judged.words > 0)
      more["word perplexity"] = std::exp(all / static_cast<double>(judged.words));
    if (!corpus().tokenizer()) return more;
    more["bits per byte"] = all / static_cast<double>(judged.bytes) / std::log(2.0);
    if (corpus().tokenizer()->unknown() >= 0)
      more["unknown tokens"] = static_cast<double>(judged.unknown) / tokens;
    return more;
  }

 private:
  /// Of windows with the token after each: after every token, the next.
  static Batch asked(const at::Tensor& both) {
    const int64_t length = both.size(1) - 1;
    Batch batch;
    batch.tokens = both.slice(1, 0, length).contiguous();
    batch.targets = both.slice(1, 1, length + 1).contiguous();
    return batch;
  }
};

std::unique_ptr<Task> make_language(const TaskConfig& config, Spec& options) {
  need_path(kLanguageTask, config.path);
  return std::make_unique<Language>(config, take_parts(config, options));
}

const RegisterTask language_registered({
    .name = kLanguageTask,
    .summary = "the next byte, piece of a word or word of a text: any text, WikiText",
    .metric = "bits per byte",
    .make = make_language,
    .text = corpus_text,
});

}  // namespace
}  // namespace lagwise
