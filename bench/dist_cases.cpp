#include "bench/dist_cases.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/remainder.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <future>
#include <memory>

#include "bench/timing.h"
#include "lagwise/core/clock.h"
#include "lagwise/dist/gloo_peers.h"
#include "lagwise/dist/thread_peers.h"
#include "lagwise/dist/tree_sum.h"
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

double own_rate(int64_t numbers, int port) {
  constexpr int kRounds = 5;
  std::array<double, kRounds> rates = {};
  const auto act = [&](int rank) {
    dist::World world;
    world.rank = rank, world.size = 2;
    world.address = "127.0.0.1", world.port = port;
    const auto peers = dist::meet(world, std::chrono::seconds(60));
    at::Tensor sum = at::ones({numbers});
    dist::sum_over_peers_(sum, *peers);  // a warm-up
    for (double& rate : rates) {
      peers->gather(sum.narrow(0, 0, 1));  // begin together
      const int64_t before = peers->bytes_sent();
      const auto begin = Clock::now();
      dist::sum_over_peers_(sum, *peers);
      if (rank == 0)
        rate = 8.0 * static_cast<double>(peers->bytes_sent() - before) /
               seconds_since(begin);
    }
  };
  set_threads(1);  // as of two processes that share this machine
  std::future<void> other = std::async(std::launch::async, act, 1);
  act(0);
  other.get();
  std::sort(rates.begin(), rates.end());
  return rates[kRounds / 2];
}

Scaled scaled(double step, int64_t parameters, int nodes, double line, double own) {
  Scaled found{nodes, line};
  const int rounds = std::bit_width(static_cast<unsigned>(nodes)) - 1;
  found.bytes_per_step = 4 * parameters * rounds;
  found.exchange =
      8.0 * static_cast<double>(found.bytes_per_step) / std::min(line, own);
  found.busy = step / (step + found.exchange);
  return found;
}

}  // namespace lagwise::bench
