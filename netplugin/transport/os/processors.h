// Finds the processors that the job may use. NCCL pins the threads that call the plugin next to their GPUs; the job's own limits (taskset,
// numactl, a batch system) are those of its main thread.
#ifndef R2CC_NETPLUGIN_TRANSPORT_OS_PROCESSORS_H_
#define R2CC_NETPLUGIN_TRANSPORT_OS_PROCESSORS_H_

#include <vector>

namespace r2cc::net {

class Processors {
 public:
  // Those of the process's main thread now; an empty set if the kernel reports none.
  static Processors OfMainThread();

  // At least 1.
  int count() const;
  // The calling thread, and the threads that it starts, run on these from now on. An empty set changes nothing.
  void Use() const;

 private:
  std::vector<unsigned long> mask_;  // in the form of sched_setaffinity()
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_OS_PROCESSORS_H_
