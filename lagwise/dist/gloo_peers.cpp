#include "lagwise/dist/gloo_peers.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <c10/util/Logging.h>  // says whether torch was built with glog

#include <algorithm>
#include <atomic>
#include <future>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <type_traits>

#include "lagwise/dist/lost_peer.h"
#include "lagwise/dist/own_address.h"
#include "lagwise/dist/own_host.h"

#ifndef USE_C10D_GLOO  // torch was built with it: cmake/gloo.cmake looked
#define USE_C10D_GLOO
#endif
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#pragma GCC diagnostic pop

namespace lagwise::dist {
namespace {

using std::chrono::milliseconds;
using Store = c10::intrusive_ptr<c10d::Store>;
using Work = c10::intrusive_ptr<c10d::Work>;

constexpr int kTag = 0;  // of all messages: between two ranks they keep their order

std::vector<uint8_t> bytes_of(const std::string& text) {
  return {text.begin(), text.end()};
}

std::string text_of(const std::vector<uint8_t>& bytes) {
  return {bytes.begin(), bytes.end()};
}

std::string seconds_text(milliseconds time) {
  return std::to_string((time.count() + 999) / 1000) + " s";
}

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

/// Runs `ask` for `time` at most: whoever would answer may be the one that is lost, and then
/// a question is never answered. The asking goes on by itself, so all it uses is its own.
template <class Ask>
void ask_for(milliseconds time, Ask ask) {
  const auto promise = std::make_shared<std::promise<void>>();
  const std::future<void> answer = promise->get_future();
  std::thread([promise, ask = std::move(ask)] {
    try {
      ask();
    } catch (...) {  // no answer
    }
    promise->set_value();
  }).detach();
  answer.wait_for(time);
}

/// Who is lost, when the wait of rank `us` for `other` has failed: `other` may itself have
/// waited for another in vain. Each leaves in the store whom it waited for, and the one
/// who left nothing is lost. Where the store does not answer, that is rank 0, who keeps
/// it; so rank 0 stays until those who ask have their answers.
int find_lost(const Store& store, int us, int other, int size) {
  const auto key = [](const char* what, int rank) {
    return what + std::to_string(rank);
  };
  const auto suspect = std::make_shared<std::atomic<int>>(us == 0 ? other : 0);
  ask_for(milliseconds(2000), [=] {
    try {
      store->set(key("waited/", us), bytes_of(std::to_string(other)));
      *suspect = other;
      for (int hops = 0; hops < size; ++hops) {
        const std::string note = key("waited/", *suspect);
        for (int tries = 0; tries < 3 && !store->check({note}); ++tries)
          std::this_thread::sleep_for(milliseconds(100));
        if (!store->check({note})) break;
        const int next = std::stoi(text_of(store->get(note)));
        if (next == us || next == *suspect) break;
        *suspect = next;
      }
      store->set(key("told/", us), bytes_of("yes"));
    } catch (const std::exception&) {
      if (us != 0) *suspect = 0;
    }
    const auto asks = [&](int rank) {
      return store->check({key("waited/", rank)}) &&
             !store->check({key("told/", rank)});
    };
    for (int rank = 1; us == 0 && rank < size; ++rank)
      while (asks(rank)) std::this_thread::sleep_for(milliseconds(20));
  });
  return *suspect;
}

/// Later torch would listen by means of libuv, with which Debian's is not built.
template <class Options>
void without_libuv(Options& options) {
  if constexpr (requires { options.useLibUV; }) options.useLibUV = false;
}

/// The connections of a process to all others.
class Connections {
 public:
  Connections(const World& world, milliseconds timeout)
      : world_(world), timeout_(timeout) {
    open_store();
    introduce();
    connect();
  }

  ~Connections() {
    // Its threads may still wait for whoever is lost.
    if (broken_) static_cast<void>(group_.release());
  }
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

  const World& world() const { return world_; }
  const std::vector<std::string>& hosts() const { return hosts_; }
  int64_t bytes_sent() const { return sent_; }
  void wait_at_least(milliseconds time) { timeout_ = std::max(timeout_, time); }

