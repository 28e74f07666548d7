// Linear attention joined with an encoding. Where the two meet depends on the stage the
// encoding acts at:
//
//     before the map   x -> encode -> phi -> product        (SPE; none; decay alone)
//     after it         x -> phi -> encode -> product        (RoPE, LRPE)
//
// After the map features are signed, so a denominator is formed from the features
// before the encoding.
//
// A bias by lag is a factor for every lag. Where it is a constant factor per step and
// attention is causal, the encoding hands it over as a decay of the state. All others
// do not split into a query's and a key's part: they take O(N log N) by FFT, with zeros
// ahead where attention is causal, and decoding keeps every key and value.

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "lagwise/attention/kv_cache.h"
#include "lagwise/attention/linear.h"
#include "lagwise/nn/mixer.h"

namespace lagwise::nn {
namespace {

struct LinearMemory : MixerState {
  ops::LinearState state;
  at::Tensor k, v, key_lengths;  // of cross attention by lag, which has no state

  /// The past of one sequence in self attention by lag: features and values of its
  /// rows.
  struct Past {
    KeyValueCache rows;
    at::Tensor log_scale;  // [1, H, length], of features that have one
  };
  std::vector<Past> pasts;
  bool by_lag = false;

  void reorder(const at::Tensor& order) override {
    for (at::Tensor* x : {&state.s, &state.z, &state.m, &k, &v, &key_lengths})
      if (x->defined()) *x = x->index_select(0, order);
    pasts = reordered(pasts, order, [](const Past& past) {
      return Past{past.rows.copied(), past.log_scale};
    });
  }

  ops::LinearState* constant_size() override { return by_lag ? nullptr : &state; }

  int64_t bytes() const override {
    int64_t sum = 0;
    const auto add = [&](const at::Tensor& x) {
      if (x.defined()) sum += static_cast<int64_t>(x.nbytes());
    };
    for (const at::Tensor* x : {&state.s, &state.z, &state.m, &k, &v}) add(*x);
    for (const Past& past : pasts) {
      add(past.log_scale);
      if (past.rows.length() > 0) add(past.rows.keys()), add(past.rows.values());
    }
    return sum;
  }
};

/// Rows [0, count) of sequence b, [1, H, count, ..]; undefined stays so.
Features some_rows(const Features& x, int64_t from, int64_t to) {
  return {x.x.slice(2, from, to),
          x.log_scale.defined() ? x.log_scale.slice(2, from, to) : x.log_scale};
}

Features features_of(const Features& x, int64_t b, int64_t count) {
  return {sequence(x.x, b, count), sequence(x.log_scale, b, count)};
}

/// A table by lag [H, lags] with its first `count` lags hidden: exp(-inf) = 0.
at::Tensor hide_first(const at::Tensor& lag_bias, int64_t count) {
  count = std::clamp<int64_t>(count, 0, lag_bias.size(1));
  const at::Tensor nothing =
      at::full({lag_bias.size(0), count}, -std::numeric_limits<double>::infinity(),
               lag_bias.options().requires_grad(false));
  return at::cat({nothing, lag_bias.slice(1, count)}, 1);
}

/// How many of the rows [from, to) are real, by the length of each sequence.
at::Tensor lengths_within(const at::Tensor& lengths, int64_t from, int64_t to) {
  return lengths.defined() ? (lengths - from).clamp(0, to - from) : lengths;
}

/// Whether a gradient is wanted of a call, in which a step would write into its state.
bool has_graph(const LinearInputs& x, const ops::LinearState& state) {
  if (!at::GradMode::is_enabled()) return false;
  for (const at::Tensor* one : {&x.q.x, &x.k.x, &x.v, &x.decay, &x.log_decay,
                                &x.write_strength, &state.s, &state.z})
    if (one->defined() && one->requires_grad()) return true;
  return false;
}

std::string cannot_say_one_token() {
  std::string text = "expected an encoding that acts on one token alone, one of ";
  for (const std::string& each : encodings_of_one_token())
    text += (text.ends_with("of ") ? "" : ", ") + each;
  return text;
}

class LinearMixer : public Mixer {
 public:
  LinearMixer(std::string_view text, const MixerPlace& place,
              std::shared_ptr<Encoding> encoding, Layer layer)
      : attention_(text, place.shape),
        place_(place),
        encoding_(std::move(encoding)),
        layer_(std::move(layer)) {
    if (by_lag() && !attention_.divides())
      throw std::invalid_argument(
          "linear: expected a denominator with an encoding by lag, whose weights are "
          "divided by their sum, got denominator=none");
    if (by_lag() && (memory().forgets || memory().rewrites))
      throw std::invalid_argument(
          "linear: expected an encoding that hands over a decay or acts on queries and "
          "keys with forget=gated or write=delta, got one by lag, which has no state");
  }

  Parameters parameters() const override { return attention_.parameters(); }

