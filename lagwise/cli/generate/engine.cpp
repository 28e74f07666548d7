#include "lagwise/cli/generate/engine.h"

#include <filesystem>
#include <stdexcept>

#include "lagwise/cli/checks.h"
#include "lagwise/core/machine.h"
#include "lagwise/models/model.h"
#include "lagwise/runtime/state_file.h"

namespace lagwise::cli {
namespace {

/// A product of so few weights is over before a second thread has begun.
constexpr size_t kWorthThreads = size_t{4} << 20;

}  // namespace

void add_engine_flags(CLI::App& verb, EngineFlags& flags) {
  verb.add_option("--engine", flags.engine,
                  "Who computes: small (without torch, many times faster), torch, or "
                  "auto: small where it can")
      ->check(CLI::IsMember({"auto", "small", "torch"}))
      ->capture_default_str();
  verb.add_option("--state", flags.state,
                  "Go on from a state that --save-state wrote, as if the text before "
                  "had just been read")
      ->check(file_name());
  verb.add_option("--save-state", flags.save_state,
                  "Also write what the model knows of the text at its end to this file")
      ->check(file_name());
}

Engine::Engine(const RunFlags& run, const EngineFlags& flags) : flags_(flags) {
  std::error_code ignored;
  if (std::filesystem::is_regular_file(run.run, ignored))
    open_file(run.run);
  else
    open_folder(run);
  if (model_ != nullptr && model_->weight_bytes() >= kWorthThreads)
    model_->set_threads(static_cast<int>(usable_cores()));
  open_state();
}

void Engine::open_file(const std::string& file) {
  if (flags_.engine == "torch")
    throw std::invalid_argument("--engine torch: expected the folder of a run, got " +
                                file + ", a file");
  opened_ = runtime::Model::open(file);
  model_ = opened_.get();
  run_ = run_of_exported(file, *model_);
}

void Engine::open_folder(const RunFlags& flags) {
  run_ = open(flags, false);
  if (flags_.engine == "torch") return;
  try {
    made_ = open_in_memory(exported_run(run_, kernels::WeightType::f32));
    model_ = made_.model.get();
  } catch (const std::invalid_argument& error) {
    if (flags_.engine == "small")
      throw std::invalid_argument("--engine small: " + std::string(error.what()));
  }
}

void Engine::open_state() {
  for (const auto& [flag, file] :
       {std::pair("--state", flags_.state), {"--save-state", flags_.save_state}})
    if (!file.empty() && model_ == nullptr)
      throw std::invalid_argument(
          std::string(flag) + ": expected a model that --engine small can run, got " +
          run_.folder);
  if (!flags_.state.empty()) from_ = runtime::load_state(flags_.state, *model_);
}

Decoder& Engine::start(int64_t texts, const Batch* source) {
  if (model_ == nullptr)
    decoder_ = torch_decoder(*run_.model, texts, run_.draw(), source);
  else
    decoder_ = std::make_unique<SmallDecoder>(*model_, texts, from_.get());
  return *decoder_;
}

void Engine::save() const {
  if (flags_.save_state.empty()) return;
  runtime::save_state(flags_.save_state,
                      static_cast<const SmallDecoder&>(*decoder_).state(0));
}

}  // namespace lagwise::cli
