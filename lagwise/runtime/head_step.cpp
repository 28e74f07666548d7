#include "lagwise/runtime/head_step.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "lagwise/kernels/linear_step.h"
#include "lagwise/kernels/rms_norm.h"
#include "lagwise/kernels/rotate.h"
#include "lagwise/kernels/row_product.h"
#include "lagwise/runtime/map_kinds.h"

namespace lagwise::runtime {
namespace {

using kernels::Rows;

MatView<const float> matrix(const float* data, int64_t rows, int64_t cols) {
  return {data, rows, cols, cols};
}

MatView<const float> row_of(MatView<float> x, int64_t i) {
  return {x.row(i), 1, x.cols, x.cols};
}

void multiply(MatView<float> x, int64_t row, float factor) {
  for (int64_t j = 0; j < x.cols; ++j) x(row, j) *= factor;
}

/// Gives a row length 1; one of zeros stays so.
void make_unit(MatView<float> x, int64_t row) {
  constexpr double kTiny = 1e-12;
  double squares = kTiny;
  for (int64_t j = 0; j < x.cols; ++j)
    squares += static_cast<double>(x(row, j)) * static_cast<double>(x(row, j));
  multiply(x, row, static_cast<float>(1 / std::sqrt(squares)));
}

/// Brings a key that counts e^log_scale times into the range of the state, or the state
/// [count numbers] into the range of the key. Returns the weight of the key.
float meet(float log_scale, float& max, float* state, int64_t count) {
  if (log_scale > max) {
    const auto factor =
        static_cast<float>(std::exp(static_cast<double>(max) - log_scale));
    for (int64_t i = 0; i < count; ++i) state[i] *= factor;
    max = log_scale;
  }
  return std::isinf(log_scale) ? 0.0f : std::exp(log_scale - max);
}

}  // namespace

LayerKinds::LayerKinds(const Plan& plan, const OneTokenLayer& layer)
    : widths(widths_of(plan, layer)),
      gain(layer.memory.norm_gain.span().begin(), layer.memory.norm_gain.span().end()) {
  const OneTokenMap& of = layer.memory.map;
  map = {pointwise_kind(of.pointwise).value(), of.offset};
  if (gain.empty()) gain.assign(static_cast<size_t>(plan.value_columns()), 1.0f);
  if (of.random.empty()) return;
  favor = {random_kind(of.random).value(), of.random_offset};
  const int64_t d = widths.mapped;
  direction_count = of.directions.size() / d;
  directions.resize(
      static_cast<size_t>(kernels::packed_size<float>(d, direction_count)));
  const MatView<const float> by_column{of.directions.data(), d, direction_count, 1, d};
  kernels::pack_panels<float>(
      by_column, static_cast<float>(std::pow(static_cast<double>(d), -0.25)),
      directions.data());
}

HeadStep::HeadStep(const Plan& plan, const std::vector<LayerKinds>& kinds)
    : plan_(plan), kinds_(kinds) {
  int64_t widest = 0, waves = 0, scratch = 0;
  for (size_t i = 0; i < kinds.size(); ++i) {
    const LayerWidths& w = kinds[i].widths;
    widest = std::max(widest, w.widest);
    waves = std::max(waves, plan.key_dim * (2 * plan.one.layers[i].place.sines + 1));
    scratch = std::max(
        {scratch, kernels::linear_step_scratch<float>(w.state, w.norm),
         kinds[i].direction_count == 0
             ? int64_t{0}
             : kernels::favor_scratch<float>(kinds[i].direction_count, w.mapped)});
  }
  const auto rows = static_cast<size_t>(2 * widest);
  for (auto* const memory : {&first_, &second_, &third_, &norm_}) memory->resize(rows);
  waves_.resize(static_cast<size_t>(2 * waves));
  scratch_.resize(static_cast<size_t>(scratch));
}

HeadStep::Pair HeadStep::pair(std::vector<float>& memory, int64_t width) {
  return {memory.data(), 2, width, width};
}

/// Memory for the rows that come out of the next step: three buffers take turns, so that
/// what was just read is still there.
HeadStep::Pair HeadStep::next(int64_t width) {
  std::swap(free_[0], free_[1]);
  return pair(*free_[0], width);
}

void HeadStep::run(const HeadRow& at, const Places& places) {
  const OneTokenLayer& layer = plan_.one.layers[at.layer];
  const OneTokenMemory& memory = layer.memory;
  const int64_t d = plan_.key_dim;
  free_[0] = &second_, free_[1] = &third_;
  scaled_ = false;
  Pair x = pair(first_, d);
  std::copy_n(at.q, d, x.row(0));
  std::copy_n(at.k, d, x.row(1));
  if (!memory.q_bias.empty())
    for (int64_t j = 0; j < d; ++j) {
      x(0, j) += memory.q_bias[at.head * d + j];
      x(1, j) += memory.k_bias[at.head * d + j];
    }
  if (!layer.place.after_map)
    return advance(at, features(at, memory.map, encode(at, layer.place, places, x)),
                   {});
  const Pair mapped = features(at, memory.map, x);
  Pair norm = pair(norm_, mapped.cols);
  if (layer.place.separate)
    std::copy_n(mapped.data, 2 * mapped.cols, norm.data);
  else
    norm = {};
  advance(at, encode(at, layer.place, places, mapped), norm);
}

HeadStep::Pair HeadStep::encode(const HeadRow& at, const OneTokenPlace& place,
                                const Places& places, Pair x) {
  if (place.sines > 0) return waved(at, place, places, x);
  if (!place.matrix.empty()) {
    const Pair y = next(place.width);
    kernels::row_product(x, matrix(place.matrix.data(), x.cols, place.width), false, y);
    x = y;
  }
  return place.planes > 0 ? turned(at, place, places, x) : x;
}

HeadStep::Pair HeadStep::turned(const HeadRow& at, const OneTokenPlace& place,
                                const Places& places, Pair x) {
  const Pair y = next(x.cols);
  MatView<const float> table = places.turn(at.layer, at.row, at.head);
  table.rows = 2, table.row_step = 0;  // queries and keys stand at one place
  const auto pairs =
      place.interleaved ? kernels::Pairs::interleaved : kernels::Pairs::half;
  const int64_t block = x.cols / place.blocks;
  for (int64_t begin = 0; begin < x.cols; begin += block)
    kernels::rotate<float>(x.columns(begin, begin + block), table, pairs, false,
                           y.columns(begin, begin + block));
  return y;
}

/// The features of both rows stand one after the other: D times 2K of the waves, then D
/// of the constant.
HeadStep::Pair HeadStep::waved(const HeadRow& at, const OneTokenPlace& place,
                               const Places& places, Pair x) {
  const int64_t d = x.cols, k = place.sines, codes = 2 * d * k;
  const float* const amplitude = place.amplitude.data() + at.head * d * k;
  const bool gated = !place.constant.empty();
  const Pair u{waves_.data(), 2, codes + d, codes + d};
  const Places::Waves of_row[2] = {places.query_waves(at.layer, at.row, at.head),
                                   places.key_waves(at.layer, at.row, at.head)};
  for (int64_t row = 0; row < 2; ++row) {
    float* to = u.row(row);
    for (int64_t i = 0; i < d * k; ++i, to += 2) {
      const float size = x(row, i / k) * amplitude[i];
      to[0] = size * of_row[row].cosine[i], to[1] = size * of_row[row].sine[i];
    }
    for (int64_t i = 0; gated && i < d; ++i)
      to[i] = x(row, i) * place.constant[at.head * d + i];
  }
  const int64_t r = place.width;
  const Pair y = next(r);
  if (place.fold.empty()) {
    const float* const z = place.noise.data() + at.head * codes * r;
    kernels::row_product(u.columns(0, codes), matrix(z, codes, r), false, y);
    if (gated)
      kernels::row_product(u.columns(codes, codes + d),
                           matrix(place.gate_noise.data() + at.head * d * r, d, r),
                           true, y);
    return y;
  }
  std::fill_n(y.data, 2 * r, 0.0f);
  const int64_t waves = 2 * k + (gated ? 1 : 0);
  const int64_t* const fold = place.fold.data() + at.head * d * waves;
  for (int64_t row = 0; row < 2; ++row)
    for (int64_t i = 0; i < d * waves; ++i) {
      const int64_t of = i / waves, wave = i % waves;
      const float value = u(row, wave < 2 * k ? of * 2 * k + wave : codes + of);
      y(row, std::abs(fold[i]) - 1) += fold[i] < 0 ? -value : value;
    }
  return y;
}

HeadStep::Pair HeadStep::features(const HeadRow& at, const OneTokenMap& map, Pair x) {
  const LayerKinds& kinds = kinds_[at.layer];
  if (kinds.direction_count > 0) {
    scaled_ = kinds.favor.kind != kernels::Favor::Kind::relu;
    const Pair y = next(kinds.favor.width(kinds.direction_count));
    const MatView<float> log_scale{scaled_ ? log_scale_ : nullptr, scaled_ ? 2 : 0, 1,
                                   1};
    kernels::favor_rows<float>(kinds.favor, x, kinds.directions.data(),
                               kinds.direction_count, y, log_scale, scratch_.data());
    x = y;
  } else if (kinds.map.kind != kernels::FeatureMap::Kind::none) {
    kernels::map_rows<float>(kinds.map, x, x);
  }
  if (map.horizon == 0) return x;
  const Pair y = next(2 * x.cols);
  const double angle = std::numbers::pi * static_cast<double>(at.position + 1) /
                       (2 * static_cast<double>(map.horizon));
  const auto s = static_cast<float>(std::sin(angle));
  const auto c = static_cast<float>(std::cos(angle));
  for (int64_t row = 0; row < 2; ++row)
    for (int64_t j = 0; j < x.cols; ++j)
      y(row, j) = x(row, j) * s, y(row, x.cols + j) = x(row, j) * c;
  return y;
}

/// The step of the state; `norm`: features of a separate denominator, or empty.
void HeadStep::advance(const HeadRow& at, Pair encoded, Pair norm) {
  const OneTokenLayer& layer = plan_.one.layers[at.layer];
  const OneTokenMemory& memory = layer.memory;
  const LayerWidths& w = kinds_[at.layer].widths;
  const int64_t e = plan_.value_dim, cells = w.state * e;
  float weight = 1;
  if (scaled_ && memory.divides) {  // the scale of a query cancels
    weight = meet(log_scale_[1], at.state[cells + w.norm], at.state, cells + w.norm);
  } else if (scaled_) {
    multiply(encoded, 0, std::exp(log_scale_[0]));
    multiply(encoded, 1, std::exp(log_scale_[1]));
  }
  if (memory.rewrites) make_unit(encoded, 0), make_unit(encoded, 1);

  using By = kernels::Decay<float>::By;
  kernels::Decay<float> decay;
  if (const Numbers<float>& fade = layer.place.log_fade; !fade.empty()) {
    const bool channel = fade.size() > plan_.heads;
    const int64_t width = channel ? w.state : 1;
    decay.by = channel ? By::channel : By::head;
    decay.log_factor = {fade.data() + at.head * width, 1, width, width};
  }
  if (at.log_decay != nullptr) decay.log_gate = {at.log_decay, 1, 1};
  kernels::Denominator<float> denominator;
  if (memory.divides)
    denominator = {kernels::Denominator<float>::From::features,
                   static_cast<float>(memory.eps),
                   memory.clamp,
                   {},
                   at.state + cells};
  const MatView<const float> scale{&weight, 1, 1};
  const Rows<float> q{row_of(encoded, 0)}, k{row_of(encoded, 1), {}, scale};
  const bool apart = norm.data != nullptr && memory.divides;
  const Rows<float> q_norm = apart ? Rows<float>{row_of(norm, 0)} : q;
  const Rows<float> k_norm = apart ? Rows<float>{row_of(norm, 1), {}, scale} : k;
  kernels::linear_step<float>(q, k, q_norm, k_norm, matrix(at.v, 1, e), decay,
                              denominator, {at.state, w.state, e, e}, {at.out, 1, e, e},
                              scratch_.data(), at.write_strength);
  if (memory.norm != "rms_head") return;
  float inv_size = 0;
  kernels::rms_norm<float>(matrix(at.out, 1, e),
                           matrix(kinds_[at.layer].gain.data() + at.head * e, 1, e),
                           memory.norm_eps, {at.out, 1, e, e}, &inv_size);
}

}  // namespace lagwise::runtime
