// A machine made of tables, for tests.
#ifndef R2CC_CLIENT_DOCTOR_FAKE_MACHINE_H_
#define R2CC_CLIENT_DOCTOR_FAKE_MACHINE_H_

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "client/doctor/machine.h"

namespace r2cc::client {

class FakeMachine final : public Machine {
 public:
  std::map<std::string, std::string> files;
  std::vector<LocalInterface> interfaces;
  std::map<std::pair<std::string, std::string>, std::string> routes;  // by source and destination; else the source's own interface
  std::map<std::string, int> largest_packet;                          // that reaches a destination; else every one
  std::set<uint16_t> dead_ports;
  std::set<std::string> refused_hosts;
  std::map<std::string, std::vector<std::string>> owners;  // by address
  absl::Status attach;
  std::map<std::string, int> listeners;  // pids by socket
  ProcessFacts process{.pid = 7, .open_files_max = 16'384, .realtime = true};
  std::map<std::string, std::string> environment;
  std::map<std::string, std::vector<std::string>> libraries;
  absl::Status loads;
  int nccl_version = 22'809;

  absl::StatusOr<std::string> Read(const std::string& path) override {
    const auto found = files.find(path);
    if (found == files.end()) return absl::NotFoundError("there is no " + path);
    return found->second;
  }
  std::vector<LocalInterface> Interfaces() override { return interfaces; }
  absl::StatusOr<std::string> Route(const std::string& address, const std::string& destination) override {
    if (const auto found = routes.find({address, destination}); found != routes.end()) return found->second;
    for (const LocalInterface& interface : interfaces)
      for (const auto& one : interface.addresses)
        if (one.text == address) return interface.name;
    return absl::NotFoundError("no route to " + destination);
  }
  absl::Status Ping(const Source& /*source*/, const std::string& destination, int bytes) override {
    const auto found = largest_packet.find(destination);
    if (found == largest_packet.end() || bytes <= found->second) return absl::OkStatus();
    return absl::DeadlineExceededError("no answer");
  }
  absl::Status TcpAnswers(const Source& /*source*/, const std::string& /*destination*/, uint16_t port) override {
    return dead_ports.contains(port) ? absl::DeadlineExceededError("no answer") : absl::OkStatus();
  }
  absl::StatusOr<std::vector<std::string>> OtherOwners(const std::string& /*interface*/, const std::string& address) override {
    return owners[address];
  }
  absl::Status TcpAccepts(const std::string& host, uint16_t port) override {
    if (refused_hosts.contains(host)) return absl::UnavailableError("Connection refused");
    return dead_ports.contains(port) ? absl::DeadlineExceededError("no answer") : absl::OkStatus();
  }
  absl::Status UnixAccepts(const std::string& /*path*/) override { return attach; }
  absl::StatusOr<int> ListenerPid(const std::string& path) override {
    const auto found = listeners.find(path);
    if (found == listeners.end()) return absl::NotFoundError(path + ": its process has no number here");
    return found->second;
  }
  absl::StatusOr<ProcessFacts> Process(int /*pid*/) override { return process; }
  std::map<std::string, std::string> Environment() override { return environment; }
  std::vector<std::string> Libraries(const std::string& name) override { return libraries[name]; }
  absl::Status Loads(const std::string& /*library*/) override { return loads; }
  absl::StatusOr<int> NcclVersion() override { return nccl_version; }
  uint64_t LockedMemoryMax() override { return uint64_t{1} << 40; }
  int64_t NowNs() override { return 1'700'000'000'000'000'000; }
};

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_DOCTOR_FAKE_MACHINE_H_