  MemoryOptions memory() const override { return attention_.memory(); }

  RowBias row_bias() const override {
    return {attention_.bias(Side::query), attention_.bias(Side::key)};
  }

  ops::InputNorm head_norm() const override {
    return attention_.output_norm().before_layer();
  }

  bool draws() const override {
    return encoding_->traits().stochastic ||
           attention_.map()
               .directions({}, place_.layer, place_.shape.dim, at::kFloat)
               .defined();
  }

  at::Tensor mix(const HeadRows& rows, const Pass& pass) const override {
    const Joined x = join(rows, pass);
    if (by_lag() && pass.peers != nullptr)
      throw std::invalid_argument(
          "linear: expected an encoding that leaves a state where ranks share a "
          "sequence, got one by lag, whose FFT needs all rows; use exact attention");
    if (pass.peers != nullptr) return attention_.attend(x.inputs, *pass.peers).out;
    if (!by_lag()) return attention_.attend(x.inputs);
    if (!pass.at.causal) return attention_.attend_by_lag(x.inputs, x.lag_bias);
    return attend_past_by_lag(x.inputs, x.lag_bias,
                              pass.at.query_start - pass.at.key_start);
  }

  OneTokenLayer one_token(const Draw& draw, int64_t horizon) const override {
    const auto place =
        by_lag() ? std::nullopt : encoding_->one_token(layer_, draw, horizon);
    if (!place) throw std::invalid_argument(cannot_say_one_token());
    const Traits& traits = encoding_->traits();
    const bool after = traits.stage == Traits::Stage::after_map;
    const int64_t mapped = after ? place_.shape.dim : encoding_->width();
    OneTokenLayer layer{*place,
                        attention_.one_token(draw, place_.layer, mapped, horizon)};
    layer.place.after_map = after;
    layer.place.separate = after && traits.denominator == Traits::Denominator::separate;
    return layer;
  }

  std::unique_ptr<MixerState> start(int64_t) const override {
    auto memory = std::make_unique<LinearMemory>();
    memory->by_lag = by_lag();
    return memory;
  }

  at::Tensor extend(MixerState& state, const HeadRows& rows,
                    const Pass& pass) const override {
    auto& memory = static_cast<LinearMemory&>(state);
    const Joined x = join(rows, pass);
    if (by_lag()) return extend_by_lag(memory, rows.q, x.inputs, pass);
    const bool one_row = rows.q.size(2) == 1 && !pass.lengths.defined() &&
                         !has_graph(x.inputs, memory.state);
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
    const Joined x = join({k.narrow(2, 0, 0), k, v}, pass);
    heard->state = attention_.attend(x.inputs, ops::LinearState()).state;
    return heard;
  }

  at::Tensor ask(const MixerState& heard, const at::Tensor& q,
                 const Pass& pass) const override {
    const auto& memory = static_cast<const LinearMemory&>(heard);
    if (by_lag()) return ask_by_lag(memory, q, pass);
    const at::Tensor none = q.narrow(2, 0, 0);
    const at::Tensor no_values =
        at::zeros({q.size(0), q.size(1), 0, memory.state.s.size(3)}, q.options());
    const Joined x = join({q, none, no_values}, pass);
    return attention_.attend(x.inputs, memory.state).out;
  }

 private:
  using Side = FeatureMap::Side;
  struct Joined {
    LinearInputs inputs;
    at::Tensor lag_bias;  // where by_lag()
  };

  /// A factor for every lag, but for a decay in causal attention, does not split and
  /// keeps no state.
  bool by_lag() const {
    const Traits& traits = encoding_->traits();
    return traits.by_lag && !(place_.causal && traits.decays);
  }

  /// Causal attention by lag of queries that stand `shift` after the keys; the table
  /// covers all N queries and M keys. An FFT has errors relative to the largest sum of
  /// its rows, and sums grow along a sequence: so each call takes no more queries than
  /// there are keys before them, and rows never see one of more than twice their past.
  at::Tensor attend_past_by_lag(const LinearInputs& x, const at::Tensor& lag_bias,
                                int64_t shift) const {
    constexpr int64_t kLeast = 64;
    const int64_t n = x.q.x.size(2), all = x.k.x.size(2);
    if (n == 0) return attention_.attend_by_lag(x, lag_bias);
    std::vector<at::Tensor> out;
    for (int64_t from = 0, to = 0; from < n; from = to) {
      to = std::min(n, from + std::max(kLeast, shift + from));
      const int64_t m = std::clamp<int64_t>(shift + to, 0, all);
      LinearInputs some;
      some.causal = false, some.normed = x.normed;
      some.q = some_rows(x.q, from, to);
      some.k = some_rows(x.k, 0, m), some.v = x.v.slice(2, 0, m);
      some.lengths = lengths_within(x.lengths, from, to);
      some.key_lengths =
          lengths_within(x.key_lengths.defined() ? x.key_lengths : x.lengths, 0, m);
      const int64_t first = from + all - m;  // column of the first lag of these rows
      const at::Tensor table =
          lag_bias.slice(1, first, first + std::max<int64_t>(0, to - from + m - 1));
      out.push_back(
          attention_.attend_by_lag(some, hide_first(table, m - 1 - (shift + from))));
    }
    return at::cat(out, 2);
  }

