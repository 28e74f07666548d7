#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lagwise/data/sets/language_corpus.h"
#include "lagwise/tasks/task.h"

namespace lagwise {

/// The parts of a corpus that are valid and test, where it has no splits of its own.
struct CorpusParts {
  double valid = 0.05, test = 0.05;
};

/// The options that say so, and no others: the rest of `options` is taken by now. Of a
/// prepared set they are fixed, and none is taken.
CorpusParts take_parts(const TaskConfig& config, Spec& options);

/// A task on windows of a text (data/sets/language_corpus.h says what is read): its bytes,
/// or the tokens of a set that was prepared with a tokenizer. Training takes crops from
/// anywhere; evaluation windows that do not overlap, from the start of the split: what is
/// left at its end and fills no window is not judged. Where a set keeps its documents
/// apart neither leaves a document, and windows begin with each. What is asked about a
/// window is the matter of each task.
class CorpusTask : public Task {
 public:
  int64_t size(const std::string& split, int64_t length = 0) const override;
  std::vector<int64_t> stream(const std::string& split, int64_t first,
                              int64_t count) const override;
  std::vector<int64_t> encode(const std::string& text) const override;
  std::string decode(const std::vector<int64_t>& tokens) const override;
  std::string tokenizer() const override;
  uint64_t hash() const override { return corpus_.hash(); }

 protected:
  /// `name` of the task, for messages. DataError for a split that is no longer than a
  /// window.
  CorpusTask(const char* name, const TaskConfig& config, CorpusParts parts);

  const data::LanguageCorpus& corpus() const { return corpus_; }
  int64_t length() const { return length_; }  ///< of training windows
  int64_t window(int64_t length) const { return length > 0 ? length : length_; }
  uint64_t seed() const { return seed_; }

  /// Crops of `length` + 1 tokens for training, [rows, length + 1].
  at::Tensor crops(int64_t step, int64_t micro_step, const Rows& rows,
                   int64_t length) const;
  /// Windows [begin, end) of a split, each with the token after it.
  at::Tensor windows(const std::string& split, int64_t begin, int64_t end,
                     int64_t length) const;

  static double nats(const Loss& total);  ///< per target

 private:
  std::unique_ptr<TokenText> token_text() const;
  const char* unit() const { return corpus_.tokenizer() ? " tokens" : " bytes"; }
  std::vector<int64_t> starts(const data::TokenStream& text, int64_t step,
                              int64_t micro_step, const Rows& rows,
                              int64_t length) const;

  const char* name_;
  int64_t length_;
  uint64_t seed_;
  data::LanguageCorpus corpus_;
};

/// What the tokens of such tasks stand for: TaskRow::text.
std::unique_ptr<TokenText> corpus_text(const std::vector<std::string>& words,
                                       const std::string& tokenizer);

}  // namespace lagwise
