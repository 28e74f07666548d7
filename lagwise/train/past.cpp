#include "lagwise/train/past.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>

#include "lagwise/train/evaluation_mode.h"

namespace lagwise {
namespace {

constexpr int64_t kMostPast = 1024;

int64_t multiple_of(std::string_view word, const std::string& text) {
  int64_t multiple = -1;
  const char* const end = word.data() + word.size();
  const auto [stopped, error] = std::from_chars(word.data(), end, multiple);
  if (error != std::errc() || stopped != end || multiple < 0 || multiple > kMostPast)
    throw std::invalid_argument(
        "train.past: expected whole numbers from 0 to " + std::to_string(kMostPast) +
        ", parted by commas, such as 0,0,1,3; got '" + text + "'");
  return multiple;
}

Batch last_tokens(const Batch& batch, int64_t count) {
  const int64_t before = batch.tokens.size(1) - count;
  Batch last;
  last.tokens = batch.tokens.narrow(1, before, count);
  last.targets = batch.targets.narrow(1, before, count);
  return last;
}

/// Whether a state has the same size after `chunk` tokens more, once it has read some.
bool keeps_its_size(Model& model, DecodingState& state, const at::Tensor& chunk) {
  model.extend(state, chunk);
  const int64_t before = state.bytes();
  model.extend(state, chunk);
  return state.bytes() == before;
}

/// One example after the longest past.
void rehearse_past(Model& model, const Task& task, int64_t multiple, int64_t length,
                   const Draw& draw) {
  if (length < 2)
    throw std::invalid_argument("expected data.length of at least 2, got " +
                                std::to_string(length));
  const Batch batch = task.train_windows(0, 0, 1, (multiple + 1) * length);
  const c10::NoGradGuard no_graph;
  const EvaluationMode no_dropout(model);
  const auto state = model.start(1, draw);
  const at::Tensor window = batch.tokens.narrow(1, 0, length);
  model.extend(*state, window);
  if (!keeps_its_size(model, *state, window))
    throw std::invalid_argument(
        "expected an attention and an encoding with a state of constant size, got "
        "model.attention = " +
        model.config().attention + " with model.encoding = " + model.config().encoding +
        ", whose state grows with the past");
  loss_after_past(model, batch, length, draw);
}

}  // namespace

PastMultiples::PastMultiples(const std::string& text) {
  std::string_view rest = text;
  for (size_t comma = 0; comma != rest.npos; rest.remove_prefix(comma + 1)) {
    comma = rest.find(',');
    multiples_.push_back(multiple_of(rest.substr(0, comma), text));
    if (comma == rest.npos) break;
  }
}

int64_t PastMultiples::most() const {
  return *std::max_element(multiples_.begin(), multiples_.end());
}

int64_t PastMultiples::multiple(const Draw& draw) const {
  // A row of the noise of data that no example is drawn from: theirs have head 0.
  const double chance = draw.noise(streams::kData).at({.head = 1}).uniform(0);
  const auto count = static_cast<double>(multiples_.size());
  return multiples_[std::min(multiples_.size() - 1,
                             static_cast<size_t>(chance * count))];
}

std::unique_ptr<DecodingState> read_past(Model& model, const at::Tensor& tokens,
                                         int64_t chunk, const Draw& draw) {
  const c10::NoGradGuard no_graph;
  const EvaluationMode no_dropout(model);
  auto state = model.start(tokens.size(0), draw);
  for (int64_t begin = 0; begin < tokens.size(1); begin += chunk)
    model.extend(*state,
                 tokens.narrow(1, begin, std::min(chunk, tokens.size(1) - begin)));
  return state;
}

Loss loss_after_past(Model& model, const Batch& batch, int64_t length,
                     const Draw& draw) {
  const int64_t past = batch.tokens.size(1) - length;
  const auto state = read_past(model, batch.tokens.narrow(1, 0, past), length, draw);
  const Batch window = last_tokens(batch, length);
  return cross_entropy(model.logits_after(*state, window.tokens), window.targets);
}

void check_past(Model& model, const Task& task, const PastMultiples& past,
                int64_t length, const Draw& draw) {
  if (!past.any()) return;
  try {
    rehearse_past(model, task, past.most(), length, draw);
  } catch (const std::invalid_argument& refusal) {
    throw std::invalid_argument("train.past: " + std::string(refusal.what()));
  }
}

}  // namespace lagwise
