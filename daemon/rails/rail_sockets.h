// The sockets of this node's rail probes: open while they can be, and what is wrong where they cannot.
#ifndef R2CC_DAEMON_RAILS_RAIL_SOCKETS_H_
#define R2CC_DAEMON_RAILS_RAIL_SOCKETS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "base/executor.h"
#include "health/evidence/nic_identity.h"
#include "health/io/datagram.h"

namespace r2cc::daemon {

// If the own kernel dropped datagrams, probes and answers may be among them: for this time missing ones are not judged.
constexpr Nanos kDropsWindow = kNanosPerSecond;

// The core's thread only.
class RailSockets {
 public:
  struct Outputs {
    std::function<void(const std::string& nic, const std::vector<health::Datagram>& batch)> on_batch;
    // The own kernel dropped datagrams for a NIC. Called before the batch that revealed it.
    // `from`: only datagrams from this address; empty: any.
    std::function<void(const std::string& nic, const std::string& from)> on_drops;
    // A port or a trouble is another one.
    std::function<void()> on_state;
  };
  RailSockets(Executor* executor, health::Datagrams* datagrams, Outputs outputs)
      : executor_(executor), datagrams_(datagrams), outputs_(std::move(outputs)) {}

  void Add(const health::NicIdentity& identity, bool link_up);
  void Remove(const std::string& nic) { rails_.erase(nic); }
  // Opens them. `port`: wanted for all; where it is taken another one serves.
  void Start(uint16_t port);
  void Stop();
  // Tries again what could not be opened, once kOpenInterval. And reports which senders are kept out.
  void Tick();
  // An interface that is made again is another one, which needs another socket.
  void SetLink(const std::string& nic, bool up);
  // Another address needs another socket.
  void SetAddress(const std::string& nic, const std::string& address);

  // Sets what all sockets accept from now on.
  void Take(health::DatagramFilter filter);

  // As of RailSocket. A packet that cannot leave is lost.
  absl::Status Send(const std::string& nic, const health::DatagramAddress& to, std::string_view bytes);
  absl::Status SendOnLink(const std::string& nic, const health::DatagramAddress& to, std::string_view bytes);

  // 0: it is not open.
  uint16_t port(const std::string& nic) const;
  // One line for a person; empty: it is open, or its link is down and nothing is to be probed.
  std::string trouble(const std::string& nic) const;
  // Its own kernel dropped datagrams in the last kDropsWindow.
  bool Drops(const std::string& nic) const;
  // ICMP errors from somebody on the way. Anybody can send them, so they are counted and nothing else.
  uint64_t icmp_errors() const { return icmp_errors_; }
  // Arrived and were not for this daemon's keys; and found the socket's buffer full.
  uint64_t filtered() const { return filtered_; }
  uint64_t overflowed() const { return overflowed_; }
  // Arrived, and its sender was beyond its rate. Later packets from there count as filtered.
  uint64_t over_rate() const { return over_rate_; }

 private:
  struct Rail {
    health::NicIdentity identity;
    bool link_up = false;
    std::unique_ptr<health::RailSocket> socket;
    std::string trouble;
    uint64_t dropped = 0;
    uint64_t paused = 0;
    uint64_t filtered = 0;
    uint64_t over_rate = 0;
    std::vector<std::string> blocked;
    Nanos blocked_logged = 0;
    Nanos dropped_at = 0;
  };
  void Open();
  std::string OpenOne(const std::string& name, Rail* rail);
  void NoteBlocked(const std::string& name, Rail* rail);
  void Count(const std::string& name, Rail* rail);
  void OnDrops(const std::string& name, Rail* rail, uint64_t dropped);
  void OnBatch(const std::string& name, const std::vector<health::Datagram>& batch);
  bool DropsNow(const Rail& rail) const { return rail.dropped_at != 0 && executor_->Now() - rail.dropped_at < kDropsWindow; }

  Executor* const executor_;
  health::Datagrams* const datagrams_;
  const Outputs outputs_;
  std::map<std::string, Rail> rails_;
  bool running_ = false;
  uint16_t port_ = 0;
  Nanos opened_ = 0;
  uint64_t icmp_errors_ = 0;
  uint64_t filtered_ = 0;
  uint64_t overflowed_ = 0;
  uint64_t over_rate_ = 0;
  health::DatagramFilter filter_;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_RAILS_RAIL_SOCKETS_H_
