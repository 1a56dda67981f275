// The seam of `r2ccctl doctor` to the machine on which it runs.
#ifndef R2CC_CLIENT_DOCTOR_MACHINE_H_
#define R2CC_CLIENT_DOCTOR_MACHINE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/doctor/facts.h"

namespace r2cc::client {

// Source of a packet: a numeric IPv4 address, and the interface that it is bound to (empty: to none).
struct Source {
  std::string address;
  std::string interface;
};

// Every call takes a bounded time, some seconds at most. An error names the missing fact and the reason.
class Machine {
 public:
  virtual ~Machine() = default;
  // A small text file, without the white space around it.
  virtual absl::StatusOr<std::string> Read(const std::string& path) = 0;
  // All but the loopback one.
  virtual std::vector<LocalInterface> Interfaces() = 0;
  // By which interface the kernel sends what has `address` as its source.
  virtual absl::StatusOr<std::string> Route(const std::string& address, const std::string& destination) = 0;
  // A packet of `bytes`, IP header and all, that no router may cut, is answered. DEADLINE_EXCEEDED: it is not.
  virtual absl::Status Ping(const Source& source, const std::string& destination, int bytes) = 0;
  // Somebody accepts or refuses a TCP connection. DEADLINE_EXCEEDED: there is no answer.
  virtual absl::Status TcpAnswers(const Source& source, const std::string& destination, uint16_t port) = 0;
  // Owners of `address` other than `interface` that answer ARP for it in its network: hardware addresses as /sys writes them.
  // Other interfaces of this machine may be among them.
  virtual absl::StatusOr<std::vector<std::string>> OtherOwners(const std::string& interface, const std::string& address) = 0;
  // host:port takes connections.
  virtual absl::Status TcpAccepts(const std::string& host, uint16_t port) = 0;
  // A Unix socket of packets (SOCK_SEQPACKET) takes connections of this user.
  virtual absl::Status UnixAccepts(const std::string& path) = 0;
  // The process that listens on a Unix socket of streams, by its number here. NOT_FOUND: it has none here, as it runs in a container.
  virtual absl::StatusOr<int> ListenerPid(const std::string& path) = 0;
  virtual absl::StatusOr<ProcessFacts> Process(int pid) = 0;
  virtual std::map<std::string, std::string> Environment() = 0;
  // Files of this name where the loader looks: LD_LIBRARY_PATH, then the system's. Different files, in the loader's order.
  virtual std::vector<std::string> Libraries(const std::string& name) = 0;
  // In a process of its own: a library may do anything.
  virtual absl::Status Loads(const std::string& library) = 0;
  virtual absl::StatusOr<int> NcclVersion() = 0;
  virtual uint64_t LockedMemoryMax() = 0;
  virtual int64_t NowNs() = 0;  // CLOCK_REALTIME
};

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_DOCTOR_MACHINE_H_
