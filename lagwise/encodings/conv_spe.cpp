// ConvSPE: stochastic positional encoding by filtered noise.
//
//     q'_{n,r} = (R D)^(-1/4) sum_d q_{n,d} sum_j a_d[j] z(d, r, n + j)
//     k'_{m,r} = (R D)^(-1/4) sum_d k_{m,d} sum_j b_d[j] z(d, r, m + j)
//     E <q'_n, k'_m> = sqrt(R / D) sum_d q_{n,d} k_{m,d} P_d(n - m),
//     P(tau) = sum_j a[j] b[j + tau],    0 for |tau| >= kernel
//
// A gate g = sigmoid(gate) mixes in a share without position, the same for all rows:
//     code <- sqrt(1 - g) code + sqrt(g) eps_{d,r},    P <- (1 - g) P + g
//
// Shapes   query_kernel (a), key_kernel (b) [H D, 1, kernel..], gate [H, D] per layer;
//          q', k' [B, H, N, R]. On a grid n, j and tau have 2 or 3 coordinates.
// Scale    1 / sqrt(R) in exact attention: the logit is then, in expectation, the usual
//          one, sum_d q k P / sqrt(D). Feature maps with a temperature apply it as
//          R^(-1/4) to either side.
// Cost     docs/maths/conv_spe.md; a step of decoding is the same at any position.
// ConvSpeOptions  kernel (128; 7x7 on an image, 3x3x3): its axes are those of the grid;
//          realizations (64); noise gaussian or sign; gated (true);
//          method auto, direct or fourier; shared (true): one pair of kernels for all
//          layers, or each its own. The noise is one draw for all layers either way.
// Given    Draw.given["conv_spe.z"] (R, H D, 4 kernel_1 + size_1, ..) as the authors'
//          code draws it: the samples from `kernel` on are used;
//          Draw.given["conv_spe.gate"] [H, D, R].
// Off grid leading rows without a position are multiplied by eps alone. Among
//          themselves P = 1; towards rows of the grid P = sqrt(g), which is 0 without a
//          gate.
// Note     the authors' PyTorch code has the names crossed: its conv_k makes the code
//          of queries and is our query_kernel, its conv_q is our key_kernel.
// Paper    Liutkus et al., "Relative Positional Encoding for Transformers with Linear
//          Complexity", ICML 2021. https://arxiv.org/abs/2105.08399

#include "lagwise/ops/conv_spe.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/log_sigmoid.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <c10/core/GradMode.h>

#include <cmath>
#include <stdexcept>

#include "lagwise/encodings/conv_spe_kernels.h"
#include "lagwise/encodings/encoding.h"
#include "lagwise/ops/spe/conv_spe_noise.h"

namespace lagwise {
namespace {

using at::Tensor;

struct ConvSpeOptions {
  std::vector<int64_t> kernel;
  int64_t realizations;
  std::string noise;
  bool gated, shared;
  std::string method;
};

[[noreturn]] void refuse_conv_spe(const std::string& text) {
  throw std::invalid_argument("conv_spe: " + text);
}

Traits traits_of(const ConvSpeOptions& options) {
  Traits traits;
  traits.exact = traits.linear_causal = traits.linear_full = true;
  traits.stage = Traits::Stage::before_map;
  traits.dims = static_cast<int64_t>(options.kernel.size());
  traits.stochastic = true;
  return traits;
}

/// Samples of the noise, and what is made of them.
struct NoiseWindow : Prepared {
  int64_t bytes() const override { return bytes_of(z) + bytes_of(eps) + bytes_of(row); }

  Tensor z;                      ///< [H, D, samples.., R]
  int64_t first = 0, drawn = 0;  ///< positions in a stream: of the first sample, after
                                 ///<   the last one drawn; 0, 0: samples were given
  Tensor eps;                    ///< of the gates of all layers, [layers, H, D, R]
  Tensor row;                    ///< codes of a single row, [H, D, 2, R]
};

class ConvSpe : public Encoding {
 public:
  ConvSpe(const ConvSpeOptions& options, const HeadShape& shape)
      : Encoding(traits_of(options), shape),
        options_(options),
        kernels_(conv_spe_kernels(shape, options.kernel, 0)) {}

  int64_t width() const override { return options_.realizations; }

  Parameters shared() override { return options_.shared ? kernels_ : Parameters(); }

