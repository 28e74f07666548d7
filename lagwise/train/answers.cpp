#include "lagwise/train/answers.h"

#include <algorithm>
#include <stdexcept>

#include "lagwise/data/text/chrf.h"
#include "lagwise/models/model.h"
#include "lagwise/train/generation.h"
#include "lagwise/train/spread.h"

namespace lagwise {
namespace {

/// Row `row` of tokens [B, N]: the first `lengths[row]`, or all.
std::vector<int64_t> row_tokens(const at::Tensor& tokens, const at::Tensor& lengths,
                                int64_t row) {
  const int64_t many =
      lengths.defined() ? lengths[row].item<int64_t>() : tokens.size(1);
  const at::Tensor whole = tokens[row].contiguous();
  const int64_t* first = whole.data_ptr<int64_t>();
  return {first, first + many};
}

}  // namespace

double Answers::exact_match() const {
  const auto right = std::ranges::count_if(
      all, [](const Answer& one) { return one.written == one.wanted; });
  return static_cast<double>(right) /
         static_cast<double>(std::max<size_t>(all.size(), 1));
}

double Answers::chrf() const {
  data::ChrF chrf;
  for (const Answer& one : all) chrf.add(one.written, one.wanted);
  return chrf.score();
}

bool has_answers(const Task& task, const Model& model) {
  return model_row(model.config().model).listens && task.end() >= 0;
}

Answers write_answers(Model& model, const Task& task, const Draw& draw,
                      const std::string& split, int64_t examples, int64_t batch,
                      const std::function<void(double)>& progress) {
  if (!has_answers(task, model))
    throw std::invalid_argument(
        "expected a task whose examples have answers, such as pairs");
  Answers answers;
  const std::vector<Stretch> stretches = spread(task.size(split), examples, batch);
  for (size_t i = 0; i < stretches.size(); ++i) {
    const auto [begin, end] = stretches[i];
    const Batch asked = task.eval_batch(split, begin, end);
    Writing writing;
    writing.prompts.assign(static_cast<size_t>(end - begin), {task.begin()});
    writing.length = model.config().length;
    writing.sampling.temperature = 0;
    writing.source = &asked;
    writing.stops = {{task.end()}};
    const Written written = write_on(model, &task, draw, writing);
    for (int64_t row = 0; row < end - begin; ++row)
      answers.all.push_back(
          {task.decode(row_tokens(asked.source, asked.source_lengths, row)),
           task.decode(row_tokens(asked.targets, asked.lengths, row)),
           task.decode(written.tokens[static_cast<size_t>(row)])});
    if (progress)
      progress(static_cast<double>(i + 1) / static_cast<double>(stretches.size()));
  }
  return answers;
}

}  // namespace lagwise
