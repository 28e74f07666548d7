#include "lagwise/train/checkpoint.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "lagwise/data/formats/mapped_file.h"
#include "lagwise/train/tensor_file.h"

namespace lagwise {
namespace {

namespace fs = std::filesystem;

constexpr const char* kModelFile = "model.safetensors";
constexpr const char* kOptimiserFile = "optimizer.safetensors";
constexpr const char* kStateFile = "state.json";
constexpr size_t kDigits = 8;

[[noreturn]] void cannot(const std::string& what, const fs::path& path, int reason) {
  throw std::runtime_error("cannot " + what + " " + path.string() + ": " +
                           std::strerror(reason));
}

/// The step of a folder's name; -1 for any other name.
int64_t step_of(const std::string& name) {
  if (name.size() < kDigits || name.size() > 18 ||
      name.find_first_not_of("0123456789") != name.npos)
    return -1;
  return std::stoll(name);
}

std::string name_of(int64_t step) {
  const std::string digits = std::to_string(step);
  return std::string(kDigits - std::min(kDigits, digits.size()), '0') + digits;
}

}  // namespace

Checkpoints::Checkpoints(const std::string& run, data::FileCalls calls)
    : root_((fs::path(run) / "checkpoints").string()), calls_(std::move(calls)) {}

std::vector<int64_t> Checkpoints::steps() const {
  std::vector<int64_t> steps;
  if (!fs::is_directory(root_)) return steps;
  for (const auto& entry : fs::directory_iterator(root_)) {
    const int64_t step = step_of(entry.path().filename().string());
    if (step >= 0 && entry.is_directory()) steps.push_back(step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

std::string Checkpoints::folder(int64_t step) const {
  return (fs::path(root_) / name_of(step)).string();
}

std::string Checkpoints::file(int64_t step, const char* name) const {
  return (fs::path(folder(step)) / name).string();
}

void Checkpoints::save(TrainerState state, const AdamW& optimiser) {
  const fs::path target = folder(state.step), unfinished = target.string() + ".tmp";
  if (fs::exists(target)) return;
  fs::create_directories(root_);
  fs::remove_all(unfinished);
  fs::create_directory(unfinished);
  try {
    state.files = {
        {kModelFile, write_tensors(unfinished / kModelFile, optimiser.parameters(),
                                   state.step, calls_)},
        {kOptimiserFile, write_tensors(unfinished / kOptimiserFile, optimiser.state(),
                                       state.step, calls_)}};
    data::replace_file(unfinished / kStateFile, state_text(state), calls_);
    if (calls_.rename(unfinished.c_str(), target.c_str()) != 0)
      cannot("write", target, errno);
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(unfinished, ignored);
    throw;
  }
  const int reason = data::sync_folder(root_, calls_);
  if (reason != 0) cannot("write", target, reason);
}

void Checkpoints::update(TrainerState state) {
  state.files = parsed_state(state.step).files;
  data::replace_file(file(state.step, kStateFile), state_text(state), calls_);
}

void Checkpoints::prune(const std::vector<int64_t>& keep) {
  if (!fs::is_directory(root_)) return;
  std::vector<fs::path> unwanted;
  for (const auto& entry : fs::directory_iterator(root_)) {
    const std::string name = entry.path().filename().string();
    const int64_t step = step_of(name);
    const bool kept = std::find(keep.begin(), keep.end(), step) != keep.end();
    if (name.ends_with(".tmp") || (step >= 0 && !kept))
      unwanted.push_back(entry.path());
  }
  for (const fs::path& path : unwanted) {
    // Renamed first: killed halfway, it must not look whole.
    fs::path doomed = path;
    if (path.extension() != ".tmp") {
      doomed += ".tmp";
      fs::rename(path, doomed);
    }
    fs::remove_all(doomed);
  }
}

TrainerState Checkpoints::parsed_state(int64_t step) const {
  const data::MappedFile text(file(step, kStateFile));
  return parse_state(text.name(), std::string(data::text_of(text.bytes())));
}

TrainerState Checkpoints::read_state(int64_t step) const {
  TrainerState state = parsed_state(step);
  if (state.step != step)
    throw DataError(file(step, kStateFile), -1,
                    "the state of step " + std::to_string(step));
  return state;
}

std::string Checkpoints::hash_of(int64_t step, const char* name) const {
  const auto files = parsed_state(step).files;
  const auto found = files.find(name);
  return found == files.end() ? "" : found->second;
}

std::optional<DataError> Checkpoints::damage(int64_t step) const {
  try {
    read_state(step);
    check_tensors(file(step, kModelFile), step, hash_of(step, kModelFile), true);
    check_tensors(file(step, kOptimiserFile), step, hash_of(step, kOptimiserFile),
                  false);
  } catch (const DataError& error) {
    return error;
  }
  return {};
}

void Checkpoints::read_model(int64_t step,
                             const std::vector<NamedTensor>& parameters) const {
  read_tensors(file(step, kModelFile), parameters, step, hash_of(step, kModelFile));
}

void Checkpoints::read_optimiser(int64_t step, const AdamW& optimiser) const {
  read_tensors(file(step, kOptimiserFile), optimiser.state(), step,
               hash_of(step, kOptimiserFile));
}

}  // namespace lagwise
