#include "lagwise/runtime/model_writer.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "lagwise/data/formats/fnv1a.h"
#include "lagwise/kernels/few_rows.h"

namespace lagwise::runtime {
namespace {

using kernels::kPanelOutputs;
using kernels::kScaledColumns;
using kernels::WeightType;

constexpr const char* dtype(const float*) { return "F32"; }
constexpr const char* dtype(const double*) { return "F64"; }
constexpr const char* dtype(const int64_t*) { return "I64"; }

/// The upper half of a float, rounded to the nearest, halves to even.
uint16_t rounded_to_bf16(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/// The place of output o and column c in panels of so many columns, or blocks.
size_t place_of(int64_t o, int64_t c, int64_t columns) {
  return static_cast<size_t>((o / kPanelOutputs * columns + c) * kPanelOutputs +
                             o % kPanelOutputs);
}

template <class T, class Convert>
std::vector<T> panels_of(MatView<const float> w, int64_t panels,
                         const Convert& convert) {
  std::vector<T> to(static_cast<size_t>(panels * w.cols * kPanelOutputs));
  for (int64_t o = 0; o < w.rows; ++o)
    for (int64_t c = 0; c < w.cols; ++c) to[place_of(o, c, w.cols)] = convert(o, c);
  return to;
}

/// The largest number of each output and 64 columns is 127 scales.
std::vector<float> scales_of(MatView<const float> w, int64_t panels, int64_t blocks) {
  std::vector<float> scales(static_cast<size_t>(panels * blocks * kPanelOutputs));
  for (int64_t o = 0; o < w.rows; ++o)
    for (int64_t c = 0; c < w.cols; ++c) {
      float& scale = scales[place_of(o, c / kScaledColumns, blocks)];
      scale = std::max(scale, std::abs(w(o, c)) / 127);
    }
  return scales;
}

}  // namespace

ModelWriter::ModelWriter(Plan plan) : plan_(std::move(plan)) {}

template <class T>
void ModelWriter::add(const std::string& name, const char* dtype,
                      std::vector<int64_t> shape, const T* values, size_t count) {
  const data::Bytes bytes(reinterpret_cast<const uint8_t*>(values), count * sizeof(T));
  const uint64_t hash = data::fnv1a(bytes);
  const auto known = by_hash_.find(hash);
  if (known != by_hash_.end()) {
    const data::StoredTensor& other = tensors_[known->second];
    if (other.dtype == dtype && other.shape == shape &&
        std::ranges::equal(other.bytes, bytes)) {
      same_[name] = other.name;
      return;
    }
  }
  memory_.emplace_back(bytes.begin(), bytes.end());
  by_hash_[hash] = tensors_.size();
  tensors_.push_back({name, dtype, std::move(shape), memory_.back()});
}

void ModelWriter::dense(const std::string& name, MatView<const float> w,
                        const float* bias, bool whole) {
  const WeightType type = whole ? WeightType::f32 : plan_.weights;
  const kernels::PanelWeights shape{type, w.rows, w.cols, nullptr, nullptr};
  const int64_t panels = shape.panels(), blocks = shape.blocks();
  const std::vector<int64_t> sizes = {panels, w.cols, kPanelOutputs};
  const auto put = [&](const char* kind, const auto& to) {
    add(name + ".weight", kind, sizes, to.data(), to.size());
  };
  if (type == WeightType::f32)
    put("F32",
        panels_of<float>(w, panels, [&](int64_t o, int64_t c) { return w(o, c); }));
  if (type == WeightType::bf16)
    put("BF16", panels_of<uint16_t>(w, panels, [&](int64_t o, int64_t c) {
          return rounded_to_bf16(w(o, c));
        }));
  if (type == WeightType::int8) {
    const std::vector<float> scales = scales_of(w, panels, blocks);
    put("I8", panels_of<int8_t>(w, panels, [&](int64_t o, int64_t c) {
          const float scale = scales[place_of(o, c / kScaledColumns, blocks)];
          return static_cast<int8_t>(scale > 0 ? std::lround(w(o, c) / scale) : 0);
        }));
    floats(name + ".scales", {panels, blocks, kPanelOutputs}, scales);
  }
  std::vector<float> padded(static_cast<size_t>(panels * kPanelOutputs));
  if (bias != nullptr) std::copy_n(bias, w.rows, padded.begin());
  floats(name + ".bias", {panels * kPanelOutputs}, padded);
}

void ModelWriter::floats(const std::string& name, std::vector<int64_t> shape,
                         std::vector<float> values) {
  add(name, "F32", std::move(shape), values.data(), values.size());
}

void ModelWriter::text(const std::string& key, const std::string& value) {
  metadata_[key] = value;
}

void ModelWriter::add_numbers() {
  const auto put = [&](const std::string& prefix) {
    return [this, prefix](const char* name, const auto& numbers) {
      if (numbers.empty()) return;
      add(prefix + name, dtype(numbers.data()), {numbers.size()}, numbers.data(),
          static_cast<size_t>(numbers.size()));
    };
  };
  for (size_t i = 0; i < plan_.one.inputs.size(); ++i)
    each_number(plan_.one.inputs[i], put("inputs." + std::to_string(i) + "."));
  for (size_t i = 0; i < plan_.one.layers.size(); ++i)
    each_number(plan_.one.layers[i], put("layers." + std::to_string(i) + "."));
}

/// The fingerprint of a model tells its states from those of others.
void ModelWriter::finish() {
  if (std::exchange(finished_, true)) return;
  add_numbers();
  uint64_t hash = data::kFnv1aStart;
  for (const data::StoredTensor& tensor : tensors_)
    hash = data::fnv1a(tensor.bytes, data::fnv1a(data::bytes_of(tensor.name), hash));
  metadata_["fingerprint"] = data::hash_text(hash);
  metadata_["plan"] = plan_text(plan_);
  if (!same_.empty()) metadata_["same"] = nlohmann::json(same_).dump();
}

void ModelWriter::write(const std::string& file) {
  finish();
  data::write_safetensors(file, tensors_, metadata_);
}

LineVector<uint8_t> ModelWriter::bytes() {
  finish();
  return data::safetensors_bytes(tensors_, metadata_);
}

}  // namespace lagwise::runtime
