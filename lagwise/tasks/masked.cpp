// Hidden tokens of a text (tasks/corpus_task.h), to be guessed from all around them. The
// rule is BERT's (Devlin et al., 2019, arXiv:1810.04805): each token is chosen with
// probability `rate`, by itself; of those that are
//
//     mask     = 0.8 of the time   the mask stands in its place,
//     random   = 0.1 of the time   any token, each as likely, itself among them,
//     else                         the token itself,
//
// and the model is asked for the token that was there. So it cannot trust what it reads
// even where there is no mask. Only chosen tokens count. The mask is one token more than
// the text has.
//
// What is chosen is a function of seed, step, micro-step, row and position in training,
// and of seed, number of the window and position where a model is judged: every judgement
// hides the same tokens.

#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "lagwise/core/noise.h"
#include "lagwise/core/noise_streams.h"
#include "lagwise/tasks/corpus_task.h"
#include "lagwise/tasks/taking.h"

namespace lagwise {
namespace {

constexpr const char* kMaskedTask = "masked";

// Layers of the noise of data, whose layer 0 says where crops begin (tasks/draws.h).
constexpr int64_t kTraining = 1, kJudging = 2;

struct MaskingRule {
  double rate = 0.15, mask = 0.8, random = 0.1;
};

/// Three draws for each position of a row: whether, what instead, which token.
struct MaskingDraws {
  enum Feature { kWhether = 0, kWhat = 1, kWhich = 2 };

  MaskingDraws(const Noise& noise, NoiseAt at)
      : whether(row(noise, at, kWhether)),
        what(row(noise, at, kWhat)),
        which(row(noise, at, kWhich)) {}

  static NoiseRow row(const Noise& noise, NoiseAt at, Feature feature) {
    at.feature = feature;
    return noise.at(at);
  }

  NoiseRow whether, what, which;
};

/// Hides tokens of one row, and says in `targets` what they were; -1: not hidden.
void hide(const MaskingRule& rule, const MaskingDraws& draws, int64_t vocabulary,
          int64_t length, int64_t* tokens, int64_t* targets) {
  for (int64_t i = 0; i < length; ++i) {
    targets[i] = -1;
    if (draws.whether.uniform(i) >= rule.rate) continue;
    targets[i] = tokens[i];
    const double what = draws.what.uniform(i);
    if (what < rule.mask)
      tokens[i] = vocabulary;
    else if (what < rule.mask + rule.random)
      tokens[i] = static_cast<int64_t>(draws.which.uniform(i) *
                                       static_cast<double>(vocabulary));
  }
}

class Masked : public CorpusTask {
 public:
  Masked(const TaskConfig& config, const MaskingRule& rule, CorpusParts parts)
      : CorpusTask(kMaskedTask, config, parts), rule_(rule) {}

  void shape(ModelConfig& config) const override {
    config.model = "encoder_lm";
    config.vocabulary = corpus().vocabulary() + 1, config.classes = 0;
    config.length = length();
  }

  std::string metric() const override { return "masked loss"; }

  Batch train_batch(int64_t step, int64_t micro_step, Rows rows) const override {
    const Noise noise(seed(), streams::kData, step, micro_step);
    return hidden(
        crops(step, micro_step, rows, length()), [&](int64_t row) -> MaskingDraws {
          return {noise, {.layer = kTraining, .realisation = rows.begin + row}};
        });
  }

  Batch eval_batch(const std::string& split, int64_t begin, int64_t end,
                   int64_t length) const override {
    const Noise noise(seed(), streams::kData);
    return hidden(windows(split, begin, end, length), [&](int64_t row) -> MaskingDraws {
      const int64_t number = begin + row;  // a realisation has 24 bits
      return {noise,
              {.layer = kJudging,
               .head = number >> 24,
               .realisation = number & ((1 << 24) - 1)}};
    });
  }

  double value(const Loss& total) const override { return nats(total); }
  std::optional<double> guess(const std::string&) const override {
    return std::log(static_cast<double>(corpus().vocabulary()));
  }

  std::map<std::string, double> more(const std::string&,
                                     const Loss& total) const override {
    return {{"accuracy", static_cast<double>(total.right) /
                             static_cast<double>(std::max<int64_t>(total.count, 1))}};
  }

 private:
  /// Of windows with the token after each, which nobody needs here.
  template <class Draws>
  Batch hidden(const at::Tensor& both, const Draws& draws_of) const {
    const int64_t length = both.size(1) - 1;
    Batch batch;
    batch.tokens = both.slice(1, 0, length).contiguous();
    batch.targets = at::empty_like(batch.tokens);
    for (int64_t row = 0; row < both.size(0); ++row)
      hide(rule_, draws_of(row), corpus().vocabulary(), length,
           batch.tokens.data_ptr<int64_t>() + row * length,
           batch.targets.data_ptr<int64_t>() + row * length);
    return batch;
  }

  MaskingRule rule_;
};

double take_probability(Spec& options, const char* key, double fallback, double least) {
  const double p = options.take(key, fallback);
  if (!(p >= least && p <= 1))
    throw std::invalid_argument(
        options.name() + ": " + key + ": expected a probability, " +
        (least > 0 ? "above 0" : "from 0") + " to 1, got " + std::to_string(p));
  return p;
}

std::unique_ptr<Task> make_masked(const TaskConfig& config, Spec& options) {
  need_path(kMaskedTask, config.path);
  MaskingRule rule;
  rule.rate = take_probability(options, "rate", rule.rate, 1e-6);
  rule.mask = take_probability(options, "mask", rule.mask, 0);
  rule.random = take_probability(options, "random", rule.random, 0);
  if (rule.mask + rule.random > 1)
    throw std::invalid_argument("masked: expected mask + random to be at most 1, got " +
                                std::to_string(rule.mask + rule.random));
  return std::make_unique<Masked>(config, rule, take_parts(config, options));
}

const RegisterTask masked_registered({
    .name = kMaskedTask,
    .summary = "hidden bytes, pieces of words or words of a text: any text, WikiText",
    .metric = "masked loss",
    .make = make_masked,
    .text = corpus_text,
});

}  // namespace
}  // namespace lagwise
