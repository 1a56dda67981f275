// Implements RdmaWatch over the verbs that the plugin uses. It keeps every device that this user may open open, for its events.
//
// A device that is lost is closed, also one that the kernel no longer lists: some drivers wait for that before they release it, and report
// nothing. A device that comes back is opened again.
#ifndef R2CC_HEALTH_IO_VERBS_RDMA_WATCH_H_
#define R2CC_HEALTH_IO_VERBS_RDMA_WATCH_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/core/clock.h"
#include "base/core/verbs/verbs.h"
#include "base/executor.h"
#include "health/io/rdma_watch.h"

namespace r2cc::health {

// Devices that came or went without an event, and speeds that changed without one, are found within this time. Listing a machine's devices
// takes about a millisecond.
constexpr Nanos kRdmaSweepInterval = 5 * kNanosPerSecond;

// Core thread only.
class VerbsRdmaWatch final : public RdmaWatch {
 public:
  struct Seams {
    verbs::Verbs* verbs;
    Executor* core;
    // Runs calls that may block, for long on a device that dies. It runs its tasks in order.
    Executor* blocking;
    // Has `readable` called on the core's thread while the descriptor is.
    std::function<absl::Status(int fd, std::function<void()> readable)> watch_fd;
    std::function<void(int fd)> unwatch_fd;
  };

  // The seams outlive it, and `verbs` what is posted to `blocking`.
  explicit VerbsRdmaWatch(Seams seams) : seams_(std::move(seams)) {}
  ~VerbsRdmaWatch() override;
  VerbsRdmaWatch(const VerbsRdmaWatch&) = delete;
  VerbsRdmaWatch& operator=(const VerbsRdmaWatch&) = delete;

  void Start(RdmaHandler handler) override;

 private:
  struct Device {
    verbs::DeviceInfo info;
    verbs::ContextId context{};
    int async_fd = -1;
    uint8_t ports = 1;
    bool asked = false;  // and not answered
    bool again = false;  // something happened since
  };
  struct Found {
    int error = 0;                      // of the list; then there is none
    std::vector<std::string> listed;    // all that there are
    std::vector<Device> opened;         // those that are new
    std::map<std::string, int> errors;  // of those that cannot be opened
  };

  void Sweep();
  void OnFound(const Found& found);
  void Ask(const std::string& name);
  void OnAnswer(const std::string& name, verbs::ContextId context, int error, const std::vector<RdmaPort>& ports);
  void ReadEvents(const std::string& name, verbs::ContextId context);
  void Lose(const std::string& name, const std::string& why);
  // The device with this context; null: it is gone.
  Device* Live(const std::string& name, verbs::ContextId context);
  void Close(const Device& device);

  const Seams seams_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  RdmaHandler handler_;
  std::map<std::string, Device> devices_;  // that are open
  std::map<std::string, int> refused_;     // the last error that was reported
  bool sweeping_ = false;
  TimerId timer_ = 0;
};

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_IO_VERBS_RDMA_WATCH_H_