  Parameters layer(int64_t index, int64_t count) override {
    layers_ = std::max(layers_, count);
    Parameters own;
    if (!options_.shared)
      own = kernels_ = conv_spe_kernels(shape(), options_.kernel, index);
    if (!options_.gated) return own;
    const Tensor gate = at::empty({shape().heads, shape().dim}, at::kFloat);
    const Noise noise(shape().seed, streams::kParameters);
    for (int64_t h = 0; h < shape().heads; ++h)
      noise.at({.layer = index, .head = h, .realisation = 2})
          .fill_normal<float>(0, {gate.data_ptr<float>() + h * shape().dim,
                                  static_cast<size_t>(shape().dim)});
    own.emplace_back("gate", gate);
    return own;
  }

  Code code(const Placement& at, const Draw& draw, int64_t queries, int64_t keys,
            const Code* previous) override {
    const auto z = draw.given.find("conv_spe.z");
    if (z != draw.given.end()) {
      const auto given = std::make_shared<NoiseWindow>();
      given->z = used_samples(z->second);
      return {draw, given};
    }
    const bool stream = previous != nullptr && at.grid.empty() && queries == keys &&
                        at.query_start == at.key_start && taps().size() == 1 &&
                        queries - at.off_grid <= taps()[0];
    if (!stream) return {draw};
    const auto next = slide(*previous, draw, at.query_start, queries - at.off_grid);
    if (queries == 1 && at.off_grid == 0 && forms_rows())
      next->row = form_row(*next, draw, at.query_start);
    return {draw, next};
  }

  Encoded encode(const Tensor& q, const Tensor& k, const Code& code, const Layer& layer,
                 const Placement& at) override {
    check(at);
    const auto* const window = code.as<NoiseWindow>();
    if (window != nullptr && window->row.defined() && forms_rows())
      return multiply_row(q, k, code, layer);
    const int64_t off = at.off_grid;
    ops::ConvSpeOptions options = options_of(code.draw);
    options.method = options_.method;
    options.query_start = at.query_start, options.key_start = at.key_start;
    options.grid = at.grid;
    if (window != nullptr) {
      options.z = window->z.to(q.scalar_type());
      options.z_start = window->first;
    }
    const Layer all{0, 1, kernels_};
    const Layer& kernels = options_.shared ? all : layer;
    Tensor eps, mixed, a = kernels["query_kernel"].to(q.scalar_type()),
                       b = kernels["key_kernel"].to(q.scalar_type());
    if (options_.gated || off > 0) eps = gate_noise(code, layer.index, q);
    if (options_.gated) {
      std::vector<int64_t> per_channel(static_cast<size_t>(a.dim()), 1);
      per_channel[0] = a.size(0);
      const Tensor raw = layer["gate"].to(q.scalar_type());
      const Tensor keep = root_sigmoid(-raw).view(per_channel);
      mixed = root_sigmoid(raw).unsqueeze(-1) * eps;
      a = a * keep, b = b * keep;
    }
    auto [q1, k1] = ops::conv_spe(q.slice(2, off), k.slice(2, off), a, b, options);
    const auto finish = [&](const Tensor& x, const Tensor& placed) {
      const Tensor on =
          mixed.defined() ? placed + at::matmul(x.slice(2, off), mixed) : placed;
      return off == 0 ? on : at::cat({at::matmul(x.slice(2, 0, off), eps), on}, 2);
    };
    return {finish(q, q1), finish(k, k1), scale()};
  }

 private:
  const std::vector<int64_t>& taps() const { return options_.kernel; }

  /// A kernel, for its type: what is drawn is of the same.
  const Tensor& kind() const { return kernels_[0].second; }

  double scale() const {
    return 1 / std::sqrt(static_cast<double>(options_.realizations));
  }

  /// (R D)^(-1/4)
  double strength() const {
    return std::pow(static_cast<double>(options_.realizations * shape().dim), -0.25);
  }

  /// sqrt(sigmoid(x)) by its logarithm, so that its gradient never divides by zero.
  static Tensor root_sigmoid(const Tensor& x) {
    return at::log_sigmoid(x).mul(0.5).exp();
  }

  void check(const Placement& at) const {
    if (at.query_at.defined() || at.key_at.defined())
      refuse_conv_spe("expected rows one after another, got explicit positions");
    const size_t axes = at.grid.empty() ? 1 : at.grid.size();
    if (axes != taps().size())
      refuse_conv_spe("expected a grid of " + std::to_string(taps().size()) +
                      " axes, as kernel has, got " + std::to_string(axes));
  }

  ops::ConvSpeOptions options_of(const Draw& draw) const {
    ops::ConvSpeOptions options;
    options.realizations = options_.realizations;
    options.noise = options_.noise;
    options.draw.seed = draw.seed;
    options.draw.step = draw.step, options.draw.micro_step = draw.micro_step;
    return options;
  }

  // ---- a stream, token by token: one row is filtered once for all layers

