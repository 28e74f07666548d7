#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <cstdint>
#include <string>
#include <vector>

#include "lagwise/ops/torch_names.h"

namespace lagwise::ops {

/// Arguments as torch's dispatcher carries them: one value each, in the order of the
/// operator's schema. An operator with many options keeps them in one struct,
/// and lists its members once, in that order:
///
///     template <class Visit>
///     void each_argument(XArguments& x, const Visit& visit) { visit(x.q); visit(x.k); }
///
/// read_arguments and write_arguments do the rest. An undefined tensor is None.
using torch::jit::Stack;

inline void read(const c10::IValue& from, at::Tensor& to) {
  to = from.isNone() ? at::Tensor() : from.toTensor();
}
inline void read(const c10::IValue& from, bool& to) { to = from.toBool(); }
inline void read(const c10::IValue& from, double& to) { to = from.toDouble(); }
inline void read(const c10::IValue& from, int64_t& to) { to = from.toInt(); }
inline void read(const c10::IValue& from, std::string& to) { to = from.toStringRef(); }
inline void read(const c10::IValue& from, uint64_t& to) {
  to = static_cast<uint64_t>(from.toInt());
}
inline void read(const c10::IValue& from, std::vector<int64_t>& to) {
  to = from.toIntVector();
}
template <class T>
void read(const c10::IValue& from, Optional<T>& to) {
  to = from.toOptional<T>();
}

template <class T>
c10::IValue written(const T& x) {
  return c10::IValue(x);
}
inline c10::IValue written(uint64_t x) { return static_cast<int64_t>(x); }
inline c10::IValue written(const at::Tensor& x) {
  return x.defined() ? c10::IValue(x) : c10::IValue();
}

/// The arguments that begin at `from`. Returns the place after them.
template <class Arguments>
const c10::IValue* read_arguments(const c10::IValue* from, Arguments& to) {
  each_argument(to, [&](auto& x) { read(*from++, x); });
  return from;
}

template <class Arguments>
void write_arguments(Arguments from, Stack& to) {
  each_argument(from, [&](auto& x) { to.push_back(written(x)); });
}

/// Reads the arguments of an operator and leaves them on top of the stack.
template <class Arguments>
void read_call(const c10::OperatorHandle& op, const Stack& stack, Arguments& to) {
  read_arguments(stack.data() + stack.size() - op.schema().arguments().size(), to);
}

/// Takes the arguments of an operator off the top of the stack.
inline Stack take_arguments(const c10::OperatorHandle& op, Stack& stack) {
  const auto count = static_cast<std::ptrdiff_t>(op.schema().arguments().size());
  Stack taken(stack.end() - count, stack.end());
  stack.erase(stack.end() - count, stack.end());
  return taken;
}

}  // namespace lagwise::ops
