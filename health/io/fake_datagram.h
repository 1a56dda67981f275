// Datagrams over a network in simulated time: any number of nodes in one process. One thread.
#ifndef R2CC_HEALTH_IO_FAKE_DATAGRAM_H_
#define R2CC_HEALTH_IO_FAKE_DATAGRAM_H_

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/executor.h"
#include "health/io/datagram.h"

namespace r2cc::health {

// All nodes share one; each node's FakeDatagrams opens sockets on it. Outlives them.
class FakeDatagramNet {
 public:
  // The delay of one datagram, or nothing if it is lost.
  using Path = std::function<std::optional<Nanos>(const DatagramAddress& from, const DatagramAddress& to)>;

  explicit FakeDatagramNet(Executor* executor) : executor_(executor), path_([](const auto&, const auto&) { return kNanosPerMs / 20; }) {}

  void set_path(Path path) { path_ = std::move(path); }
  // The largest packet, with its headers, that passes from an address to another.
  void set_limit(std::function<size_t(const DatagramAddress& from, const DatagramAddress& to)> limit) { limit_ = std::move(limit); }
  Executor* executor() const { return executor_; }
  bool IsOpen(const DatagramAddress& address) const { return sockets_.contains(address); }
  uint64_t sent() const { return sent_; }

  // The kernel of this address drops its datagrams, as in a flood; one datagram of the flood gets through instead.
  void Flood(const std::string& address) { flooded_.insert(address); }
  void EndFlood(const std::string& address) { flooded_.erase(address); }
  // The socket at `to` keeps out these senders, as if each had sent too much.
  void Block(const DatagramAddress& to, std::vector<std::string> senders) { sockets_.at(to).blocked = std::move(senders); }
  // Sends an ICMP error to the socket at `to`, in the name of `from`: nobody listens there.
  void ForgeRefusal(const DatagramAddress& to, const DatagramAddress& from) {
    if (const auto socket = sockets_.find(to); socket != sockets_.end())
      socket->second.handler.on_error({DatagramError::Kind::kRefused, from, socket->second.clock->Now()});
  }

  // Handlers of the node with this address are not called, as if its daemon had no processor; what arrives waits.
  void Freeze(const std::string& address) { frozen_[address]; }
  void Thaw(const std::string& address) {
    const auto node = frozen_.extract(address);
    if (!node) return;
    for (auto& [to, batch] : node.mapped())
      if (const auto socket = sockets_.find(to); socket != sockets_.end()) socket->second.handler.on_batch(batch);
  }

 private:
  friend class FakeDatagrams;
  friend class FakeRailSocket;

  void Carry(const DatagramAddress& from, const DatagramAddress& to, std::string bytes) {
    ++sent_;
    if (limit_ && bytes.size() + kHeaderBytes > limit_(from, to)) return;
    const std::optional<Nanos> delay = path_(from, to);
    if (!delay.has_value()) return;
    executor_->RunAfter(*delay, [this, from, to, bytes = std::move(bytes)] { Arrive(from, to, bytes); });
  }

  void Arrive(const DatagramAddress& from, const DatagramAddress& to, const std::string& bytes) {
    const auto socket = sockets_.find(to);
    if (socket == sockets_.end()) return Refuse(from, to);
    if (flooded_.contains(to.address)) {
      ++socket->second.dropped;
      return socket->second.handler.on_batch({{"flood", {"192.0.2.1", 53}, socket->second.clock->Now()}});
    }
    if (!socket->second.Takes(from.address, bytes)) {
      ++socket->second.filtered;
      return;
    }
    const Datagram datagram = {bytes, from, socket->second.clock->Now()};
    if (const auto frozen = frozen_.find(to.address); frozen != frozen_.end())
      frozen->second[to].push_back(datagram);
    else
      socket->second.handler.on_batch({datagram});
  }

