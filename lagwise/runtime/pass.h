#pragma once

#include <span>
#include <vector>

#include "lagwise/runtime/model.h"
#include "lagwise/runtime/places.h"

namespace lagwise::runtime {

/// The rows of a pass between its layers: memory that is made once.
class Workspace {
 public:
  Workspace(const Plan& plan, const std::vector<LayerKinds>& kinds, int threads);

  /// `columns` rounded up to whole panels, as kernels::few_rows writes them.
  struct Block {
    std::vector<float> memory;
    int64_t width = 0;
    void make(int64_t columns);
    MatView<float> rows(int64_t count) { return {memory.data(), count, width, width}; }
  };
  Block x, normed, mixed, gates, heads, wide, logits;
  Places places;
  std::vector<HeadStep> steps;                ///< one a thread
  std::vector<std::vector<float>> convolved;  ///< [D + D + E] a thread
  std::vector<float> inv_size;
};

/// One pass of at most Model::kMostRows rows through a model.
///
/// Rows are independent but for attention, where each meets the state of its text: rows
/// of one text stand in their order. So a prompt, a step and a step of many texts are
/// the same thing.
class Pass {
 public:
  /// `pool` null: this thread alone.
  Pass(const Model& model, Workspace& work, ThreadPool* pool);

  void run(std::span<const Row> rows);

 private:
  template <class Work>
  void share(const Work& work);
  template <class After>
  void product(const Dense& dense, MatView<const float> x, MatView<float> y, bool add,
               const After& after);
  void embed();
  void add_inputs(int64_t position, float* x) const;
  MatView<const float> normed(const NormWeights& norm, MatView<float> x);
  void norm_rows(const NormWeights& norm, MatView<float> x, MatView<float> y);
  void layer(size_t index);
  void attend(size_t index, MatView<const float> y);
  void gate(size_t index, MatView<const float> y);
  void attend_head(size_t index, int64_t head, int thread);
  const float* convolve(size_t index, int64_t row, int64_t head, int thread);
  void finish_heads(size_t index);
  void add_dense(const Dense& dense, MatView<const float> x);
  void give_logits();

  const Model& model_;
  const Plan& plan_;
  Workspace& work_;
  ThreadPool* pool_;
  std::span<const Row> rows_;
  int64_t count_ = 0;
  int64_t positions_[Model::kMostRows];
};

}  // namespace lagwise::runtime
