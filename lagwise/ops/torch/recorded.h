#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>

#include <array>
#include <vector>

namespace lagwise::ops {

/// y = act(), reported to torch's listeners (a profiler, or the search for the first
/// layer with a NaN) as an operator of that name on x and weight. For calls that do not
/// go through torch's dispatcher, which reports its operators itself.
template <class Act>
at::Tensor recorded(const char* name, const at::Tensor& x, const at::Tensor& weight,
                    const Act& act) {
  at::RecordFunction record(at::RecordScope::FUNCTION);
  if (!record.isActive()) return act();
  const std::array<c10::IValue, 2> inputs = {x, weight};
  record.before(name, c10::ArrayRef<const c10::IValue>(inputs.data(), inputs.size()));
  at::Tensor y = act();
  record.setOutputs(std::vector<c10::IValue>{y});
  return y;
}

}  // namespace lagwise::ops
