// The machine itself.
#ifndef R2CC_CLIENT_DOCTOR_OS_MACHINE_H_
#define R2CC_CLIENT_DOCTOR_OS_MACHINE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "client/doctor/machine.h"

namespace r2cc::client {

class OsMachine final : public Machine {
 public:
  // `environment`: of this process. `now_ns`: CLOCK_REALTIME.
  OsMachine(std::map<std::string, std::string> environment, std::function<int64_t()> now_ns)
      : environment_(std::move(environment)), now_ns_(std::move(now_ns)) {}

  absl::StatusOr<std::string> Read(const std::string& path) override;
  std::vector<LocalInterface> Interfaces() override;
  absl::StatusOr<std::string> Route(const std::string& address, const std::string& destination) override;
  absl::Status Ping(const Source& source, const std::string& destination, int bytes) override;
  absl::Status TcpAnswers(const Source& source, const std::string& destination, uint16_t port) override;
  absl::StatusOr<std::vector<std::string>> OtherOwners(const std::string& interface, const std::string& address) override;
  absl::Status TcpAccepts(const std::string& host, uint16_t port) override;
  absl::Status UnixAccepts(const std::string& path) override;
  absl::StatusOr<int> ListenerPid(const std::string& path) override;
  absl::StatusOr<ProcessFacts> Process(int pid) override;
  std::map<std::string, std::string> Environment() override { return environment_; }
  std::vector<std::string> Libraries(const std::string& name) override;
  absl::Status Loads(const std::string& library) override;
  absl::StatusOr<int> NcclVersion() override;
  uint64_t LockedMemoryMax() override;
  int64_t NowNs() override { return now_ns_(); }

 private:
  const std::map<std::string, std::string> environment_;
  const std::function<int64_t()> now_ns_;
};

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_DOCTOR_OS_MACHINE_H_
