#include <cstdlib>
#include <string>

#include "lagwise/core/errors.h"
#include "lagwise/runtime/model.h"

/// Any bytes are a model or a DataError of one line. A model takes tokens, of which ASan
/// sees every read, and a state of it comes back from what it saved.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lagwise::runtime;
  try {
    const auto model = Model::open("input", {data, size});
    if (state_bytes(model->layout()) > size_t{1} << 24) return 0;  // would be slow
    const auto state = model->start();
    const int64_t last = model->plan().vocabulary - 1;
    const int64_t tokens[] = {0, last, last / 2};
    if (model->can_take(*state, tokens)) model->prefill(*state, tokens);
    const auto back = State::from_saved("state", state->saved(), model->layout(),
                                        model->fingerprint());
    if (back->position() != state->position()) std::abort();
  } catch (const lagwise::DataError& error) {
    if (std::string(error.what()).find('\n') != std::string::npos) std::abort();
  }
  return 0;
}
