// Exact softmax attention joined with an encoding: encode, then softmax over all pairs
// with whatever tables by lag the encoding hands over. Decoding keeps every key and
// value, or under a window the last ones.
//
// A forget gate with logs l multiplies the weight of key j for query i by
// e^(l_(j+1) + ... + l_i) = e^(c_i - c_j), c_j = l_1 + ... + l_j. A softmax does not see
// what all keys of a query share, so -c_j as a bias of key j is the whole gate
// (Lin et al., "Forgetting Transformer", 2025, arXiv:2503.02130).

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "lagwise/attention/kv_cache.h"
#include "lagwise/nn/mixer.h"
#include "lagwise/ops/exact_attention.h"
#include "lagwise/ops/peer_rows.h"
#include "lagwise/ops/torch_names.h"

namespace lagwise::nn {
namespace {

/// The rows of one sequence, since they may differ in length; in cross attention of the
/// whole batch.
struct ExactPast {
  KeyValueCache rows;
  at::Tensor gates;  // [1, H, length] in f64: c_j of the rows kept, with forget=gated

  void add_gates(const at::Tensor& log_decay);
  void keep_last(int64_t count);
  at::Tensor key_bias(int64_t n, at::ScalarType type) const;
};

struct ExactMemory : MixerState {
  std::vector<ExactPast> pasts;
  at::Tensor key_lengths;  // [B] in cross attention

  void reorder(const at::Tensor& order) override {
    if (key_lengths.defined()) key_lengths = key_lengths.index_select(0, order);
    if (of_whole_batch) {
      for (ExactPast& past : pasts) past.rows.reorder(order);
      return;
    }
    pasts = reordered(pasts, order, [](const ExactPast& past) {
      return ExactPast{past.rows.copied(), past.gates};
    });
  }

  bool of_whole_batch = false;  // in cross attention
  int64_t bytes() const override {
    size_t sum = 0;
    for (const ExactPast& past : pasts) {
      if (past.gates.defined()) sum += past.gates.nbytes();
      if (past.rows.length() > 0)
        sum += past.rows.keys().nbytes() + past.rows.values().nbytes();
    }
    return static_cast<int64_t>(sum);
  }
};

/// l [1, H, n] of the next n rows.
void ExactPast::add_gates(const at::Tensor& log_decay) {
  const at::Tensor c = log_decay.to(at::kDouble).cumsum(2);
  const bool first = !gates.defined() || gates.size(2) == 0;
  gates = first ? c : at::cat({gates, c + gates.narrow(2, gates.size(2) - 1, 1)}, 2);
}

void ExactPast::keep_last(int64_t count) {
  rows.keep_last(count);
  if (gates.defined() && gates.size(2) > count)
    gates = gates.narrow(2, gates.size(2) - count, count).clone();
}

/// -c_j relative to the first of the last n rows: that one is no query's future, and
/// near keys have a bias near 0 however long the past.
at::Tensor ExactPast::key_bias(int64_t n, at::ScalarType type) const {
  if (!gates.defined()) return gates;
  return (gates.narrow(2, gates.size(2) - n, 1).detach() - gates).to(type);
}

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
    memory_ = take_memory_options(spec, /*state=*/false);
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

  MemoryOptions memory() const override { return memory_; }

  bool draws() const override { return encoding_->traits().stochastic; }

  at::Tensor mix(const HeadRows& rows, const Pass& pass) const override {
    const Encoded x = encode_rows(*encoding_, rows.q, rows.k, layer_, pass);
    if (pass.peers != nullptr) return mix_together(rows, x, pass);
    if (pass.key_lengths.defined()) return mix_each(x, rows.v, pass);
    ops::ExactOptions options = options_of(x, pass.at);
    options.lengths = pass.lengths;
    if (rows.log_decay.defined()) options.key_bias = -rows.log_decay.cumsum(2);
    return ops::exact_attention(x.q, x.k, rows.v, options);
  }

  std::unique_ptr<MixerState> start(int64_t) const override {
    return std::make_unique<ExactMemory>();
  }

