#include "lagwise/train/tensor_file.h"

#include <cstring>

#include "lagwise/core/errors.h"
#include "lagwise/data/safetensors.h"

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

void write_tensors(const std::string& file, const std::vector<NamedTensor>& tensors,
                   int64_t step, const data::FileCalls& calls) {
  std::vector<at::Tensor> kept;
  std::vector<data::StoredTensor> stored;
  for (const auto& [name, tensor] : tensors) {
    kept.push_back(tensor.detach().contiguous());
    const auto* bytes = static_cast<const uint8_t*>(kept.back().data_ptr());
    stored.push_back({name, "F32", tensor.sizes().vec(), {bytes, tensor.nbytes()}});
  }
  data::write_safetensors(file, std::move(stored), {{kStep, std::to_string(step)}},
                          calls);
}

void read_tensors(const std::string& file, const std::vector<NamedTensor>& tensors,
                  int64_t step) {
  const data::Safetensors stored(file);
  const std::string apart = differences(stored, tensors);
  if (!apart.empty()) throw DataError(file, -1, "the tensors of this model" + apart);
  const auto of = stored.metadata().find(kStep);
  if (of == stored.metadata().end() || of->second != std::to_string(step))
    throw DataError(file, -1, "tensors of step " + std::to_string(step));
  for (const auto& [name, tensor] : tensors) {
    const data::Bytes bytes = stored.find(name)->bytes;
    if (!bytes.empty())
      std::memcpy(tensor.detach().data_ptr(), bytes.data(), bytes.size());
  }
}

}  // namespace lagwise