  /// Whether the codes of a single row are formed once and kept for all layers. Not
  /// where layers have kernels of their own, not where gradients are wanted, and not
  /// with method=direct, which promises other bits.
  bool forms_rows() const {
    return options_.shared && options_.method == "auto" &&
           !c10::GradMode::is_enabled() && shape().heads * shape().dim < 1 << 16;
  }

  /// The codes (R D)^(-1/4) sum_j a_d[j] z(d, r, n + j) of queries and keys at one
  /// position, [H, D, 2, R]. Uses ops::conv_spe on rows with a single feature of 1, for
  /// which the result is the code.
  Tensor form_row(const NoiseWindow& window, const Draw& draw, int64_t n) const {
    const int64_t h = shape().heads, d = shape().dim, r = options_.realizations;
    const Tensor& z = window.z;
    const Tensor one = at::ones({1, h * d, 1, 1}, z.options());
    ops::ConvSpeOptions options = options_of(draw);
    options.method = "direct";
    options.query_start = options.key_start = n;
    options.z = z.view({h * d, 1, z.size(2), r});
    options.z_start = window.first;
    const auto [a, b] =
        ops::conv_spe(one, one, kernels_[0].second, kernels_[1].second, options);
    return at::stack({a.view({h, d, r}), b.view({h, d, r})}, 2)
        .mul_(std::pow(static_cast<double>(d), -0.25));  // R^(-1/4) is there already
  }

  /// Queries and keys of one row times such codes with this layer's gate in them. Uses
  /// ops::conv_spe as a plain product: with one tap its `z` *is* the code; queries read
  /// z[0], keys z[1].
  Encoded multiply_row(const Tensor& q, const Tensor& k, const Code& code,
                       const Layer& layer) const {
    ops::ConvSpeOptions options = options_of(code.draw);
    options.method = "direct";
    options.key_start = 1;
    options.z = code.as<NoiseWindow>()->row.to(q.scalar_type());
    if (options_.gated) {
      const Tensor raw = layer["gate"].to(q.scalar_type()).unsqueeze(-1);  // [H, D, 1]
      const Tensor mixed = root_sigmoid(raw) * gate_noise(code, layer.index, q);
      options.z = mixed.unsqueeze(2) + root_sigmoid(-raw).unsqueeze(-1) * options.z;
    }
    const Tensor tap =
        at::full({shape().heads * shape().dim, 1, 1}, 1 / strength(), q.options());
    const auto [q1, k1] = ops::conv_spe(q, k, tap, tap, options);
    return {q1, k1, scale()};
  }

  // ---- noise

  /// eps / (R D)^(1/4) of one layer, [H, D, R].
  Tensor gate_noise(const Code& code, int64_t layer, const Tensor& like) const {
    const int64_t h = shape().heads, d = shape().dim, r = options_.realizations;
    const auto* const kept = code.as<NoiseWindow>();
    if (kept != nullptr && kept->eps.defined() && layer < kept->eps.size(0))
      return kept->eps[layer].to(like.scalar_type());
    const auto given = code.draw.given.find("conv_spe.gate");
    if (given != code.draw.given.end()) {
      if (given->second.sizes() != at::IntArrayRef({h, d, r}))
        refuse_conv_spe("expected conv_spe.gate [H, D, R] with " +
                        std::to_string(h * d * r) + " numbers, got " +
                        std::to_string(given->second.numel()));
      return given->second.to(like.scalar_type()) * strength();
    }
    const Tensor eps = at::empty({h, d, r}, like.options().requires_grad(false));
    ops::draw_gate_noise(eps, layer, options_.noise, code.draw);
    return eps.mul_(strength());
  }

  /// The noise of the gates of all layers, drawn once for a stream and then kept.
  Tensor gate_noise_of_layers(const Code& previous, const Draw& draw) const {
    if (!options_.gated || draw.given.count("conv_spe.gate") > 0) return {};
    const NoiseWindow* const kept = window_at(previous, draw);
    if (kept != nullptr && kept->eps.defined() &&
        kept->eps.scalar_type() == kind().scalar_type())
      return kept->eps;
    std::vector<Tensor> layers;
    for (int64_t i = 0; i < layers_; ++i)
      layers.push_back(gate_noise({draw}, i, kind()));
    return layers.empty() ? Tensor() : at::stack(layers, 0);
  }