  at::Tensor extend(MixerState& state, const HeadRows& rows,
                    const Pass& pass) const override {
    auto& pasts = static_cast<ExactMemory&>(state).pasts;
    const at::Tensor& q = rows.q;
    if (pasts.empty())
      pasts.resize(static_cast<size_t>(q.size(0)),
                   {KeyValueCache(half_ ? at::kBFloat16 : q.scalar_type()), {}});
    const Encoded x = encode_rows(*encoding_, q, rows.k, layer_, pass);
    const at::Tensor out =
        at::zeros({q.size(0), q.size(1), q.size(2), rows.v.size(3)}, q.options());
    for (int64_t b = 0; b < q.size(0); ++b) {
      const int64_t n = length_of(pass.lengths, b, q.size(2));
      if (n == 0) continue;
      ExactPast& past = pasts[static_cast<size_t>(b)];
      const at::Tensor k = sequence(x.k, b, n), v = sequence(rows.v, b, n);
      past.rows.append(k, v);
      if (rows.log_decay.defined()) past.add_gates(sequence(rows.log_decay, b, n));
      Encoded one{.q = sequence(x.q, b, n), .k = {}, .scale = x.scale};
      Placement at = pass.at;
      at.query_start = past.rows.seen() - n;
      at.key_start = past.rows.seen() - past.rows.length();
      at.query_at = at.key_at = at::Tensor();
      if (by_lag(x))
        one = with_tables(sequence(q, b, n), past.rows.length(), at, pass.draw);
      sequence(out, b, n).copy_(ask_past(past, one, k, v, at));
      if (window_) past.keep_last(*window_);
    }
    return out;
  }

  std::unique_ptr<MixerState> listen(const at::Tensor& k, const at::Tensor& v,
                                     const Pass& pass) const override {
    auto memory = std::make_unique<ExactMemory>();
    memory->pasts.resize(1, {KeyValueCache(k.scalar_type()), {}});
    memory->pasts[0].rows.append(
        encode_rows(*encoding_, k.narrow(2, 0, 0), k, layer_, pass).k, v);
    memory->key_lengths = pass.key_lengths;
    memory->of_whole_batch = true;
    return memory;
  }

  at::Tensor ask(const MixerState& heard, const at::Tensor& q,
                 const Pass& pass) const override {
    const auto& memory = static_cast<const ExactMemory&>(heard);
    const KeyValueCache& cache = memory.pasts[0].rows;
    const at::Tensor keys = cache.keys(), values = cache.values();
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

  /// The queries of x over all rows kept, the last of which are k and v.
  at::Tensor ask_past(const ExactPast& past, const Encoded& x, const at::Tensor& k,
                      const at::Tensor& v, const Placement& at) const {
    const at::ScalarType type = x.q.scalar_type();
    const at::Tensor key_bias = past.key_bias(x.q.size(2), type);
    const bool graph = at::GradMode::is_enabled() && x.q.requires_grad();
    if (x.q.size(2) == 1 && !graph) return past.rows.step(x, window_, key_bias);
    ops::ExactOptions options = options_of(x, at);
    options.key_bias = key_bias;
    return ops::exact_attention(x.q, with_graph(past.rows.keys(), k).to(type),
                                with_graph(past.rows.values(), v).to(type), options);
  }

  /// Where each of the peers has some of the rows: the queries of this rank over the
  /// gathered keys and values of all, when causal of those up to its own. Tables by lag
  /// and positions are those of a query in the middle of a text, as in decoding.
  at::Tensor mix_together(const HeadRows& rows, const Encoded& x,
                          const Pass& pass) const {
    const int rank = pass.peers->rank();
    const int64_t d = x.k.size(3), e = rows.v.size(3);
    std::vector<at::Tensor> parts = {x.k, rows.v};
    if (rows.log_decay.defined()) parts.push_back(rows.log_decay.unsqueeze(3));
    const int seen_ranks = pass.at.causal ? rank + 1 : pass.peers->size();
    const int64_t seen = ops::rows_to(pass.shards, seen_ranks);
    const at::Tensor all = ops::gather_rows(*pass.peers, pass.shards, at::cat(parts, 3))
                               .narrow(2, 0, seen);
    Placement at = pass.at;
    at.key_start = at.query_start - ops::rows_to(pass.shards, rank);
    ops::ExactOptions options = options_of(x, at);
    if (by_lag(x)) {
      const Encoded tables = with_tables(rows.q.narrow(0, 0, 1), seen, at, pass.draw);
      options.lag_bias = tables.lag_bias;
      options.lag_keys = tables.lag_keys, options.lag_values = tables.lag_values;
    }
    if (rows.log_decay.defined()) options.key_bias = -all.select(3, d + e).cumsum(2);
    if (pass.lengths.defined()) {
      options.lengths = pass.lengths;
      options.key_lengths =
          pass.peers->gather(pass.lengths).narrow(0, 0, seen_ranks).sum(0);
    }
    return ops::exact_attention(x.q, all.narrow(3, 0, d), all.narrow(3, d, e), options);
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
  ops::Optional<int64_t> window_;
  bool half_ = false;  // keys and values kept in bf16
  MemoryOptions memory_;
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
