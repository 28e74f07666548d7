#include "bench/dist_cases.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/remainder.h>

#include <atomic>
#include <memory>

#include "lagwise/dist/thread_peers.h"
#include "lagwise/models/model.h"
#include "lagwise/models/shard.h"

namespace lagwise::bench {
namespace {

constexpr int64_t kNames = 16;  // of the vocabulary

ModelConfig one_layer(int64_t n) {
  ModelConfig config;
  config.model = "decoder_lm";
  config.layers = 1, config.dim = 32, config.heads = 2;
  config.vocabulary = kNames, config.length = n;
  config.encoding = "decay", config.attention = "linear:map=elu1";
  return config;
}

}  // namespace

SequenceTraffic sequence_traffic(int64_t n, int ranks) {
  Batch whole;
  whole.tokens = at::remainder(at::arange(n) * 7, kNames).unsqueeze(0);
  whole.targets = at::remainder(whole.tokens + 7, kNames);
  std::atomic<int64_t> most = 0;
  dist::run_together(ranks, [&](const dist::ThreadPeers& peers) {
    const auto model = make_model(one_layer(n));
    const Columns ours = columns_of(n, peers.rank(), ranks);
    model->loss(shard(whole, ours, peers), {}).sum.backward();
    int64_t seen = most;
    while (peers.bytes_sent() > seen &&
           !most.compare_exchange_weak(seen, peers.bytes_sent())) {
    }
  });
  return {n, ranks, most};
}

}  // namespace lagwise::bench