  /// Of given samples (R, H D, 4 kernel + size, ..) those that are used:
  /// [H, D, kernel - 1 + size, .., R].
  Tensor used_samples(const Tensor& given) const {
    const auto axes = static_cast<int64_t>(taps().size());
    const int64_t h = shape().heads, d = shape().dim;
    if (given.dim() != 2 + axes || given.size(0) != options_.realizations ||
        given.size(1) != h * d)
      refuse_conv_spe("expected conv_spe.z (R, H D, 4 kernel + size, ..) of " +
                      std::to_string(2 + axes) + " axes");
    Tensor z = given;
    for (int64_t i = 0; i < axes; ++i) {
      const int64_t kernel = taps()[static_cast<size_t>(i)];
      const int64_t size = given.size(2 + i) - 4 * kernel;
      if (size < 0)
        refuse_conv_spe("expected conv_spe.z with 4 kernel + size samples an axis");
      z = z.narrow(2 + i, kernel, kernel - 1 + size);
    }
    std::vector<int64_t> sizes = z.sizes().vec(), order = {1, 2};
    sizes.erase(sizes.begin() + 1);
    sizes.insert(sizes.begin() + 1, {h, d});
    for (int64_t i = 0; i < axes; ++i) order.push_back(3 + i);
    order.push_back(0);
    return z.reshape(sizes).permute(order).contiguous();
  }

  /// The window of a stream: z [H, D, capacity, R] from position first, drawn up to
  /// `drawn`. New samples are appended; when it is full, what is still needed moves to
  /// a new one. A sample is a function of its position, so codes may share a window.
  std::shared_ptr<NoiseWindow> slide(const Code& previous, const Draw& draw,
                                     int64_t start, int64_t rows) {
    const int64_t kernel = taps()[0], end = start + rows + kernel - 1;
    Tensor window;
    int64_t first = start, drawn = start;
    const NoiseWindow* const kept = window_at(previous, draw);
    if (kept != nullptr && kept->first <= start && start <= kept->drawn) {
      window = kept->z;
      first = kept->first;
      drawn = kept->drawn;
    }
    if (!window.defined() || window.scalar_type() != kind().scalar_type() ||
        end - first > window.size(2)) {
      const int64_t capacity = 2 * kernel + 64;  // whatever the rows: at most kernel
      const Tensor next =
          at::empty({shape().heads, shape().dim, capacity, options_.realizations},
                    kind().options().requires_grad(false));
      const int64_t kept = drawn - start;
      if (kept > 0)
        next.narrow(2, 0, kept).copy_(window.narrow(2, start - first, kept));
      window = next, first = start;
    }
    if (drawn < end) {  // in fours, which cost no more than one
      const int64_t stop = std::min(first + window.size(2), (end + 3) / 4 * 4);
      ops::draw_conv_noise(window.narrow(2, drawn - first, stop - drawn), drawn,
                           options_.noise, draw);
      drawn = stop;
    }
    const auto next = std::make_shared<NoiseWindow>();
    next->z = window;
    next->first = first;
    next->drawn = drawn;
    next->eps = gate_noise_of_layers(previous, draw);
    return next;
  }

  /// The window of a stream that goes on with the same draw; null: there is none.
  static const NoiseWindow* window_at(const Code& previous, const Draw& draw) {
    const auto* const window = previous.as<NoiseWindow>();
    const bool streams = window != nullptr && window->drawn > window->first;
    return streams && same_moment(previous.draw, draw) ? window : nullptr;
  }

  static bool same_moment(const Draw& a, const Draw& b) {
    return a.seed == b.seed && a.step == b.step && a.micro_step == b.micro_step;
  }

  ConvSpeOptions options_;
  Parameters kernels_;  // of all layers; where each has its own, of the last made
  int64_t layers_ = 0;  // of the model, as far as is known
};

const RegisterEncoding conv_spe_registered({
    .name = "conv_spe",
    .summary = "noise filtered by learned kernels: a learned template of short lags",
    .paper = "arXiv:2105.08399",
    .make = [](Spec& spec, const HeadShape& shape) -> std::unique_ptr<Encoding> {
      ConvSpeOptions options;
      options.kernel = conv_spe_taps(spec.take("kernel", "128"));
      options.realizations = spec.take("realizations", 64);
      options.noise = spec.take_choice("noise", "gaussian", {"gaussian", "sign"});
      options.gated = spec.take("gated", true);
      options.shared = spec.take("shared", true);
      options.method =
          spec.take_choice("method", "auto", {"auto", "direct", "fourier"});
      if (options.realizations < 1 || options.realizations >= 1 << 23)
        refuse_conv_spe("expected realizations in [1, 2^23), got " +
                        std::to_string(options.realizations));
      if (options.method == "fourier" && options.kernel.size() != 1)
        refuse_conv_spe("expected method auto or direct on a grid, got fourier");
      return std::make_unique<ConvSpe>(options, shape);
    },
    .widest = "conv_spe:kernel=3x3x3",
});

}  // namespace
}  // namespace lagwise
