// Linear attention joined with an encoding. Where the two meet depends on the stage the
// encoding acts at:
//
//     before the map   x -> encode -> phi -> product        (SPE; none; decay alone)
//     after it         x -> phi -> encode -> product        (RoPE, LRPE)
//
// After the map features are signed, so a denominator is formed from the features
// before the encoding.

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <stdexcept>

#include "lagwise/attention/linear.h"
#include "lagwise/nn/mixer.h"

namespace lagwise::nn {
namespace {

struct LinearMemory : MixerState {
  ops::LinearState state;
  at::Tensor k, v, key_lengths;  // for cross attention by lag, which keeps no state
  int64_t bytes() const override {
    int64_t sum = 0;
    for (const at::Tensor* x : {&state.s, &state.z, &state.m, &k, &v})
      if (x->defined()) sum += static_cast<int64_t>(x->nbytes());
    return sum;
  }
};

class LinearMixer : public Mixer {
 public:
  LinearMixer(std::string_view text, const MixerPlace& place,
              std::shared_ptr<Encoding> encoding, Layer layer)
      : attention_(text,
                   {place.shape.heads, place.shape.dim, place.shape.value_width()}),
        place_(place),
        encoding_(std::move(encoding)),
        layer_(std::move(layer)) {
    if (by_lag() && !attention_.divides())
      throw std::invalid_argument(
          "linear: expected a denominator with an encoding by lag in full attention, "
          "got denominator=none");
  }

  Parameters parameters() const override { return attention_.parameters(); }

  at::Tensor mix(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                 const Pass& pass) const override {
    const Joined x = join(q, k, v, pass);
    if (x.lag_bias.defined()) return attention_.attend_by_lag(x.inputs, x.lag_bias);
    return attention_.attend(x.inputs);
  }

  std::unique_ptr<MixerState> start(int64_t) const override {
    return std::make_unique<LinearMemory>();
  }

  at::Tensor extend(MixerState& state, const at::Tensor& q, const at::Tensor& k,
                    const at::Tensor& v, const Pass& pass) const override {
    auto& memory = static_cast<LinearMemory&>(state);
    const Joined x = join(q, k, v, pass);
    const bool one_row = q.size(2) == 1 && !pass.lengths.defined();
    if (one_row) return attention_.step(x.inputs, memory.state);
    auto [out, next] = attention_.attend(x.inputs, memory.state);
    memory.state = next;
    return out;
  }

  std::unique_ptr<MixerState> listen(const at::Tensor& k, const at::Tensor& v,
                                     const Pass& pass) const override {
    auto heard = std::make_unique<LinearMemory>();
    if (by_lag()) {
      heard->k = k, heard->v = v, heard->key_lengths = pass.key_lengths;
      return heard;
    }
    const Joined x = join(k.narrow(2, 0, 0), k, v, pass);
    heard->state = attention_.attend(x.inputs, {}).state;
    return heard;
  }

  at::Tensor ask(const MixerState& heard, const at::Tensor& q,
                 const Pass& pass) const override {
    const auto& memory = static_cast<const LinearMemory&>(heard);
    if (by_lag()) return ask_by_lag(memory, q, pass);
    const at::Tensor none = q.narrow(2, 0, 0);
    const at::Tensor no_values =
        at::zeros({q.size(0), q.size(1), 0, memory.state.s.size(3)}, q.options());
    const Joined x = join(q, none, no_values, pass);
    return attention_.attend(x.inputs, memory.state).out;
  }

 private:
  using Side = FeatureMap::Side;
  struct Joined {
    LinearInputs inputs;
    at::Tensor lag_bias;  // full attention only
  };

  /// Whether each pair gets a factor by lag (full attention, encodings on the score).
  /// It does not split into a query's and a key's part, so no state can be kept.
  bool by_lag() const {
    return !place_.causal && encoding_->traits().stage == Traits::Stage::score;
  }

  /// Goes sequence by sequence where they are at different positions, because then
  /// their lags differ.
  at::Tensor ask_by_lag(const LinearMemory& memory, const at::Tensor& q,
                        const Pass& pass) const {
    const auto mix_at = [&](const Placement& at, int64_t b, int64_t count) {
      const auto some = [&](const at::Tensor& x) {
        return x.defined() ? x.narrow(0, b, count) : x;
      };
      Pass here;
      here.at = at, here.draw = pass.draw;
      here.key_lengths = some(memory.key_lengths);
      here.code = encoding_->code(at, pass.draw, q.size(2), memory.k.size(2));
      return mix(some(q), some(memory.k), some(memory.v), here);
    };
    if (pass.starts.empty()) return mix_at(pass.at, 0, q.size(0));
    std::vector<at::Tensor> out;
    for (int64_t b = 0; b < q.size(0); ++b)
      out.push_back(mix_at(placement_of(pass, b), b, 1));
    return at::cat(out, 0);
  }

  Joined join(const at::Tensor& raw_q, const at::Tensor& raw_k, const at::Tensor& v,
              const Pass& pass) const {
    const bool after = encoding_->traits().stage == Traits::Stage::after_map;
    const at::Tensor directions = attention_.map().directions(
        pass.draw, place_.layer, after ? place_.shape.dim : encoding_->width(),
        raw_q.options());
    Joined x;
    LinearInputs& to = x.inputs;
    to.v = v, to.causal = pass.at.causal;
    to.lengths = pass.lengths, to.key_lengths = pass.key_lengths;
    if (to.key_lengths.defined() && !to.lengths.defined())
      to.lengths = at::full({raw_q.size(0)}, raw_q.size(2), at::kLong);
    const at::Tensor q = attention_.add_bias(raw_q, Side::query);
    const at::Tensor k = attention_.add_bias(raw_k, Side::key);
    const auto features = [&](const at::Tensor& rows, Side side) {
      return attention_.features(rows, side, pass.at, directions);
    };
    Encoded encoded;
    if (after) {
      to.q = features(q, Side::query), to.k = features(k, Side::key);
      encoded = encode_rows(*encoding_, to.q.x, to.k.x, layer_, pass);
      if (encoding_->traits().denominator == Traits::Denominator::separate)
        to.q_norm = to.q, to.k_norm = to.k;
      to.q.x = encoded.q, to.k.x = encoded.k;
    } else {
      encoded = encode_rows(*encoding_, q, k, layer_, pass);
      to.mapped = by_lag() || !attention_.fuses();
      to.q = to.mapped ? features(encoded.q, Side::query) : Features{encoded.q, {}};
      to.k = to.mapped ? features(encoded.k, Side::key) : Features{encoded.k, {}};
    }
    if (pass.at.causal) to.decay = encoded.decay;
    if (by_lag()) x.lag_bias = encoded.lag_bias;
    return x;
  }

  LinearAttention attention_;
  MixerPlace place_;
  std::shared_ptr<Encoding> encoding_;
  Layer layer_;
};

const RegisterMixer registered({
    .name = "linear",
    .summary = "linear time, a state of constant size",
    .options = [] { return LinearAttention("linear", {}).options(); },
    .serves =
        [](const Traits& encoding, bool causal) {
          return causal ? encoding.linear_causal : encoding.linear_full;
        },
    .feature_width =
        [](std::string_view text, int64_t dim) {
          return LinearAttention(text, {1, dim}).map().width(dim);
        },
    .make = [](std::string_view text, const MixerPlace& place,
               std::shared_ptr<Encoding> encoding,
               Layer layer) -> std::unique_ptr<Mixer> {
      return std::make_unique<LinearMixer>(text, place, std::move(encoding),
                                           std::move(layer));
    },
});

}  // namespace
}  // namespace lagwise::nn