  /// The next rows of each sequence over all its rows so far, whose features are kept.
  /// q: raw, for the encoding; `rows`: the same rows joined.
  at::Tensor extend_by_lag(LinearMemory& memory, const at::Tensor& q,
                           const LinearInputs& rows, const Pass& pass) const {
    using Past = LinearMemory::Past;
    if (memory.pasts.empty())
      memory.pasts.resize(static_cast<size_t>(q.size(0)),
                          Past{KeyValueCache(q.scalar_type()), {}});
    const at::Tensor out =
        at::zeros({q.size(0), q.size(1), q.size(2), rows.v.size(3)}, q.options());
    for (int64_t b = 0; b < q.size(0); ++b) {
      const int64_t n =
          pass.lengths.defined() ? pass.lengths[b].item<int64_t>() : q.size(2);
      Past& past = memory.pasts[static_cast<size_t>(b)];
      const Features keys = features_of(rows.k, b, n);
      past.rows.append(keys.x, sequence(rows.v, b, n));
      if (keys.log_scale.defined())
        past.log_scale = past.log_scale.defined()
                             ? at::cat({past.log_scale, keys.log_scale}, 2)
                             : keys.log_scale.clone();
      if (n == 0) continue;
      const int64_t m = past.rows.length();
      Placement at = pass.at;
      at.query_start = m - n, at.key_start = 0;
      at.query_at = at.key_at = at::Tensor();
      LinearInputs inputs;
      inputs.normed = rows.normed;
      inputs.q = features_of(rows.q, b, n);
      inputs.k = {with_graph(past.rows.keys(), keys.x), past.log_scale};
      inputs.v = with_graph(past.rows.values(), sequence(rows.v, b, n));
      sequence(out, b, n).copy_(attend_past_by_lag(
          inputs, lag_bias_of(sequence(q, b, n), m, at, pass.draw), m - n));
    }
    return out;
  }

  /// The table of raw queries q [1, H, N, D] and m keys, on which it depends by their
  /// number alone.
  at::Tensor lag_bias_of(const at::Tensor& q, int64_t m, const Placement& at,
                         const Draw& draw) const {
    const at::Tensor blank =
        at::zeros({1, q.size(1), 1, q.size(3)}, q.options()).expand({1, -1, m, -1});
    const Code code = encoding_->code(at, draw, q.size(2), m);
    return encoding_->encode(q, blank, code, layer_, at).lag_bias;
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
      return mix({some(q), some(memory.k), some(memory.v)}, here);
    };
    if (pass.starts.empty()) return mix_at(pass.at, 0, q.size(0));
    std::vector<at::Tensor> out;
    for (int64_t b = 0; b < q.size(0); ++b)
      out.push_back(mix_at(placement_of(pass, b), b, 1));
    return at::cat(out, 0);
  }

  Joined join(const HeadRows& rows, const Pass& pass) const {
    const bool after = encoding_->traits().stage == Traits::Stage::after_map;
    const at::Tensor directions = attention_.map().directions(
        pass.draw, place_.layer, after ? place_.shape.dim : encoding_->width(),
        rows.q.options());
    Joined x;
    LinearInputs& to = x.inputs;
    to.v = rows.v, to.causal = pass.at.causal, to.normed = false;
    to.log_decay = rows.log_decay, to.write_strength = rows.write_strength;
    to.lengths = pass.lengths, to.key_lengths = pass.key_lengths;
    if (to.key_lengths.defined() && !to.lengths.defined())
      to.lengths = at::full({rows.q.size(0)}, rows.q.size(2), at::kLong);
    const at::Tensor &q = rows.q, &k = rows.k;
    const auto features = [&](const at::Tensor& of, Side side) {
      return attention_.features(of, side, pass.at, directions);
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
      to.mapped = by_lag() || memory().rewrites || !attention_.fuses();
      to.q = to.mapped ? features(encoded.q, Side::query) : Features{encoded.q, {}};
      to.k = to.mapped ? features(encoded.k, Side::key) : Features{encoded.k, {}};
    }
    if (pass.at.causal) to.decay = encoded.decay;
    if (by_lag()) x.lag_bias = encoded.lag_bias, to.causal = false;
    return x;
  }

  LinearAttention attention_;
  MixerPlace place_;
  std::shared_ptr<Encoding> encoding_;
  Layer layer_;
};

const RegisterMixer linear_registered({
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
