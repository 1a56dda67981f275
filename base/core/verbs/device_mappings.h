// Finds the mappings of RDMA devices in this process: queues and doorbells that the device and the process share.
//
// Reason: a forked child has copies of them, each of which keeps the device's file open, and with it the queue pairs of a process that
// died: its peers' devices get answers as if it still ran.
#ifndef R2CC_BASE_CORE_VERBS_DEVICE_MAPPINGS_H_
#define R2CC_BASE_CORE_VERBS_DEVICE_MAPPINGS_H_

#include <cstdint>
#include <istream>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/mutex.h"

namespace r2cc::verbs {

constexpr std::string_view kDeviceFiles = "/dev/infiniband/";

struct Mapping {
  uintptr_t begin = 0;
  uintptr_t end = 0;
  bool operator==(const Mapping&) const = default;
};

// The mappings of files whose paths begin with `files`, from the text of /proc/self/maps.
std::vector<Mapping> MappingsOf(std::string_view files, std::istream& maps);

// Children that are forked from now on have none of those that are there. Any thread.
class DeviceMappings {
 public:
  explicit DeviceMappings(std::string_view files = kDeviceFiles) : files_(files) {}

  // Calls what makes or destroys something that is mapped; children are without it afterwards. That takes as long as the process has
  // mappings: a millisecond for thousands. While another thread is in such a call, which may take for ever on a device that dies, it waits
  // for the end of that one: what is unmapped meanwhile may be something else by the time that it is kept from children.
  template <typename Call>
  auto Change(const Call& call) {
    {
      const MutexLock lock(mutex_);
      ++changing_;
    }
    const auto result = call();
    const MutexLock lock(mutex_);
    if (--changing_ == 0) KeepFromChildren();
    return result;
  }

 private:
  void KeepFromChildren() R2CC_REQUIRES(mutex_);

  const std::string files_;
  Mutex mutex_;
  int changing_ R2CC_GUARDED_BY(mutex_) = 0;  // calls under way
};

}  // namespace r2cc::verbs

#endif  // R2CC_BASE_CORE_VERBS_DEVICE_MAPPINGS_H_
