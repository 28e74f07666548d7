#include "lagwise/runtime/weights.h"

#include <nlohmann/json.hpp>
#include <unordered_map>

#include "lagwise/core/errors.h"
#include "lagwise/data/formats/strict_json.h"

namespace lagwise::runtime {
namespace {

using kernels::kPanelOutputs;
using kernels::WeightType;

template <class T>
constexpr const char* kDtype = "";
template <>
constexpr const char* kDtype<float> = "F32";
template <>
constexpr const char* kDtype<double> = "F64";
template <>
constexpr const char* kDtype<int64_t> = "I64";

const char* dtype_of(WeightType type) {
  return type == WeightType::f32 ? "F32" : type == WeightType::bf16 ? "BF16" : "I8";
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text;
  for (const int64_t size : shape)
    text += (text.empty() ? "" : ", ") + std::to_string(size);
  return "[" + text + "]";
}

/// Finds tensors by name; several names may mean one tensor ("same" of the metadata).
class Finder {
 public:
  Finder(const std::string& file, const data::Safetensors& tensors) : file_(file) {
    for (const data::StoredTensor& tensor : tensors.tensors())
      by_name_[tensor.name] = &tensor;
    const auto same = tensors.metadata().find("same");
    if (same == tensors.metadata().end()) return;
    const nlohmann::json names =
        data::parse_strict_json(file, 0, data::bytes_of(same->second));
    for (const auto& [name, other] : names.items()) {
      const auto found =
          other.is_string() ? by_name_.find(other.get<std::string>()) : by_name_.end();
      if (found == by_name_.end())
        throw DataError(file, -1, "a tensor that '" + name + "' is the same as");
      const data::StoredTensor* const meant = found->second;
      by_name_[name] = meant;
    }
  }

  const data::StoredTensor* find(const std::string& name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : found->second;
  }

  const data::StoredTensor& tensor(const std::string& name, const char* dtype,
                                   const std::vector<int64_t>& shape) const {
    const data::StoredTensor* const found = find(name);
    if (found == nullptr || found->dtype != dtype || found->shape != shape)
      throw DataError(file_, -1,
                      "a tensor '" + name + "' " + dtype + " " + shape_text(shape) +
                          (found == nullptr ? ", got none"
                                            : ", got " + found->dtype + " " +
                                                  shape_text(found->shape)));
    return *found;
  }

  const float* floats(const std::string& name,
                      const std::vector<int64_t>& shape) const {
    return pointer<float>(tensor(name, "F32", shape));
  }

  /// All numbers of a tensor of any shape; none where there is no such tensor.
  template <class T>
  Numbers<T> numbers(const std::string& name) const {
    const data::StoredTensor* const found = find(name);
    if (found == nullptr) return {};
    if (found->dtype != kDtype<T>)
      throw DataError(file_, -1, "a tensor '" + name + "' " + kDtype<T>);
    const T* const first = pointer<T>(*found);
    return Numbers<T>::borrowed({first, found->bytes.size() / sizeof(T)});
  }

 private:
  template <class T>
  const T* pointer(const data::StoredTensor& tensor) const {
    if (reinterpret_cast<uintptr_t>(tensor.bytes.data()) % alignof(T) != 0)
      throw DataError(file_, -1, "tensor '" + tensor.name + "' aligned to its numbers");
    return reinterpret_cast<const T*>(tensor.bytes.data());
  }

  const std::string& file_;
  std::unordered_map<std::string, const data::StoredTensor*> by_name_;
};

class Reader {
 public:
  Reader(const std::string& file, const data::Safetensors& tensors, Plan& plan)
      : find_(file, tensors), file_(file), plan_(plan) {}

  ModelWeights read() {
    read_numbers();
    check_plan(file_, plan_);
    ModelWeights all;
    all.embed = dense("embed", plan_.vocabulary, plan_.dim, plan_.weights, false);
    all.head = plan_.tied
                   ? all.embed
                   : dense("head", plan_.vocabulary, plan_.dim, plan_.weights, true);
    all.norm = norm("norm");
    for (size_t i = 0; i < plan_.one.layers.size(); ++i)
      all.layers.push_back(
          layer("layers." + std::to_string(i) + ".", plan_.one.layers[i].memory));
    return all;
  }

 private:
  void read_numbers() {
    const auto read = [&](const std::string& prefix) {
      return [this, prefix]<class T>(const char* name, Numbers<T>& to) {
        to = find_.numbers<T>(prefix + name);
      };
    };
    for (size_t i = 0; i < plan_.one.inputs.size(); ++i)
      each_number(plan_.one.inputs[i], read("inputs." + std::to_string(i) + "."));
    for (size_t i = 0; i < plan_.one.layers.size(); ++i)
      each_number(plan_.one.layers[i], read("layers." + std::to_string(i) + "."));
  }

  Dense dense(const std::string& name, int64_t outputs, int64_t cols, WeightType type,
              bool with_bias) const {
    Dense to;
    to.w = {type, outputs, cols, nullptr, nullptr};
    const int64_t panels = to.w.panels(), blocks = to.w.blocks();
    const auto& stored =
        find_.tensor(name + ".weight", dtype_of(type), {panels, cols, kPanelOutputs});
    to.w.numbers = stored.bytes.data();
    if (reinterpret_cast<uintptr_t>(to.w.numbers) % data::dtype_size(stored.dtype) != 0)
      throw DataError(file_, -1, "tensor '" + stored.name + "' aligned to its numbers");
    if (type == WeightType::int8)
      to.w.scales = find_.floats(name + ".scales", {panels, blocks, kPanelOutputs});
    if (with_bias) to.bias = find_.floats(name + ".bias", {panels * kPanelOutputs});
    return to;
  }

  NormWeights norm(const std::string& name) const {
    NormWeights to;
    to.gain = find_.floats(name + ".weight", {plan_.dim});
    if (plan_.norm == "layer") to.bias = find_.floats(name + ".bias", {plan_.dim});
    return to;
  }

  LayerWeights layer(const std::string& at, const OneTokenMemory& memory) const {
    const int64_t c = plan_.dim, values = plan_.value_columns(), h = plan_.heads;
    const int64_t mixed = plan_.mixed_columns();
    LayerWeights to;
    to.attention_norm = norm(at + "attention_norm");
    to.feed_norm = norm(at + "feed_norm");
    to.mixed = dense(at + "mixed", mixed + (memory.gates_output ? values : 0), c,
                     plan_.weights, true);
    if (memory.forgets || memory.rewrites)
      to.gates = dense(at + "gates", 2 * h, c, WeightType::f32, true);
    if (memory.forgets) to.forget_rate = find_.floats(at + "forget_rate", {h});
    if (memory.convolution > 0)
      to.taps = find_.floats(at + "taps", {memory.convolution, mixed});
    to.out = dense(at + "out", c, values, plan_.weights, true);
    to.feed_in = dense(at + "feed_in", plan_.feed_forward, c, plan_.weights, true);
    to.feed_out = dense(at + "feed_out", c, plan_.feed_forward, plan_.weights, true);
    return to;
  }

  Finder find_;
  const std::string& file_;
  Plan& plan_;
};

}  // namespace

ModelWeights read_weights(const std::string& file, const data::Safetensors& tensors,
                          Plan& plan) {
  return Reader(file, tensors, plan).read();
}

}  // namespace lagwise::runtime
