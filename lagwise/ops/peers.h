#pragma once

#include <ATen/core/Tensor.h>

namespace lagwise::ops {

/// Those who compute one thing together: processes on one or many machines, or, in
/// tests, threads of one process. Each has a rank, 0 to size - 1.
///
/// All of them call the same functions in the same order with tensors of the same sizes
/// and type; each call returns when its part of the exchange is done. What is added up is
/// added here, from gathered or exchanged tensors, in an order that does not depend on
/// who arrives first, so everybody has the same bits. A peer that is gone is an exception
/// (dist/lost_peer.h), never a wrong number.
///
/// Layers below take a pointer; nullptr means alone.
class Peers {
 public:
  virtual ~Peers() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// [size, ...]: everybody's x, in the order of their ranks.
  virtual at::Tensor gather(const at::Tensor& x) const = 0;

  /// Gives x to `other` and returns what `other` gave in the same call.
  virtual at::Tensor exchange(const at::Tensor& x, int other) const = 0;

  /// Overwrites x by that of rank `from`.
  virtual void broadcast_(at::Tensor& x, int from) const = 0;
};

}  // namespace lagwise::ops