  void Refuse(const DatagramAddress& from, const DatagramAddress& to) {
    const std::optional<Nanos> delay = path_(to, from);
    if (!delay.has_value()) return;
    executor_->RunAfter(*delay, [this, from, to] {
      const auto sender = sockets_.find(from);
      if (sender == sockets_.end()) return;
      sender->second.handler.on_error({DatagramError::Kind::kRefused, to, sender->second.clock->Now()});
    });
  }

  Executor* const executor_;
  static constexpr size_t kHeaderBytes = 28;
  Path path_;
  std::function<size_t(const DatagramAddress& from, const DatagramAddress& to)> limit_;
  struct Socket {
    DatagramHandler handler;
    const Executor* clock;
    uint64_t dropped = 0;
    uint64_t filtered = 0;
    DatagramFilter filter;
    std::vector<std::string> blocked;

    bool Takes(const std::string& from, const std::string& bytes) const {
      if (std::find(blocked.begin(), blocked.end(), from) != blocked.end()) return false;
      if (filter.words.empty()) return true;
      return bytes.starts_with(std::string(filter.head.begin(), filter.head.end())) &&
             std::any_of(filter.words.begin(), filter.words.end(), [&](const auto& word) {
               return bytes.compare(std::min(filter.at, bytes.size()), word.size(), std::string(word.begin(), word.end())) == 0;
             });
    }
  };
  std::map<DatagramAddress, Socket> sockets_;
  std::map<std::string, std::map<DatagramAddress, std::vector<Datagram>>> frozen_;
  std::set<std::string> flooded_;
  uint16_t last_free_port_ = 40'000;
  uint64_t sent_ = 0;
};

class FakeRailSocket final : public RailSocket {
 public:
  FakeRailSocket(FakeDatagramNet* net, DatagramAddress own) : net_(net), own_(std::move(own)) {}
  ~FakeRailSocket() override { net_->sockets_.erase(own_); }
  FakeRailSocket(const FakeRailSocket&) = delete;
  FakeRailSocket& operator=(const FakeRailSocket&) = delete;

  absl::Status Send(const DatagramAddress& to, std::string_view bytes) override {
    if (bytes.size() > kDatagramBytesMax) return absl::InvalidArgumentError("too long");
    ++counts_.sent;
    net_->Carry(own_, to, std::string(bytes));
    return absl::OkStatus();
  }
  absl::Status SendOnLink(const DatagramAddress& to, std::string_view bytes) override { return Send(to, bytes); }
  void Take(const DatagramFilter& filter) override { net_->sockets_.at(own_).filter = filter; }
  uint16_t port() const override { return own_.port; }
  const RailSocketCounts& counts() const override {
    counts_.dropped_by_kernel = net_->sockets_.at(own_).dropped;
    counts_.filtered = net_->sockets_.at(own_).filtered;
    return counts_;
  }
  const std::vector<std::string>& blocked() const override { return net_->sockets_.at(own_).blocked; }

 private:
  FakeDatagramNet* const net_;
  const DatagramAddress own_;
  mutable RailSocketCounts counts_;
};

// One node's. Stamps what arrives with the time of `clock`, which outlives the sockets; null: that of the net.
class FakeDatagrams final : public Datagrams {
 public:
  explicit FakeDatagrams(FakeDatagramNet* net, const Executor* clock = nullptr)
      : net_(net), clock_(clock != nullptr ? clock : net->executor()) {}

  absl::StatusOr<std::unique_ptr<RailSocket>> Open(const RailBinding& binding, DatagramHandler handler) override {
    const DatagramAddress own = {binding.address, binding.port != 0 ? binding.port : ++net_->last_free_port_};
    if (!net_->sockets_.emplace(own, FakeDatagramNet::Socket{std::move(handler), clock_}).second)
      return absl::AlreadyExistsError("the port is taken");
    return std::make_unique<FakeRailSocket>(net_, own);
  }

 private:
  FakeDatagramNet* const net_;
  const Executor* const clock_;
};

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_IO_FAKE_DATAGRAM_H_