  Work send(const at::Tensor& x, int to) {
    std::vector<at::Tensor> one = {x};
    sent_ += x.numel() * x.element_size();
    return guarded(to, [&] { return group_->send(one, to, kTag); });
  }

  Work receive(const at::Tensor& x, int from) {
    std::vector<at::Tensor> one = {x};
    return guarded(from, [&] { return group_->recv(one, from, kTag); });
  }

  void finish(const Work& work, int other) {
    guarded(other, [&] { return work->wait(timeout_); });
  }

 private:
  template <class Act>
  std::invoke_result_t<Act> guarded(int other, const Act& act) {
    try {
      return act();
    } catch (const std::exception& error) {
      lose(other, error.what());
    }
  }

  void open_store() {
    c10d::TCPStoreOptions options;
    without_libuv(options);
    options.port = static_cast<uint16_t>(world_.port);
    options.isServer = world_.rank == 0;
    options.waitWorkers = false;
    options.timeout =
        std::chrono::ceil<std::chrono::seconds>(timeout_);  // it counts them
    const std::string place = world_.address + ":" + std::to_string(world_.port);
    try {
      tcp_ = c10::make_intrusive<c10d::TCPStore>(world_.address, options);
    } catch (const std::exception& error) {
      if (options.isServer)
        throw std::runtime_error(
            "cannot listen on port " + std::to_string(world_.port) +
            " as rank 0: another job may have it, or MASTER_ADDR " + world_.address +
            " is not this host (" + first_line(error.what()) + ")");
      throw LostPeer(0, world_.address,
                     "nobody answered at " + place + " within " +
                         seconds_text(timeout_) + " (MASTER_ADDR and MASTER_PORT)");
    }
    tcp_->setTimeout(timeout_);
    store_ = c10::make_intrusive<c10d::PrefixStore>("lagwise/" + world_.job, tcp_);
  }

  /// Everybody learns everybody's host and address.
  void introduce() {
    address_ = own_address(world_.address, world_.port);
    store_->set("host/" + std::to_string(world_.rank),
                bytes_of(address_ + " " + host_name()));
    std::vector<std::string> addresses;
    for (int rank = 0; rank < world_.size; ++rank) {
      std::string said;
      try {
        said = text_of(store_->get("host/" + std::to_string(rank)));
      } catch (const std::exception&) {
        throw LostPeer(rank, "", "it did not come within " + seconds_text(timeout_));
      }
      const size_t blank = said.find(' ');
      addresses.push_back(said.substr(0, blank));
      hosts_.push_back(said.substr(blank + 1));
    }
    check_reachable(addresses, hosts_);
  }

  void connect() {
    auto options = c10d::ProcessGroupGloo::Options::create(timeout_);
    options->threads = 1;
    const char* const interface = std::getenv("GLOO_SOCKET_IFNAME");
    try {
      options->devices.push_back(
          interface != nullptr && *interface != '\0'
              ? c10d::ProcessGroupGloo::createDeviceForInterface(interface)
              : c10d::ProcessGroupGloo::createDeviceForHostname(address_));
      group_ = std::make_unique<c10d::ProcessGroupGloo>(
          c10::make_intrusive<c10d::PrefixStore>("gloo", store_), world_.rank,
          world_.size, options);
    } catch (const std::exception& error) {
      throw std::runtime_error(
          "rank " + std::to_string(world_.rank) + " on " + host_name() +
          " cannot connect to the others: " + first_line(error.what()));
    }
  }

  /// Waiting for `other` failed.
  [[noreturn]] void lose(int other, const std::string& why) {
    broken_ = true;
    const int lost = find_lost(store_, world_.rank, other, world_.size);
    const bool silent = why.find("imed out") != why.npos;
    throw LostPeer(
        lost, hosts_[size_t(lost)],
        silent ? "no word for " + seconds_text(timeout_) : "its connection is closed");
  }

