#pragma once

#include <torch/nn/module.h>

#include <string>
#include <utility>
#include <vector>

namespace lagwise::nn {

/// A trained parameter with independent normal numbers of that deviation in it. Each is
/// a function of the seed, the place (a number no other parameter of the model has) and
/// its own index: the same seed gives the same model on any machine.
at::Tensor normal_parameter(at::IntArrayRef sizes, double deviation, uint64_t seed,
                            int64_t place);

/// A trained parameter full of one number.
at::Tensor constant_parameter(at::IntArrayRef sizes, double value);

/// Hands out initial weights. They are decided by the seed and by the order in which
/// they are asked for.
struct Initial {
  uint64_t seed = 0;
  int64_t next = 0;

  at::Tensor normal(at::IntArrayRef sizes, double deviation) {
    return normal_parameter(sizes, deviation, seed, next++);
  }
};

/// While one of these lives, parameters made on this thread are left without values: for
/// models that are given the values of another right away.
class WithoutValues {
 public:
  WithoutValues();
  ~WithoutValues();
  WithoutValues(const WithoutValues&) = delete;
  WithoutValues& operator=(const WithoutValues&) = delete;

 private:
  bool before_;
};

/// A module that registers trained tensors of an owner that is no module, such as an
/// encoding, under their names.
class Holder : public torch::nn::Module {
 public:
  explicit Holder(const std::vector<std::pair<std::string, at::Tensor>>& parameters);
};

}  // namespace lagwise::nn
