#include "netplugin/transport/tcp/descriptors.h"

#include <sys/resource.h>

#include <cerrno>

#include "netplugin/flow/tuning.h"

namespace r2cc::net {
uint64_t DescriptorsMost() {
  rlimit limit;
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 0;
}

void RaiseDescriptorsMost() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

std::string OutOfDescriptors(int failure, uint64_t most) {
  if (failure == EMFILE)
    return "this process has all " + std::to_string(most) +
           " descriptors open that it may: raise its limit (ulimit -n, LimitNOFILE= of systemd, --ulimit nofile= of a container)";
  if (failure == ENFILE) return "this machine has all files open that it may: raise the sysctl fs.file-max";
  return "";
}

void DescriptorWatch::Failed(int failure) {
  const std::string trouble = OutOfDescriptors(failure, DescriptorsMost());
  if (trouble.empty()) return;
  failure_ = failure;
  failed_ = clock_->Now();
  log_(LogLevel::kWarn, "R2CC: no connection can be made or taken: " + trouble);
}

std::string DescriptorWatch::Trouble() const {
  const bool lately = failure_ != 0 && clock_->Now() - failed_ < tuning::kWarnAgainAfter;
  return lately ? OutOfDescriptors(failure_, DescriptorsMost()) : "";
}

}  // namespace r2cc::net