  World world_;
  milliseconds timeout_;
  c10::intrusive_ptr<c10d::TCPStore> tcp_;
  Store store_;
  std::unique_ptr<c10d::ProcessGroupGloo> group_;
  std::string address_;
  std::vector<std::string> hosts_;
  std::atomic<int64_t> sent_ = 0;
  bool broken_ = false;
};

/// Some ranks of the connections, those of `members`.
class GlooPeers : public ProcessPeers {
 public:
  GlooPeers(std::shared_ptr<Connections> all, std::vector<int> members)
      : all_(std::move(all)), members_(std::move(members)) {
    const auto us = std::find(members_.begin(), members_.end(), all_->world().rank);
    if (us == members_.end())
      throw std::invalid_argument("a group of peers: expected our own rank in it");
    rank_ = static_cast<int>(us - members_.begin());
  }

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(members_.size()); }
  const std::vector<std::string>& hosts() const override { return all_->hosts(); }
  int64_t bytes_sent() const override { return all_->bytes_sent(); }
  void wait_at_least(milliseconds time) override { all_->wait_at_least(time); }

  at::Tensor gather(const at::Tensor& x) const override {
    const at::Tensor given = x.detach().contiguous();
    std::vector<int64_t> sizes = {size()};
    sizes.insert(sizes.end(), given.sizes().begin(), given.sizes().end());
    at::Tensor all = at::empty(sizes, given.options());
    all.select(0, rank_).copy_(given);
    if (given.numel() == 0) return all;
    std::vector<Open> open;
    for (int step = 1; step < size(); ++step) {
      const int to = (rank_ + step) % size(), from = (rank_ + size() - step) % size();
      open.push_back({all_->receive(all.select(0, from), member(from)), member(from)});
      open.push_back({all_->send(given, member(to)), member(to)});
    }
    finish(open);
    return all;
  }

  at::Tensor exchange(const at::Tensor& x, int other) const override {
    const at::Tensor given = x.detach().contiguous();
    at::Tensor got = at::empty_like(given);
    if (other == rank_) return got.copy_(given);
    if (given.numel() == 0) return got;
    finish({{all_->receive(got, member(other)), member(other)},
            {all_->send(given, member(other)), member(other)}});
    return got;
  }

  void broadcast_(at::Tensor& x, int from) const override {
    if (x.numel() == 0) return;
    at::Tensor whole = x.detach().contiguous();
    std::vector<Open> open;
    if (rank_ != from)
      open.push_back({all_->receive(whole, member(from)), member(from)});
    for (int to = 0; rank_ == from && to < size(); ++to)
      if (to != from) open.push_back({all_->send(whole, member(to)), member(to)});
    finish(open);
    if (rank_ != from && !x.is_contiguous()) x.copy_(whole);
  }

  std::unique_ptr<ops::Peers> group(const std::vector<int>& members) const override {
    std::vector<int> ranks;
    ranks.reserve(members.size());
    for (const int one : members) ranks.push_back(member(one));
    return std::make_unique<GlooPeers>(all_, ranks);
  }

 private:
  struct Open {  // a message on its way
    Work work;
    int other;
  };
  int member(int rank) const { return members_.at(size_t(rank)); }
  void finish(const std::vector<Open>& open) const {
    for (const Open& one : open) all_->finish(one.work, one.other);
  }

  std::shared_ptr<Connections> all_;
  std::vector<int> members_;
  int rank_ = 0;
};

}  // namespace

int ProcessPeers::ranks_on_this_host() const {
  const auto& all = hosts();
  return static_cast<int>(std::count(all.begin(), all.end(), all[size_t(rank())]));
}

bool has_gloo() { return true; }

std::unique_ptr<ProcessPeers> meet(const World& world, milliseconds timeout) {
  // torch would print what we throw, and nothing below the program prints.
#if defined(C10_USE_GLOG)
  FLAGS_minloglevel = google::GLOG_FATAL;
#else
  FLAGS_caffe2_log_level = c10::GLOG_FATAL;
#endif
  std::vector<int> everybody(size_t(world.size));
  std::iota(everybody.begin(), everybody.end(), 0);
  return std::make_unique<GlooPeers>(std::make_shared<Connections>(world, timeout),
                                     everybody);
}

}  // namespace lagwise::dist
