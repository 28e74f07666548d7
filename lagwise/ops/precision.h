#pragma once

#include <ATen/core/Tensor.h>

namespace lagwise::ops {

/// In which numbers operators multiply and keep what they need for the backward pass.
///
///     full   in the type of their tensors
///     bf16   f32 tensors: the factors of dense layers are rounded to bf16 and their
///            products summed in f32; what the backward passes of dense layers and of
///            attention read again is kept in bf16. Parameters, norms, the sums inside
///            attention, its state and the loss stay in f32.
enum class Precision { full, bf16 };

/// That of the operators which the calling thread records from now on. A backward pass
/// takes the precision of its forward pass, whichever thread it runs on.
Precision precision();

/// Sets it while it lives.
class WithPrecision {
 public:
  explicit WithPrecision(Precision precision);
  ~WithPrecision();
  WithPrecision(const WithPrecision&) = delete;
  WithPrecision& operator=(const WithPrecision&) = delete;

 private:
  Precision before_;
};

/// x as it is multiplied or kept: rounded to bf16 where x is f32 and the precision asks
/// for it, else itself.
at::Tensor in_precision(const at::Tensor& x, Precision precision);

/// The way back: bf16 becomes f32, all else stays.
at::Tensor widened(const at::Tensor& x);

}  // namespace lagwise::ops
