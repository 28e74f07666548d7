#include "lagwise/train/tensor_file.h"

#include <cmath>
#include <cstring>

#include "lagwise/core/errors.h"
#include "lagwise/data/formats/fnv1a.h"
#include "lagwise/data/formats/mapped_file.h"
#include "lagwise/data/formats/safetensors.h"

namespace lagwise {
namespace {

constexpr const char* kStep = "step";
constexpr size_t kMostNamed = 4;

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text;
  for (const int64_t size : shape)
    text += (text.empty() ? "" : ", ") + std::to_string(size);
  return "[" + text + "]";
}

/// "; missing: a, b and 3 more", or nothing.
std::string listed(const char* title, const std::vector<std::string>& items) {
  if (items.empty()) return "";
  std::string text = std::string("; ") + title + ": ";
  for (size_t i = 0; i < items.size() && i < kMostNamed; ++i)
    text += (i ? ", " : "") + items[i];
  if (items.size() > kMostNamed)
    text += " and " + std::to_string(items.size() - kMostNamed) + " more";
  return text;
}

/// A file of tensors, opened: whole, and of the step it should be of.
struct TensorFile {
  TensorFile(const std::string& file, const std::string& hash)
      : mapped(file), stored(file, mapped.bytes()) {
    if (hash.empty()) return;
    const std::string found = data::hash_text(data::fnv1a(mapped.bytes()));
    if (found != hash)
      throw DataError(file, -1,
                      "the hash " + hash.substr(0, 16) +
                          " that state.json has for it, got " + found +
                          ": it is damaged");
  }

  void check_step(int64_t step) const {
    const auto of = stored.metadata().find(kStep);
    if (of == stored.metadata().end() || of->second != std::to_string(step))
      throw DataError(mapped.name(), -1, "tensors of step " + std::to_string(step));
  }

  data::MappedFile mapped;
  data::Safetensors stored;
};

bool all_finite(data::Bytes bytes) {
  for (size_t at = 0; at + sizeof(float) <= bytes.size(); at += sizeof(float)) {
    float number;
    std::memcpy(&number, bytes.data() + at, sizeof(float));
    if (!std::isfinite(number)) return false;
  }
  return true;
}

/// What stands between a file and the tensors it is read into; empty: nothing.
std::string differences(const data::Safetensors& file,
                        const std::vector<NamedTensor>& tensors) {
  std::vector<std::string> missing, extra, different;
  for (const auto& [name, tensor] : tensors) {
    const data::StoredTensor* stored = file.find(name);
    const std::vector<int64_t> shape = tensor.sizes().vec();
    if (!stored)
      missing.push_back(name);
    else if (stored->shape != shape)
      different.push_back(name + " " + shape_text(shape) + ", in the file " +
                          shape_text(stored->shape));
    else if (stored->dtype != "F32")
      different.push_back(name + " F32, in the file " + stored->dtype);
  }
  for (const data::StoredTensor& stored : file.tensors()) {
    bool known = false;
    for (const NamedTensor& tensor : tensors) known |= tensor.name == stored.name;
    if (!known) extra.push_back(stored.name);
  }
  return listed("different", different) + listed("missing in the file", missing) +
         listed("only in the file", extra);
}

}  // namespace

std::string write_tensors(const std::string& file,
                          const std::vector<NamedTensor>& tensors, int64_t step,
                          const data::FileCalls& calls) {
  std::vector<at::Tensor> kept;
  std::vector<data::StoredTensor> stored;
  for (const auto& [name, tensor] : tensors) {
    kept.push_back(tensor.detach().contiguous());
    const auto* bytes = static_cast<const uint8_t*>(kept.back().data_ptr());
    stored.push_back({name, "F32", tensor.sizes().vec(), {bytes, tensor.nbytes()}});
  }
  return data::hash_text(data::write_safetensors(
      file, std::move(stored), {{kStep, std::to_string(step)}}, calls));
}

void read_tensors(const std::string& file, const std::vector<NamedTensor>& tensors,
                  int64_t step, const std::string& hash) {
  const TensorFile opened(file, hash);
  const std::string apart = differences(opened.stored, tensors);
  if (!apart.empty()) throw DataError(file, -1, "the tensors of this model" + apart);
  opened.check_step(step);
  for (const auto& [name, tensor] : tensors) {
    const data::Bytes bytes = opened.stored.find(name)->bytes;
    if (!bytes.empty())
      std::memcpy(tensor.detach().data_ptr(), bytes.data(), bytes.size());
  }
}

void check_tensors(const std::string& file, int64_t step, const std::string& hash,
                   bool finite) {
  const TensorFile opened(file, hash);
  opened.check_step(step);
  for (const data::StoredTensor& tensor : opened.stored.tensors())
    if (finite && tensor.dtype == "F32" && !all_finite(tensor.bytes))
      throw DataError(file, -1, "finite numbers in " + tensor.name);
}

}  // namespace lagwise
