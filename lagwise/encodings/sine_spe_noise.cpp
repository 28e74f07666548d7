#include "lagwise/encodings/sine_spe_noise.h"

#include <ATen/Parallel.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>

#include <numeric>
#include <span>
#include <sstream>
#include <stdexcept>
#include <utility>
#include <vector>

namespace lagwise {
namespace {

/// x[row, r] = normal of (row's coordinates, realisation r): the realisation runs along
/// the row of noise, in the place of a position.
template <class T, class At>
void fill_rows(const Noise& noise, int64_t rows, int64_t width, T* to, const At& at) {
  at::parallel_for(0, rows, 64, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const std::span<T> row(to + i * width, static_cast<size_t>(width));
      noise.at(at(i)).fill_normal(0, row);
    }
  });
}

template <class At>
at::Tensor normals(const Noise& noise, at::IntArrayRef sizes, at::ScalarType type,
                   const At& at) {
  at::Tensor x = at::empty(sizes, type == at::kDouble ? at::kDouble : at::kFloat);
  const int64_t width = sizes.back(), rows = x.numel() / width;
  if (type == at::kDouble)
    fill_rows(noise, rows, width, x.data_ptr<double>(), at);
  else
    fill_rows(noise, rows, width, x.data_ptr<float>(), at);
  return x;
}

/// A permutation of 0 .. count - 1, each equally likely (Fisher and Yates).
std::vector<int64_t> permutation(const NoiseRow& row, int64_t count) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), int64_t{0});
  for (int64_t i = count - 1; i > 0; --i) {
    const auto j = static_cast<size_t>(row.uniform(i) * static_cast<double>(i + 1));
    std::swap(order[static_cast<size_t>(i)], order[j]);
  }
  return order;
}

bool same_moment(const Draw& a, const Draw& b) {
  return a.seed == b.seed && a.step == b.step && a.micro_step == b.micro_step;
}

}  // namespace

SineSpeNoise::SineSpeNoise(const Shape& shape)
    : shape_(shape),
      plain_fold_(at::arange(1, shape.dim * shape.waves() + 1, at::kLong)
                      .expand({shape.heads, -1})
                      .contiguous()) {}

at::Tensor SineSpeNoise::given(const Draw& draw, const std::string& name,
                               at::IntArrayRef sizes) const {
  const auto found = draw.given.find(name);
  if (found == draw.given.end()) return {};
  if (found->second.sizes() == sizes) return found->second;
  std::ostringstream text;
  text << "sine_spe: expected " << name << " " << sizes << ", got "
       << found->second.sizes();
  throw std::invalid_argument(text.str());
}

at::Tensor SineSpeNoise::kept(const Draw& draw, const std::string& name,
                              const std::function<at::Tensor()>& make) {
  const std::lock_guard lock(mutex_);
  if (!same_moment(draw, draw_)) kept_.clear();
  draw_ = {draw.seed, draw.step, draw.micro_step};
  at::Tensor& x = kept_[name];
  if (!x.defined()) x = make();
  return x;
}

at::Tensor SineSpeNoise::code(const Draw& draw, int64_t layer, at::ScalarType type) {
  const int64_t codes = 2 * shape_.sines;
  const at::Tensor z =
      given(draw, "sine_spe.z", {1, shape_.heads, shape_.dim, codes, shape_.width});
  if (z.defined()) return z[0];
  layer = code_layer(layer);
  return kept(draw, "z." + std::to_string(layer) + c10::toString(type), [&] {
    const int64_t per_head = shape_.dim * codes;
    return normals(
        draw.noise(streams::kSineSpe), {shape_.heads, shape_.dim, codes, shape_.width},
        type, [per_head, layer](int64_t i) {
          return NoiseAt{.layer = layer, .head = i / per_head, .feature = i % per_head};
        });
  });
}

at::Tensor SineSpeNoise::gate(const Draw& draw, int64_t layer, at::ScalarType type) {
  const at::Tensor x =
      given(draw, "sine_spe.gate", {shape_.heads, shape_.dim, shape_.width});
  if (x.defined()) return x;
  const std::string name = "gate." + std::to_string(layer) + c10::toString(type);
  return kept(draw, name, [&] {
    return normals(draw.noise(streams::kGate), {shape_.heads, shape_.dim, shape_.width},
                   type, [this, layer](int64_t i) {
                     return NoiseAt{.layer = layer,
                                    .head = i / shape_.dim,
                                    .feature = i % shape_.dim};
                   });
  });
}

at::Tensor SineSpeNoise::fold(const Draw& draw, int64_t layer) {
  const int64_t waves = shape_.waves(), features = shape_.dim * waves;
  const at::Tensor x = given(draw, "sine_spe.fold", {shape_.heads, features});
  if (x.defined()) return x;
  return kept(draw, "fold." + std::to_string(layer), [&] {
    const Noise of_code = draw.noise(streams::kSineSpe);
    const Noise of_gate = draw.noise(streams::kGate);
    at::Tensor fold = at::empty({shape_.heads, features}, at::kLong);
    auto* to = fold.data_ptr<int64_t>();
    for (int64_t h = 0; h < shape_.heads; ++h) {
      const NoiseRow code_row = of_code.at({.layer = code_layer(layer), .head = h});
      const NoiseRow gate_row = of_gate.at({.layer = layer, .head = h});
      const auto order = permutation(code_row, features);
      for (int64_t f = 0; f < features; ++f) {
        const bool is_gate = f % waves == 2 * shape_.sines;
        const double sign = is_gate ? gate_row.sign(f) : code_row.sign(f);
        const int64_t bin = order[static_cast<size_t>(f)] % shape_.width;
        *to++ = sign < 0 ? -(bin + 1) : bin + 1;
      }
    }
    return fold;
  });
}

}  // namespace lagwise
