// Exact softmax attention joined with an encoding: encode, then softmax over all pairs
// with whatever tables by lag the encoding hands over. Decoding keeps every key and
// value.

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "lagwise/attention/kv_cache.h"
#include "lagwise/nn/mixer.h"
#include "lagwise/ops/exact_attention.h"

namespace lagwise::nn {
namespace {

/// One cache for each sequence, since they may differ in length; in cross attention one
/// cache for the whole batch.
struct ExactMemory : MixerState {
  std::vector<KeyValueCache> caches;
  at::Tensor key_lengths;  // [B] in cross attention
  int64_t bytes() const override {
    int64_t sum = 0;
    for (const KeyValueCache& cache : caches)
      if (cache.length() > 0)
        sum += static_cast<int64_t>(cache.keys().nbytes() + cache.values().nbytes());
    return sum;
  }
};

/// Rows [0, count) of sequence b, [1, H, count, ..].
int64_t length_of(const at::Tensor& lengths, int64_t b, int64_t all) {
  return lengths.defined() ? lengths[b].item<int64_t>() : all;
}

class ExactMixer : public Mixer {
 public:
  ExactMixer(Spec& spec, std::shared_ptr<Encoding> encoding, Layer layer)
      : encoding_(std::move(encoding)), layer_(std::move(layer)) {
    const int64_t window = spec.take("window", 0);
    if (window < 0)
      throw std::invalid_argument("exact: expected window >= 0 (0: all keys), got " +
                                  std::to_string(window));
    if (window > 0) window_ = window;
    half_ = spec.take_choice("cache", "full", {"full", "bf16"}) == "bf16";
    spec.finish();
  }

  /// q . k has deviation sqrt(D); an encoding whose scale does not take that out (T5's
  /// is 1) wants smaller queries. Only those on the score hand on the rows as they
  /// are; the scale of the others belongs to what they make of the rows.
  double query_gain() const override {
    if (encoding_->traits().stage != Traits::Stage::score) return 1;
    const at::NoGradGuard no_graph;
    const HeadShape& shape = encoding_->shape();
    const at::Tensor row = at::zeros({1, shape.heads, 1, shape.dim}, at::kFloat);
    const double scale = encode_once(*encoding_, row, row, {}, {}, &layer_).scale;
    return 1.0 / std::sqrt(static_cast<double>(shape.dim)) / scale;
  }

  at::Tensor mix(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                 const Pass& pass) const override {
    const Encoded x = encode_rows(*encoding_, q, k, layer_, pass);
    if (pass.key_lengths.defined()) return mix_each(x, v, pass);
    ops::ExactOptions options = options_of(x, pass.at);
    options.lengths = pass.lengths;
    return ops::exact_attention(x.q, x.k, v, options);
  }

  std::unique_ptr<MixerState> start(int64_t) const override {
    return std::make_unique<ExactMemory>();
  }

  at::Tensor extend(MixerState& state, const at::Tensor& q, const at::Tensor& k,
                    const at::Tensor& v, const Pass& pass) const override {
    auto& caches = static_cast<ExactMemory&>(state).caches;
    if (caches.empty())
      caches.resize(static_cast<size_t>(q.size(0)),
                    KeyValueCache(half_ ? at::kBFloat16 : q.scalar_type()));
    const Encoded x = encode_rows(*encoding_, q, k, layer_, pass);
    const at::Tensor out =
        at::zeros({q.size(0), q.size(1), q.size(2), v.size(3)}, q.options());
    for (int64_t b = 0; b < q.size(0); ++b) {
      const int64_t rows = length_of(pass.lengths, b, q.size(2));
      KeyValueCache& cache = caches[static_cast<size_t>(b)];
      cache.append(sequence(x.k, b, rows), sequence(v, b, rows));
      if (rows == 0) continue;
      Encoded one{.q = sequence(x.q, b, rows), .k = cache.keys(), .scale = x.scale};
      Placement at = pass.at;
      at.query_start = cache.length() - rows, at.key_start = 0;
      at.query_at = at.key_at = at::Tensor();
      if (by_lag(x))
        one = with_tables(sequence(q, b, rows), cache.length(), at, pass.draw);
      sequence(out, b, rows).copy_(ask_cache(cache, one, at));
    }
    return out;
  }

  std::unique_ptr<MixerState> listen(const at::Tensor& k, const at::Tensor& v,
                                     const Pass& pass) const override {
    auto memory = std::make_unique<ExactMemory>();
    memory->caches.resize(1, KeyValueCache(k.scalar_type()));
    memory->caches[0].append(
        encode_rows(*encoding_, k.narrow(2, 0, 0), k, layer_, pass).k, v);
    memory->key_lengths = pass.key_lengths;
    return memory;
  }

