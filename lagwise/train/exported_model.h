#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lagwise/runtime/model.h"
#include "lagwise/runtime/model_writer.h"
#include "lagwise/train/run.h"

namespace lagwise {

/// A trained decoder in the form of lagwise/runtime, with the noise of `draw`.
/// std::invalid_argument where that cannot run it, with what can.
runtime::ModelWriter exported_model(const Model& model, const Draw& draw,
                                    kernels::WeightType weights);

/// The same of a run, with what its tokens stand for and where it came from in the
/// metadata:
///
///     words   JSON: {"task": .., "words": [..]}; without words tokens are bytes
///     tokenizer  of a run that has one, as tokenizer.json
///     recipe  that of the run, as TOML
///     step    of the checkpoint
runtime::ModelWriter exported_run(const Run& run, kernels::WeightType weights);

/// The run that an exported model came from, as far as its file knows it: without torch's
/// model, and without data. DataError names `file`.
Run run_of_exported(const std::string& file, const runtime::Model& model);

/// A model of the runtime together with its memory.
struct ModelInMemory {
  LineVector<uint8_t> bytes;
  std::unique_ptr<runtime::Model> model;
};
ModelInMemory open_in_memory(runtime::ModelWriter writer);

}  // namespace lagwise
