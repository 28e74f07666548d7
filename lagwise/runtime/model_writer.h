#pragma once

#include <map>
#include <string>
#include <vector>

#include "lagwise/core/mat_view.h"
#include "lagwise/data/formats/safetensors.h"
#include "lagwise/runtime/plan.h"

namespace lagwise::runtime {

/// Puts a model into the form that Model::open reads: matrices in panels
/// (kernels/few_rows.h), in the type of plan.weights, the numbers of the plan as tensors,
/// its settings in the metadata. The names are those of weights.cpp.
class ModelWriter {
 public:
  explicit ModelWriter(Plan plan);
  ModelWriter(ModelWriter&&) = default;

  /// W [outputs, cols] and its bias [outputs]; null: 0. In f32 where `whole`.
  void dense(const std::string& name, MatView<const float> w, const float* bias,
             bool whole = false);
  void floats(const std::string& name, std::vector<int64_t> shape,
              std::vector<float> values);

  /// What the metadata holds besides: of any key.
  void text(const std::string& key, const std::string& value);

  void write(const std::string& file);
  LineVector<uint8_t> bytes();

 private:
  template <class T>
  void add(const std::string& name, const char* dtype, std::vector<int64_t> shape,
           const T* values, size_t count);
  void add_numbers();
  void finish();

  Plan plan_;
  bool finished_ = false;
  std::map<std::string, std::string> metadata_;
  std::vector<data::StoredTensor> tensors_;
  std::vector<std::vector<uint8_t>> memory_;  // of the tensors
  std::map<uint64_t, size_t> by_hash_;        // of tensors: those alike are kept once
  std::map<std::string, std::string> same_;   // name -> the tensor it is the same as
};

}  // namespace lagwise::runtime