  at::Tensor ask(const MixerState& heard, const at::Tensor& q,
                 const Pass& pass) const override {
    const auto& memory = static_cast<const ExactMemory&>(heard);
    const at::Tensor keys = memory.caches[0].keys(), values = memory.caches[0].values();
    const Encoded x = encode_rows(*encoding_, q, q.narrow(2, 0, 0), layer_, pass);
    std::vector<at::Tensor> out;
    for (int64_t b = 0; b < q.size(0); ++b) {
      const int64_t m = length_of(memory.key_lengths, b, keys.size(2));
      const Placement at = pass.starts.empty() ? pass.at : placement_of(pass, b);
      Encoded one{.q = x.q.narrow(0, b, 1), .k = {}, .scale = x.scale};
      if (by_lag(x)) one = with_tables(q.narrow(0, b, 1), m, at, pass.draw);
      out.push_back(ops::exact_attention(one.q, sequence(keys, b, m),
                                         sequence(values, b, m), options_of(one, at)));
    }
    return at::cat(out, 0);
  }

 private:
  ops::ExactOptions options_of(const Encoded& x, const Placement& at) const {
    ops::ExactOptions options;
    options.causal = at.causal;
    options.scale = x.scale;
    options.lag_bias = x.lag_bias;
    options.lag_keys = x.lag_keys, options.lag_values = x.lag_values;
    options.query_start = at.query_start;
    options.key_start = at.key_start;
    options.window = window_;
    return options;
  }

  static bool by_lag(const Encoded& x) {
    return x.lag_bias.defined() || x.lag_keys.defined() || x.lag_values.defined();
  }

  /// Encodes raw queries q [1, H, N, D] and makes the tables of their lags to `keys`
  /// keys. The keys themselves are encoded already; tables depend on their number alone.
  Encoded with_tables(const at::Tensor& q, int64_t keys, const Placement& at,
                      const Draw& draw) const {
    const at::Tensor blank =
        at::zeros({1, q.size(1), 1, q.size(3)}, q.options()).expand({1, -1, keys, -1});
    const Code code = encoding_->code(at, draw, q.size(2), keys);
    return encoding_->encode(q, blank, code, layer_, at);
  }

  at::Tensor ask_cache(const KeyValueCache& cache, const Encoded& x,
                       const Placement& at) const {
    if (x.q.size(2) == 1) return cache.step(x, window_);
    const at::ScalarType type = x.q.scalar_type();
    return ops::exact_attention(x.q, cache.keys().to(type), cache.values().to(type),
                                options_of(x, at));
  }

  /// Cross attention over keys of different lengths m <= M: sequence by sequence. Entry
  /// (i - j) + (M - 1) of a table by lag becomes entry (i - j) + (m - 1).
  at::Tensor mix_each(const Encoded& x, const at::Tensor& v, const Pass& pass) const {
    std::vector<at::Tensor> out;
    const int64_t n = x.q.size(2), all = x.k.size(2);
    for (int64_t b = 0; b < x.q.size(0); ++b) {
      const int64_t m = length_of(pass.key_lengths, b, all);
      const auto cut = [&](at::Tensor& table) {
        if (table.defined())
          table = table.narrow(1, all - m, std::max<int64_t>(0, n + m - 1));
      };
      ops::ExactOptions options = options_of(x, pass.at);
      cut(options.lag_bias), cut(options.lag_keys), cut(options.lag_values);
      out.push_back(ops::exact_attention(x.q.narrow(0, b, 1), sequence(x.k, b, m),
                                         sequence(v, b, m), options));
    }
    return at::cat(out, 0);
  }

  std::shared_ptr<Encoding> encoding_;
  Layer layer_;
  c10::optional<int64_t> window_;
  bool half_ = false;  // keys and values kept in bf16
};

const RegisterMixer exact_registered({
    .name = "exact",
    .summary = "softmax over all pairs, a cache that grows",
    .options =
        [] {
          Spec spec("exact");
          const ExactMixer made(spec, nullptr, {});
          return spec.options();
        },
    .serves = [](const Traits& encoding, bool) { return encoding.exact; },
    .feature_width = [](std::string_view, int64_t dim) { return dim; },
    .make = [](std::string_view text, const MixerPlace&,
               std::shared_ptr<Encoding> encoding,
               Layer layer) -> std::unique_ptr<Mixer> {
      Spec spec(text);
      return std::make_unique<ExactMixer>(spec, std::move(encoding), std::move(layer));
    },
});

}  // namespace
}  // namespace lagwise::nn
