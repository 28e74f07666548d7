// FAVOR+: random features whose product is, in the mean over draws, the softmax
// kernel. With z = x / D^(1/4) and directions w_1 .. w_m (random_directions.h):
//
//     favor            phi_j = exp(w_j . z - |z|^2 / 2) / sqrt m           F = m
//     favor_two_sided  [exp(w_j . z), exp(-w_j . z)] exp(-|z|^2 / 2) / sqrt(2 m)
//     favor_relu       phi_j = max(w_j . z, 0) + offset: another kernel, of angles
//     E phi(q) . phi(k) = exp(q . k / sqrt D)      for the first two
//
// Scale   each row is handed over as x exp(log_scale) with its own largest number
//         taken out. The scale of a query cancels in the quotient of attention. That
//         of a key does not: attention keeps a running maximum of it. Public code
//         instead subtracts the maximum over all keys and adds 1e-4: a later token
//         then changes earlier outputs. So here epsilon is 0.
// Options features (0: D ln D rounded down to whole sixteens, at least 16): F;
//         orthogonal (true); norms (chi, or sqrt_d: less noise, slightly biased);
//         redraw (1000): training steps between draws, 0: never; offset (0.001).
// Paper   Choromanski et al., "Rethinking Attention with Performers", ICLR 2021.
//         https://arxiv.org/abs/2009.14794

#include "lagwise/ops/favor.h"

#include <c10/util/StringUtil.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "lagwise/attention/feature_map.h"
#include "lagwise/attention/random_directions.h"
#include "lagwise/ops/torch/numbers_of.h"

namespace lagwise {
namespace {

struct FavorChoice {
  std::string name, kind;
  int64_t features = 0, redraw = 0;
  DirectionChoice directions = {};
  double offset = 0;
  bool two_sided() const { return kind == "two_sided"; }
};

class Favor : public FeatureMap {
 public:
  explicit Favor(FavorChoice choice) : choice_(std::move(choice)) {}

  int64_t width(int64_t d) const override {
    if (choice_.features > 0) return choice_.features;
    const auto wide = static_cast<double>(d);
    return std::max<int64_t>(16, static_cast<int64_t>(wide * std::log(wide)) / 16 * 16);
  }

  Epsilon epsilon() const override {
    if (choice_.kind == "relu") return {};
    return {.value = 0};
  }

  at::Tensor directions(const Draw& draw, int64_t layer, int64_t d,
                        const at::TensorOptions& options) const override {
    const int64_t m = choice_.two_sided() ? width(d) / 2 : width(d);
    if (const auto given = draw.given.find("favor"); given != draw.given.end()) {
      const at::Tensor& w = given->second;
      if (w.dim() != 2 || w.size(0) != m || w.size(1) != d)
        throw std::invalid_argument(c10::str(choice_.name,
                                             ": expected given directions [", m, ", ",
                                             d, "], got ", w.sizes()));
      return w.to(options);
    }
    Draw moment = draw;
    moment.micro_step = 0;
    moment.step = choice_.redraw > 0 ? draw.step - draw.step % choice_.redraw : 0;
    return random_directions(moment.noise(streams::kFavor), layer, m, d,
                             choice_.directions)
        .to(options);
  }

  Features features(const at::Tensor& x, Side, const at::Tensor& directions,
                    const Placement&) const override {
    if (!directions.defined())
      throw std::invalid_argument(choice_.name + ": expected directions, got none");
    return ops::favor_features(x, directions, choice_.kind, choice_.offset);
  }

  OneTokenMap one_token(const Draw& draw, int64_t layer, int64_t d,
                        int64_t) const override {
    OneTokenMap map;
    map.random = choice_.kind, map.random_offset = choice_.offset;
    map.directions = ops::numbers_of<float>(directions(draw, layer, d, at::kFloat));
    return map;
  }

 private:
  FavorChoice choice_;
};

std::unique_ptr<FeatureMap> make(Spec& spec, const char* kind) {
  FavorChoice choice{spec.name(), kind};
  choice.features = spec.take("features", 0);
  choice.directions.orthogonal = spec.take("orthogonal", true);
  choice.directions.chi_norms =
      spec.take_choice("norms", "chi", {"chi", "sqrt_d"}) == "chi";
  choice.redraw = spec.take("redraw", 1000);
  if (choice.kind == "relu") choice.offset = spec.take("offset", 1e-3);
  const auto refuse = [&](const char* expected, auto got) {
    throw std::invalid_argument(
        c10::str(spec.name(), ": expected ", expected, ", got ", got));
  };
  if (choice.features < 0) refuse("features >= 0", choice.features);
  if (choice.two_sided() && choice.features % 2 != 0)
    refuse("an even number of features", choice.features);
  if (choice.redraw < 0) refuse("redraw >= 0", choice.redraw);
  if (!(choice.offset >= 0)) refuse("offset >= 0", choice.offset);
  return std::make_unique<Favor>(std::move(choice));
}

const RegisterFeatureMap positive({
    .name = "favor",
    .summary = "positive random features of the softmax kernel",
    .paper = "arXiv:2009.14794",
    .make = [](Spec& spec) { return make(spec, "positive"); },
});
const RegisterFeatureMap two_sided({
    .name = "favor_two_sided",
    .summary = "positive features of each direction and its opposite: less noise",
    .paper = "arXiv:2009.14794",
    .make = [](Spec& spec) { return make(spec, "two_sided"); },
});
const RegisterFeatureMap favor_relu({
    .name = "favor_relu",
    .summary = "relu of random projections, plus an offset",
    .paper = "arXiv:2009.14794",
    .make = [](Spec& spec) { return make(spec, "relu"); },
});

}  // namespace
}  // namespace lagwise
