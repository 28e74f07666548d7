// The part of lagwise.h that knows files: where there are none (a web page) it is left
// out.

#include <stdexcept>

#include "lagwise/runtime/handles.h"
#include "lagwise/runtime/state_file.h"

using lagwise::runtime::caught;

extern "C" {

lagwise_model* lagwise_open(const char* file, char* why, size_t why_size) {
  return caught<lagwise_model*>(nullptr, why, why_size, [&] {
    return new lagwise_model(lagwise::runtime::Model::open(std::string(file)));
  });
}

int lagwise_save(const lagwise_model* model, const lagwise_state* state,
                 const char* file, char* why, size_t why_size) {
  return caught(1, why, why_size, [&] {
    if (model == nullptr || state == nullptr ||
        state->state->fingerprint() != model->model->fingerprint())
      throw std::invalid_argument("expected a state of this model");
    lagwise::runtime::save_state(file, *state->state);
    return 0;
  });
}

lagwise_state* lagwise_load(const lagwise_model* model, const char* file, char* why,
                            size_t why_size) {
  return caught<lagwise_state*>(nullptr, why, why_size, [&] {
    if (model == nullptr) throw std::invalid_argument("expected a model");
    return new lagwise_state{lagwise::runtime::load_state(file, *model->model)};
  });
}

}  // extern "C"
