// Exact softmax attention joined with an encoding: encode, then softmax over all pairs
// with whatever tables by lag the encoding hands over. Decoding keeps every key and
// value.

#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>

#include <stdexcept>
#include <vector>

#include "lagwise/attention/kv_cache.h"
#include "lagwise/nn/mixer.h"
#include "lagwise/ops/exact_attention.h"

namespace lagwise::nn {
namespace {

/// A cache for each sequence, since they may differ in length.
struct ExactMemory : MixerState {
  std::vector<KeyValueCache> caches;
  at::Tensor key_lengths;  // of cross attention
  int64_t bytes() const override {
    int64_t sum = 0;
    for (const KeyValueCache& cache : caches)
      sum += static_cast<int64_t>(cache.keys().nbytes() + cache.values().nbytes());
    return sum;
  }
};

class ExactMixer : public Mixer {
 public:
  ExactMixer(std::string_view text, const MixerPlace& place,
             std::shared_ptr<Encoding> encoding, Layer layer)
      : place_(place), encoding_(std::move(encoding)), layer_(std::move(layer)) {
    Spec spec(text);
    const int64_t window = spec.take("window", 0);
    if (window < 0)
      throw std::invalid_argument("exact: expected window >= 0 (0: all keys), got " +
                                  std::to_string(window));
    if (window > 0) window_ = window;
    const std::string cache = spec.take_choice("cache", "float", {"float", "bf16"});
    storage_ = cache == "bf16" ? at::kBFloat16 : at::kFloat;
    spec.finish();
  }

  at::Tensor mix(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                 const Pass& pass) const override {
    const Encoded x = encoding_->encode(q, k, pass.code, layer_, pass.at);
    ops::ExactOptions options = options_of(x, pass);
    options.lengths = pass.key_lengths.defined() ? pass.key_lengths : pass.lengths;
    return ops::exact_attention(x.q, x.k, v, options);
  }

  std::unique_ptr<MixerState> start(int64_t batch) const override {
    auto memory = std::make_unique<ExactMemory>();
    memory->caches.resize(static_cast<size_t>(batch), KeyValueCache(storage_));
    return memory;
  }

  at::Tensor extend(MixerState& state, const at::Tensor& q, const at::Tensor& k,
                    const at::Tensor& v, const Pass& pass) const override {
    auto& caches = static_cast<ExactMemory&>(state).caches;
    std::vector<at::Tensor> out;
    for (int64_t b = 0; b < q.size(0); ++b) {
      const auto row = [&](const at::Tensor& x) {
        const at::Tensor one = x.narrow(0, b, 1);
        if (!pass.lengths.defined()) return one;
        return one.narrow(2, 0, pass.lengths[b].item<int64_t>());
      };
      const at::Tensor rows =
          extend_one(caches[static_cast<size_t>(b)], row(q), row(k), row(v), pass);
      at::Tensor padded = rows;
      if (rows.size(2) < q.size(2)) {
        padded = at::zeros({1, q.size(1), q.size(2), rows.size(3)}, rows.options());
        padded.narrow(2, 0, rows.size(2)).copy_(rows);
      }
      out.push_back(padded);
    }
    return at::cat(out, 0);
  }

  std::unique_ptr<MixerState> listen(const at::Tensor& k, const at::Tensor& v,
                                     const Pass& pass) const override {
    auto memory = std::make_unique<ExactMemory>();
    memory->caches.resize(1, KeyValueCache(k.scalar_type()));
    const Encoded x =
        encoding_->encode(k.narrow(2, 0, 0), k, pass.code, layer_, pass.at);
    memory->caches[0].append(x.k, v);
    memory->key_lengths = pass.key_lengths;
    return memory;
  }

  at::Tensor ask(const MixerState& heard, const at::Tensor& q,
                 const Pass& pass) const override {
    const auto& memory = static_cast<const ExactMemory&>(heard);
    const at::Tensor keys = memory.caches[0].keys();
    // Encoded again only where keys pass through untouched, for the tables by lag.
    const bool by_lag = encoding_->traits().stage == Traits::Stage::score;
    const Encoded x = encoding_->encode(q, by_lag ? keys : keys.narrow(2, 0, 0),
                                        pass.code, layer_, pass.at);
    ops::ExactOptions options = options_of(x, pass);
    options.lengths = memory.key_lengths;
    return ops::exact_attention(x.q, keys, memory.caches[0].values(), options);
  }

 private:
  ops::ExactOptions options_of(const Encoded& x, const Pass& pass) const {
    ops::ExactOptions options;
    options.causal = pass.at.causal;
    options.scale = x.scale;
    options.lag_bias = x.lag_bias;
    options.lag_keys = x.lag_keys, options.lag_values = x.lag_values;
    options.query_start = pass.at.query_start;
    options.key_start = pass.at.key_start;
    options.window = window_;
    return options;
  }

  /// The next rows of one sequence.
  at::Tensor extend_one(KeyValueCache& cache, const at::Tensor& q, const at::Tensor& k,
                        const at::Tensor& v, const Pass& pass) const {
    const int64_t past = cache.length();
    Pass here = pass;
    here.at.query_start = here.at.key_start = past;
    here.at.query_at = here.at.key_at = {};
    const bool ragged = pass.lengths.defined() || pass.at.query_at.defined();
    if (ragged)  // the code of the pass is that of other positions
      here.code = encoding_->code(here.at, pass.draw, q.size(2), k.size(2));
    Encoded x = encoding_->encode(q, k, here.code, layer_, here.at);
    cache.append(x.k, v);
    here.at.key_start = 0;
    if (encoding_->traits().stage == Traits::Stage::score)  // tables of all lags
      x = encoding_->encode(q, cache.keys().to(q.scalar_type()), here.code, layer_,
                            here.at);
    if (q.size(2) == 1) return cache.step(x, window_);
    return ops::exact_attention(x.q, cache.keys().to(q.scalar_type()),
                                cache.values().to(q.scalar_type()),
                                options_of(x, here));
  }

  MixerPlace place_;
  std::shared_ptr<Encoding> encoding_;
  Layer layer_;
  c10::optional<int64_t> window_;
  at::ScalarType storage_ = at::kFloat;
};

const RegisterMixer registered({
    .name = "exact",
    .summary = "softmax over all pairs, a cache that grows",
    .serves = [](const Traits& encoding, bool) { return encoding.exact; },
    .make = [](std::string_view text, const MixerPlace& place,
               std::shared_ptr<Encoding> encoding,
               Layer layer) -> std::unique_ptr<Mixer> {
      return std::make_unique<ExactMixer>(text, place, std::move(encoding),
                                          std::move(layer));
    },
});

}  // namespace
}  // namespace lagwise::nn
