// Feature maps that act on each number alone. The operator applies them while it
// loads a row, so they cost no memory; the formulas are in kernels/feature_map.h.

#include <c10/util/StringUtil.h>

#include <array>
#include <charconv>
#include <stdexcept>

#include "lagwise/attention/feature_map.h"
#include "lagwise/ops/feature_map.h"

namespace lagwise {
namespace {

/// The shortest text that reads back as the same number.
std::string exactly(double x) {
  std::array<char, 32> text;
  return {text.data(), std::to_chars(text.begin(), text.end(), x).ptr};
}

class Pointwise : public FeatureMap {
 public:
  Pointwise(std::string text, bool positive)
      : text_(std::move(text)), name_(text_), positive_(positive) {}
  Pointwise(const std::string& name, double offset)
      : text_(name + ":offset=" + exactly(offset)),
        name_(name),
        offset_(offset),
        positive_(true) {}

  bool positive() const override { return positive_; }
  std::string fused() const override { return text_; }

  Features features(const at::Tensor& x, Side, const at::Tensor&,
                    const Placement&) const override {
    if (text_ == "none") return {x, {}};
    return {ops::feature_map(x, text_), {}};
  }

  OneTokenMap one_token(const Draw&, int64_t, int64_t, int64_t) const override {
    OneTokenMap map;
    map.pointwise = name_, map.offset = offset_;
    return map;
  }

 private:
  std::string text_;  // as ops::linear_attention reads it
  std::string name_;
  double offset_ = 0;
  bool positive_;
};

std::unique_ptr<FeatureMap> plain(Spec& spec, bool positive) {
  return std::make_unique<Pointwise>(spec.name(), positive);
}

std::unique_ptr<FeatureMap> with_offset(Spec& spec, double fallback) {
  const double offset = spec.take("offset", fallback);
  if (!(offset >= 0))
    throw std::invalid_argument(
        c10::str(spec.name(), ": expected offset >= 0, got ", offset));
  return std::make_unique<Pointwise>(spec.name(), offset);
}

const RegisterFeatureMap none({
    .name = "none",
    .summary = "x itself: signed, for attention with a norm in place of a denominator",
    .paper = "",
    .make = [](Spec& spec) { return plain(spec, false); },
});
const RegisterFeatureMap elu1({
    .name = "elu1",
    .summary = "x + 1 above zero, exp(x) below",
    .paper = "arXiv:2006.16236",
    .make = [](Spec& spec) { return plain(spec, true); },
});
const RegisterFeatureMap relu({
    .name = "relu",
    .summary = "max(x, 0) + offset",
    .paper = "arXiv:2009.14794",
    .make = [](Spec& spec) { return with_offset(spec, 1e-3); },
});
const RegisterFeatureMap relu_squared({
    .name = "relu_squared",
    .summary = "max(x, 0)^2 + offset",
    .paper = "arXiv:2109.08668",
    .make = [](Spec& spec) { return with_offset(spec, 0.0); },
});
const RegisterFeatureMap exponential({
    .name = "exp",
    .summary = "exp(x), number by number",
    .paper = "",
    .make = [](Spec& spec) { return plain(spec, true); },
});
const RegisterFeatureMap silu({
    .name = "silu",
    .summary = "x sigmoid(x): signed, as in TransNormerLLM",
    .paper = "arXiv:2307.14995",
    .make = [](Spec& spec) { return plain(spec, false); },
});

}  // namespace
}  // namespace lagwise
