#include "lagwise/tasks/corpus_task.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <stdexcept>

#include "lagwise/core/errors.h"
#include "lagwise/tasks/byte_text.h"
#include "lagwise/tasks/draws.h"
#include "lagwise/tasks/leaf_stretches.h"
#include "lagwise/tasks/taking.h"
#include "lagwise/tasks/tokenizer_text.h"

namespace lagwise {
namespace {

/// The `width` tokens from each of these places on.
at::Tensor tokens_from(const data::TokenStream& text,
                       const std::vector<int64_t>& starts, int64_t width) {
  const auto rows = static_cast<int64_t>(starts.size());
  at::Tensor all = at::empty({rows, width}, at::kLong);
  for (int64_t row = 0; row < rows; ++row)
    text.read(starts[static_cast<size_t>(row)],
              {all.data_ptr<int64_t>() + row * width, static_cast<size_t>(width)});
  return all;
}

/// Windows of `width` tokens, each with the token after it, one behind another.
int64_t windows_in(int64_t tokens, int64_t width) {
  return std::max<int64_t>(tokens - 1, 0) / width;
}

/// How many documents hold no window.
int64_t short_documents(const data::TokenStream& text, int64_t width) {
  return std::ranges::count_if(text.documents(), [&](const data::Document& document) {
    return windows_in(document.length(), width) == 0;
  });
}

/// What a window stays within, as messages say it.
std::string whole_of(const data::TokenStream& text) {
  return text.keeps_documents() ? "the longest document of " : "";
}

}  // namespace

CorpusParts take_parts(const TaskConfig& config, Spec& options) {
  CorpusParts parts;
  if (data::is_shard_set(config.path)) return parts;
  parts.valid = take_fraction(options, "valid", parts.valid);
  parts.test = take_fraction(options, "test", parts.test);
  options.finish();  // before the work
  return parts;
}

CorpusTask::CorpusTask(const char* name, const TaskConfig& config, CorpusParts parts)
    : name_(name),
      length_(config.length),
      seed_(config.seed),
      corpus_(config.path, parts.valid, parts.test) {
  const std::string width = "data.length = " + std::to_string(length_) + unit();
  for (const std::string& split : corpus_.splits()) {
    const data::TokenStream& text = corpus_.split(split);
    if (text.longest() <= length_)
      throw DataError(config.path, -1,
                      "more than " + width + " in " + whole_of(text) + "the split " +
                          split + ", got " + std::to_string(text.longest()));
    if (const int64_t few = short_documents(text, length_); few > 0)
      tell(config, {"left out: " + std::to_string(few) + " of " +
                    std::to_string(text.documents().size()) + " documents of " + split +
                    ", not longer than " + width});
  }
}

at::Tensor CorpusTask::crops(int64_t step, int64_t micro_step, const Rows& rows,
                             int64_t length) const {
  const data::TokenStream& text = corpus_.split("train");
  if (text.longest() <= length)
    throw std::invalid_argument(std::string(name_) + ": expected windows below the " +
                                std::to_string(text.longest()) + unit() + " of " +
                                whole_of(text) + "the split train, got " +
                                std::to_string(length));
  // Rows are functions of their step, so those of the next are known by now.
  for (const int64_t next : starts(text, step + 1, micro_step, rows, length))
    text.will_read(next, length + 1);
  return tokens_from(text, starts(text, step, micro_step, rows, length), length + 1);
}

std::vector<int64_t> CorpusTask::starts(const data::TokenStream& text, int64_t step,
                                        int64_t micro_step, const Rows& rows,
                                        int64_t length) const {
  const LeafStretches stretches(text.crop_ends(), rows, length);
  std::vector<int64_t> starts;
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    data::Dice dice = row_dice(seed_, step, micro_step, row);
    starts.push_back(stretches.start(dice));
  }
  return starts;
}

int64_t CorpusTask::size(const std::string& split, int64_t length) const {
  int64_t windows = 0;
  for (const data::Document& document : corpus_.split(split).documents())
    windows += windows_in(document.length(), window(length));
  return windows;
}

at::Tensor CorpusTask::windows(const std::string& split, int64_t begin, int64_t end,
                               int64_t length) const {
  if (begin < 0 || begin >= end || end > size(split, length))
    throw std::invalid_argument(std::string(name_) + ": expected windows within 0 to " +
                                std::to_string(size(split, length)) + " of " + split);
  std::vector<int64_t> starts;
  int64_t before = 0;  // windows of the documents before
  for (const data::Document& document : corpus_.split(split).documents()) {
    const int64_t here = windows_in(document.length(), window(length));
    for (int64_t i = std::max(begin, before); i < std::min(end, before + here); ++i)
      starts.push_back(document.begin + (i - before) * window(length));
    before += here;
  }
  return tokens_from(corpus_.split(split), starts, window(length) + 1);
}

std::vector<int64_t> CorpusTask::stream(const std::string& split, int64_t first,
                                        int64_t count) const {
  const data::TokenStream& text = corpus_.split(split);
  if (first < 0 || count < 0)
    throw std::invalid_argument(std::string(name_) +
                                ": expected a place and a count of 0 or more");
  const int64_t kept = std::clamp<int64_t>(text.size() - first, 0, count);
  std::vector<int64_t> tokens(static_cast<size_t>(kept));
  if (kept > 0) text.read(first, tokens);
  return tokens;
}

std::vector<int64_t> CorpusTask::encode(const std::string& text) const {
  return token_text()->encode(text);
}

std::string CorpusTask::decode(const std::vector<int64_t>& tokens) const {
  return token_text()->decode(tokens);
}

std::string CorpusTask::tokenizer() const {
  return corpus_.tokenizer() ? corpus_.tokenizer()->json() : "";
}

std::unique_ptr<TokenText> CorpusTask::token_text() const {
  if (!corpus_.tokenizer()) return std::make_unique<ByteText>();
  // It lives as long as the corpus, and whoever asks has that.
  return std::make_unique<TokenizerText>(std::shared_ptr<const data::Tokenizer>(
      std::shared_ptr<void>(), corpus_.tokenizer()));
}

double CorpusTask::nats(const Loss& total) {
  return total.sum.item<double>() /
         static_cast<double>(std::max<int64_t>(total.count, 1));
}

std::unique_ptr<TokenText> corpus_text(const std::vector<std::string>&,
                                       const std::string& tokenizer) {
  if (tokenizer.empty()) return std::make_unique<ByteText>();
  return std::make_unique<TokenizerText>(saved_tokenizer(tokenizer));
}

}  // namespace lagwise
