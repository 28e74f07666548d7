#include <cstdlib>
#include <cstring>
#include <string>

#include "lagwise/core/errors.h"
#include "lagwise/core/sampler.h"
#include "lagwise/data/formats/fnv1a.h"
#include "lagwise/runtime/model.h"
#include "lagwise/runtime/testing_model.h"

namespace {

using namespace lagwise;
using namespace lagwise::runtime;

/// A file as someone would forge it: a state of this model whose bytes from `at` on are
/// others, with the hash of what it now holds. A fuzzer cannot find hashes.
std::string forged(const State& state, size_t at, std::string_view bytes) {
  std::string text = state.saved();
  text.resize(text.size() - sizeof(uint64_t));
  at %= text.size();
  text.replace(at, std::min(bytes.size(), text.size() - at),
               bytes.substr(0, text.size() - at));
  const uint64_t hash = data::fnv1a(data::bytes_of(text));
  text.append(reinterpret_cast<const char*>(&hash), sizeof hash);
  return text;
}

/// What a program does with a state: goes on from it, draws, saves it again.
void use(const Model& model, State& state) {
  const int64_t tokens[] = {0, model.plan().vocabulary - 1};
  if (model.can_take(state, tokens)) model.prefill(state, tokens);
  std::vector<int64_t> recent;
  state.recent_tokens(64, recent);
  for (const int64_t token : recent)
    if (token < 0 || token >= model.plan().vocabulary) std::abort();
  if (state.logits() == nullptr) return;
  try {
    Sampling how;
    how.repetition_penalty = 1.5;
    const auto size = static_cast<size_t>(model.plan().vocabulary);
    const int64_t drawn =
        Sampler(how, 0).pick({state.logits(), size}, state.position(), recent);
    if (drawn < 0 || drawn >= model.plan().vocabulary) std::abort();
  } catch (const Diverged&) {  // numbers of a state may be any
  }
  const auto again =
      State::from_saved("again", state.saved(), model.layout(), model.fingerprint());
  if (again->position() != state.position()) std::abort();
}

}  // namespace

/// Any bytes are a state of a small model or a DataError of one line. The first byte
/// chooses: 'f', they are the file; else the next two say from where on they stand in one
/// that is whole.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto bytes = testing::small_model_bytes();
  static const auto model = Model::open("model", bytes);
  if (size < 3) return 0;
  const std::string_view all = data::text_of({data, size});
  const std::string file =
      data[0] == 'f'
          ? std::string(all.substr(1))
          : forged(*model->start(), data[1] | size_t{data[2]} << 8, all.substr(3));
  try {
    use(*model,
        *State::from_saved("input", file, model->layout(), model->fingerprint()));
  } catch (const DataError& error) {
    if (std::string(error.what()).find('\n') != std::string::npos) std::abort();
  }
  return 0;
}
