// Linear attention over ranks equals that of one process: results, last states and every
// gradient, for all kinds of memory, ragged, uneven and empty shards. All in double.

#include "lagwise/attention/shared_state.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <torch/csrc/autograd/autograd.h>

#include <atomic>
#include <cmath>
#include <span>

#include "lagwise/dist/thread_peers.h"
#include "lagwise/ops/peer_rows.h"
#include "lagwise/ops/recompute.h"

namespace lagwise {
namespace {

using at::Tensor;
using dist::run_together;
using dist::ThreadPeers;
using Shards = std::vector<int64_t>;

constexpr int64_t kBatch = 2, kHeads = 2, kKeys = 3, kValues = 4, kNorm = 5;

/// A call of n rows, or a part of one.
struct Problem {
  Tensor q, k, v;
  ops::LinearOptions options;

  /// Tensors that have a gradient; undefined where this call has none.
  std::vector<Tensor*> by_row() {
    return {&q,
            &k,
            &v,
            &options.q_norm,
            &options.k_norm,
            &options.log_scale,
            &options.log_decay,
            &options.write_strength};
  }

  /// Rows [from, to), every tensor a leaf of a graph.
  Problem part(int64_t from, int64_t to) const {
    Problem some = *this;
    for (Tensor* x : some.by_row())
      if (x->defined())
        *x = x->slice(2, from, to).detach().clone().requires_grad_(true);
    Tensor& decay = some.options.decay;
    if (decay.defined())
      decay = decay.detach().clone().requires_grad_(!options.log_scale.defined());
    if (options.lengths.defined())
      some.options.lengths = (options.lengths - from).clamp(0, to - from);
    return some;
  }
};

/// Every kind by name, to be told from each other when one fails.
struct Kind {
  const char* name;
  void (*set)(Problem&);
};

Tensor random(at::IntArrayRef sizes) { return at::randn(sizes, at::kDouble); }

Tensor gates(const Problem& x) {
  return -at::rand({kBatch, kHeads, x.q.size(2)}, at::kDouble);
}

void set_borders(Problem& x) {
  x.options.log_decay = gates(x);
  for (const int64_t row : {0, 3, 4, 9})
    if (row < x.q.size(2))
      x.options.log_decay.select(2, row).select(0, row % 2).fill_(-INFINITY);
}
void set_delta(Problem& x) {
  x.options.feature_map = "none", x.options.denominator = "none";
  x.k = x.k / x.k.norm(2, {3}, true);
  x.options.write_strength = 2 * at::rand({kBatch, kHeads, x.q.size(2)}, at::kDouble);
}
void set_head_decay(Problem& x) { x.options.decay = -at::rand({kHeads}, at::kDouble); }
void set_channel_decay(Problem& x) {
  x.options.decay = -at::rand({kHeads, kKeys}, at::kDouble);
}
void set_scale(Problem& x) {
  x.options.feature_map = "none", x.options.eps = 0;
  x.q = x.q.abs(), x.k = x.k.abs();
  x.options.log_scale = 30 * random({kBatch, kHeads, x.q.size(2)});
}
void set_norm(Problem& x) {
  x.options.denominator = "separate";
  x.options.q_norm = random({kBatch, kHeads, x.q.size(2), kNorm});
  x.options.k_norm = random({kBatch, kHeads, x.q.size(2), kNorm});
}

constexpr Kind kCausal[] = {
    {"plain", [](Problem&) {}},
    {"decay", set_head_decay},
    {"decay by channel", set_channel_decay},
    {"decay by channel, undivided",
     [](Problem& x) { set_channel_decay(x), x.options.denominator = "none"; }},
    {"gates", [](Problem& x) { x.options.log_decay = gates(x); }},
    {"gates and decay",
     [](Problem& x) { x.options.log_decay = gates(x), set_head_decay(x); }},
    {"borders", set_borders},
    {"delta", set_delta},
    {"delta, gates, decay",
     [](Problem& x) {
       set_delta(x), set_head_decay(x), x.options.log_decay = gates(x);
     }},
    {"delta, borders", [](Problem& x) { set_delta(x), set_borders(x); }},
    {"scale", set_scale},
    {"scale and decay", [](Problem& x) { set_scale(x), set_head_decay(x); }},
    {"scale and gates",
     [](Problem& x) { set_scale(x), x.options.log_decay = gates(x); }},
    {"separate norm", [](Problem& x) { set_norm(x), set_head_decay(x); }},
    {"clamped", [](Problem& x) { x.options.eps = 0.3, x.options.eps_mode = "clamp"; }},
};

constexpr Kind kFull[] = {
    {"plain", [](Problem&) {}}, {"scale", set_scale}, {"separate norm", set_norm}};

Problem problem(const Kind& kind, bool causal, int64_t n, bool ragged) {
  at::manual_seed(3);
  Problem x{random({kBatch, kHeads, n, kKeys}),
            random({kBatch, kHeads, n, kKeys}),
            random({kBatch, kHeads, n, kValues}),
            {}};
  x.options.causal = causal, x.options.feature_map = "elu1";
  kind.set(x);
  if (ragged) x.options.lengths = at::tensor({n - 3, n / 2}, at::kLong);
  return x;
}

/// What one rank, or one process alone, computed.
struct Outcome {
  Tensor out;
  ops::LinearState last;
  std::vector<Tensor> by_row;
  Tensor decay;
};

/// The same direction of loss for everybody: by the results, and by the last state
/// where `counts` says that it is this rank's to count.
Outcome outcome(Problem& x, const ops::LinearResult& r, const Tensor& weight,
                bool counts) {
  Tensor loss = (r.out * weight).sum();
  // States with a maximum stand for s e^m: only their quotients have a gradient.
  if (counts && !x.options.log_scale.defined())
    loss = loss + r.state.s.sin().sum() + r.state.z.sin().sum();
  Outcome found{r.out.detach(), r.state, {}, {}};
  std::vector<Tensor> leaves;
  for (Tensor* one : x.by_row())
    if (one->defined()) leaves.push_back(*one);
  const bool decays = x.options.decay.defined() && x.options.decay.requires_grad();
  if (decays) leaves.push_back(x.options.decay);
  found.by_row = torch::autograd::grad({loss}, leaves, {}, false, false, true);
  for (size_t i = 0; i < leaves.size(); ++i)
    if (!found.by_row[i].defined()) found.by_row[i] = at::zeros_like(leaves[i]);
  if (decays) found.decay = found.by_row.back(), found.by_row.pop_back();
  return found;
}

void expect_near(const Tensor& got, const Tensor& want, const std::string& what) {
  ASSERT_EQ(got.sizes(), want.sizes()) << what;
  if (want.numel() == 0) return;
  EXPECT_LE((got - want).abs().max().item<double>(),
            1e-10 * std::max(1.0, want.abs().max().item<double>()))
      << what;
}

/// s e^m and z e^m where there is an m, relative to the largest of all.
Tensor in_one_unit(const Tensor& x, const Tensor& m, const Tensor& largest) {
  if (m.dim() != 2) return x;
  return x * (m - largest)
                 .exp()
                 .view({m.size(0), m.size(1)})
                 .reshape(x.dim() == 4 ? at::IntArrayRef({m.size(0), m.size(1), 1, 1})
                                       : at::IntArrayRef({m.size(0), m.size(1), 1}));
}

void expect_split_equals_whole(const Problem& whole, const Shards& shards,
                               bool recompute = false) {
  const int64_t n = whole.q.size(2);
  const int size = static_cast<int>(shards.size());
  const Tensor weight = random({kBatch, kHeads, n, kValues});
  Problem alone = whole.part(0, n);
  const Outcome want = outcome(
      alone,
      ops::linear_attention_stateful(alone.q, alone.k, alone.v, {}, alone.options),
      weight, true);
  std::vector<Outcome> got(shards.size());
  run_together(size, [&](const ThreadPeers& peers) {
    const ops::WithRecompute less(recompute);
    const int rank = peers.rank();
    const int64_t from = ops::rows_to(shards, rank),
                  to = ops::rows_to(shards, rank + 1);
    Problem x = whole.part(from, to);
    got[static_cast<size_t>(rank)] =
        outcome(x, linear_attention_together(peers, x.q, x.k, x.v, x.options),
                weight.slice(2, from, to), rank == size - 1);
  });
  const auto joined = [&](const auto& of) {
    std::vector<Tensor> all;
    for (const Outcome& one : got) all.push_back(of(one));
    return all;
  };
  expect_near(at::cat(joined([](const Outcome& x) { return x.out; }), 2), want.out,
              "results");
  for (size_t i = 0; i < want.by_row.size(); ++i)
    expect_near(at::cat(joined([&](const Outcome& x) { return x.by_row[i]; }), 2),
                want.by_row[i], "gradient " + std::to_string(i));
  if (want.decay.defined())
    expect_near(at::stack(joined([](const Outcome& x) { return x.decay; })).sum(0),
                want.decay, "gradient of the decay");
  const ops::LinearState& last = got.back().last;
  const Tensor& m = want.last.m;
  expect_near(in_one_unit(last.s, last.m, m), want.last.s, "s");
  expect_near(in_one_unit(last.z, last.m, m), want.last.z, "z");
}

const std::vector<Shards> kSplits = {{13},      {4, 9},       {5, 0, 8},
                                     {6, 7, 0}, {0, 3, 1, 9}, {2, 0, 1, 4, 0, 0, 5, 1}};

TEST(SharedState, AnySplitOfCausalAttentionEqualsTheWhole) {
  for (const Kind& kind : kCausal)
    for (const bool ragged : {false, true})
      for (const Shards& shards : kSplits) {
        SCOPED_TRACE(std::string(kind.name) + (ragged ? ", ragged, " : ", ") +
                     ::testing::PrintToString(shards));
        expect_split_equals_whole(problem(kind, true, 13, ragged), shards);
      }
}

TEST(SharedState, AnySplitOfFullAttentionEqualsTheWhole) {
  for (const Kind& kind : kFull)
    for (const bool ragged : {false, true})
      for (const Shards& shards : kSplits) {
        SCOPED_TRACE(std::string(kind.name) + (ragged ? ", ragged, " : ", ") +
                     ::testing::PrintToString(shards));
        expect_split_equals_whole(problem(kind, false, 13, ragged), shards);
      }
}

TEST(SharedState, ShardsOfManyChunksEqualTheWhole) {
  for (const Kind& kind : kCausal) {
    SCOPED_TRACE(kind.name);
    expect_split_equals_whole(problem(kind, true, 300, false), {101, 37, 162});
  }
}

/// With features computed anew in the backward pass.
TEST(SharedState, KeepingLessIsTheSame) {
  for (const bool causal : {true, false})
    for (const Kind& kind : causal ? std::span<const Kind>(kCausal) : kFull) {
      SCOPED_TRACE(kind.name);
      for (const bool ragged : {false, true})
        expect_split_equals_whole(problem(kind, causal, 13, ragged), {5, 0, 8},
                                  /*recompute=*/true);
    }
}

TEST(SharedState, HasTheSameBitsForAnyNumberOfThreads) {
  const int before = at::get_num_threads();
  const Shards shards = {1700, 2300};
  for (const Kind& kind : kCausal) {
    const std::string name = kind.name;
    if (name != "gates and decay" && name != "delta, gates, decay") continue;
    SCOPED_TRACE(name);
    const Problem whole = problem(kind, true, 4000, false);
    std::vector<Outcome> want(2);
    for (const int threads : {1, 2, 4})
      run_together(2, [&](const ThreadPeers& peers) {
        at::set_num_threads(threads);
        const int rank = peers.rank();
        Problem x =
            whole.part(ops::rows_to(shards, rank), ops::rows_to(shards, rank + 1));
        const Outcome got =
            outcome(x, linear_attention_together(peers, x.q, x.k, x.v, x.options),
                    at::ones_like(x.v), false);
        Outcome& first = want[static_cast<size_t>(rank)];
        if (threads == 1) first = got;
        EXPECT_TRUE(got.out.equal(first.out)) << threads;
        for (size_t i = 0; i < got.by_row.size(); ++i)
          EXPECT_TRUE(got.by_row[i].equal(first.by_row[i])) << threads << " " << i;
        if (got.decay.defined()) {
          EXPECT_TRUE(got.decay.equal(first.decay)) << threads;
        }
      });
  }
  at::set_num_threads(before);
}

/// A later key never reaches an earlier row, not even as the unit of a state.
TEST(SharedState, NothingAheadIsSeenEvenIfItIsInfinite) {
  Problem x = problem({"scale", set_scale}, true, 12, false);
  const Tensor want = ops::linear_attention(x.q, x.k, x.v, x.options).slice(2, 0, 8);
  x.options.log_scale.slice(2, 8).fill_(INFINITY);
  x.v.slice(2, 8).fill_(NAN);
  Tensor first, second;
  run_together(3, [&](const ThreadPeers& peers) {
    const int64_t from = int64_t{4} * peers.rank();
    const Problem part = x.part(from, from + 4);
    const Tensor out =
        linear_attention_together(peers, part.q, part.k, part.v, part.options).out;
    if (peers.rank() == 0) first = out.detach();
    if (peers.rank() == 1) second = out.detach();
  });
  expect_near(at::cat({first, second}, 2), want, "results");
}

/// Bytes that a rank gives to the others, forward and in both directions together.
std::pair<int64_t, int64_t> traffic(const Kind& kind, bool causal, int64_t n,
                                    int size) {
  const Problem whole = problem(kind, causal, n, false);
  std::atomic<int64_t> forward = 0, both = 0;
  run_together(size, [&](const ThreadPeers& peers) {
    const int64_t from = n * peers.rank() / size, to = n * (peers.rank() + 1) / size;
    Problem x = whole.part(from, to);
    const auto r = linear_attention_together(peers, x.q, x.k, x.v, x.options);
    if (peers.rank() == 0) forward = peers.bytes_sent();
    outcome(x, r, at::ones_like(r.out), false);
    if (peers.rank() == 0) both = peers.bytes_sent();
  });
  return {forward, both};
}

TEST(SharedState, TrafficDoesNotDependOnTheLength) {
  for (const Kind& kind : kCausal)
    EXPECT_EQ(traffic(kind, true, 8, 4), traffic(kind, true, 400, 4)) << kind.name;
  for (const Kind& kind : kFull)
    EXPECT_EQ(traffic(kind, false, 8, 4), traffic(kind, false, 400, 4)) << kind.name;
}

/// Forward a state and the factor of its shard, backward the gradient of a state.
TEST(SharedState, TrafficIsThatOfOneStateToEveryOther) {
  const int64_t heads = kBatch * kHeads, number = 8;
  const int64_t state = kKeys * kValues + kKeys;
  const auto [forward, both] = traffic({"decay", set_head_decay}, true, 100, 4);
  EXPECT_EQ(forward, 3 * heads * (state + 1) * number);
  EXPECT_EQ(both - forward, 3 * heads * state * number);
}

TEST(SharedState, RefusesKeysOfOtherRows) {
  Problem x = problem(kFull[0], false, 6, false);
  x.options.lengths = x.options.key_lengths = at::full({kBatch}, 6, at::kLong);
  EXPECT_THROW(run_together(2,
                            [&](const ThreadPeers& peers) {
                              linear_attention_together(peers, x.q, x.k, x.v,
                                                        x.options);
                            }),
               std::invalid_argument);
}

}  // namespace
}  // namespace lagwise
