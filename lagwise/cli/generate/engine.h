#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "lagwise/cli/run_flags.h"
#include "lagwise/runtime/model.h"
#include "lagwise/train/decoder.h"
#include "lagwise/train/exported_model.h"
#include "lagwise/train/run.h"

namespace lagwise::cli {

struct EngineFlags {
  std::string engine = "auto";    ///< auto, small, torch
  std::string state, save_state;  ///< files
};

void add_engine_flags(CLI::App& verb, EngineFlags& flags);

/// What `lagwise generate` writes with: torch, or lagwise/runtime where that can run the
/// model, and always for a file of `lagwise export`.
class Engine {
 public:
  /// RUN is the folder of a run or such a file. std::invalid_argument names the flag
  /// that does not go with it, DataError the file.
  Engine(const RunFlags& run, const EngineFlags& flags);

  Run& run() { return run_; }
  const Run& run() const { return run_; }
  const char* name() const { return model_ ? "small" : "torch"; }
  bool goes_on() const { return from_ != nullptr; }  ///< from a state

  /// For so many texts; used once.
  Decoder& start(int64_t texts, const Batch* source);

  /// Writes the state of the first text, if that was asked for.
  void save() const;

 private:
  void open_file(const std::string& file);
  void open_folder(const RunFlags& flags);
  void open_state();

  EngineFlags flags_;
  Run run_;
  ModelInMemory made_;                      ///< from a run
  std::unique_ptr<runtime::Model> opened_;  ///< from a file
  runtime::Model* model_ = nullptr;         ///< either; null: torch
  std::unique_ptr<runtime::State> from_;
  std::unique_ptr<Decoder> decoder_;
};

}  // namespace lagwise::cli
