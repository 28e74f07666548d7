// lagwise.h on top of model.h. No exception leaves: what goes wrong becomes a number, or
// NULL and one line.

#include "lagwise/runtime/lagwise.h"

#include <memory>
#include <string>
#include <vector>

#include "lagwise/core/sampler.h"
#include "lagwise/runtime/handles.h"

using lagwise::runtime::caught;
using lagwise::runtime::Model;
using lagwise::runtime::State;

namespace {

constexpr int kNotTaken =
    1;  // a token is not in the vocabulary, or past the last place
constexpr int kMostThreads = 256;

bool fits(const lagwise_model* model, const lagwise_state* state) {
  return model != nullptr && state != nullptr &&
         &state->state->layout() == &model->model->layout();
}

lagwise::Sampling sampling_of(const lagwise_sampling& from) {
  lagwise::Sampling to;
  to.temperature = from.temperature, to.top_k = from.top_k, to.top_p = from.top_p;
  to.min_p = from.min_p, to.repetition_penalty = from.repetition_penalty;
  to.repetition_window = from.repetition_window, to.seed = from.seed;
  return to;
}

}  // namespace

extern "C" {

lagwise_model* lagwise_open_memory(const void* bytes, size_t size, char* why,
                                   size_t why_size) {
  return caught<lagwise_model*>(nullptr, why, why_size, [&] {
    const auto* const first = static_cast<const uint8_t*>(bytes);
    return new lagwise_model(Model::open("the model", {first, size}));
  });
}

void lagwise_close(lagwise_model* model) { delete model; }

int64_t lagwise_vocabulary(const lagwise_model* model) {
  return model == nullptr ? 0 : model->model->plan().vocabulary;
}

const char* lagwise_words(const lagwise_model* model) {
  return model == nullptr ? "" : model->words.c_str();
}

int lagwise_set_threads(lagwise_model* model, int threads) {
  if (model == nullptr || threads < 1 || threads > kMostThreads) return 1;
  return caught(2, nullptr, 0, [&] {
    model->model->set_threads(threads);
    return 0;
  });
}

lagwise_state* lagwise_start(const lagwise_model* model) {
  if (model == nullptr) return nullptr;
  return caught<lagwise_state*>(
      nullptr, nullptr, 0, [&] { return new lagwise_state{model->model->start()}; });
}

lagwise_state* lagwise_fork(const lagwise_state* state) {
  if (state == nullptr) return nullptr;
  return caught<lagwise_state*>(nullptr, nullptr, 0, [&] {
    return new lagwise_state{std::make_unique<State>(*state->state)};
  });
}

void lagwise_end(lagwise_state* state) { delete state; }

size_t lagwise_state_bytes(const lagwise_model* model) {
  return model == nullptr ? 0 : lagwise::runtime::state_bytes(model->model->layout());
}

int64_t lagwise_position(const lagwise_state* state) {
  return state == nullptr ? 0 : state->state->position();
}

int lagwise_prefill(const lagwise_model* model, lagwise_state* state,
                    const int64_t* tokens, size_t count) {
  if (!fits(model, state) || !model->model->can_take(*state->state, {tokens, count}))
    return kNotTaken;
  return caught(2, nullptr, 0, [&] {
    model->model->prefill(*state->state, {tokens, count});
    return 0;
  });
}

int lagwise_step(const lagwise_model* model, lagwise_state* state, int64_t token) {
  return lagwise_prefill(model, state, &token, 1);
}

int lagwise_step_many(const lagwise_model* model, lagwise_state* const* states,
                      const int64_t* tokens, size_t count) {
  for (size_t i = 0; i < count; ++i)
    if (!fits(model, states[i]) ||
        !model->model->can_take(*states[i]->state, {tokens + i, 1}))
      return kNotTaken;
  return caught(2, nullptr, 0, [&] {
    std::vector<State*> each;
    for (size_t i = 0; i < count; ++i) each.push_back(states[i]->state.get());
    model->model->step_many(each, {tokens, count});
    return 0;
  });
}

const float* lagwise_logits(const lagwise_state* state) {
  return state == nullptr ? nullptr : state->state->logits();
}

lagwise_sampling lagwise_sampling_default(void) {
  const lagwise::Sampling usual;
  return {usual.temperature,
          usual.top_k,
          usual.top_p,
          usual.min_p,
          usual.repetition_penalty,
          usual.repetition_window,
          usual.seed,
          0};
}

int64_t lagwise_draw(const lagwise_model* model, const lagwise_state* state,
                     const lagwise_sampling* sampling) {
  if (!fits(model, state) || sampling == nullptr || state->state->position() == 0)
    return -1;
  return caught<int64_t>(-1, nullptr, 0, [&] {
    const lagwise::Sampling how = sampling_of(*sampling);
    lagwise::check(how);
    std::vector<int64_t> recent;
    if (how.repetition_penalty != 1)
      state->state->recent_tokens(how.repetition_window, recent);
    const auto size = static_cast<size_t>(model->model->plan().vocabulary);
    return lagwise::Sampler(how, sampling->sample)
        .pick({state->state->logits(), size}, state->state->position(), recent);
  });
}

}  // extern "C"
