#include "lagwise/runtime/state_file.h"

#include "lagwise/core/errors.h"
#include "lagwise/data/formats/atomic_file.h"
#include "lagwise/data/formats/mapped_file.h"

namespace lagwise::runtime {

void save_state(const std::string& file, const State& state) {
  data::replace_file(file, state.saved());
}

std::unique_ptr<State> load_state(const std::string& file, const Model& model) {
  const data::MappedFile mapped(file);
  return State::from_saved(file, data::text_of(mapped.bytes()), model.layout(),
                           model.fingerprint());
}

}  // namespace lagwise::runtime
