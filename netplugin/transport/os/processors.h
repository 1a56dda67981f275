// The processors that the job may use. NCCL pins the threads that call the plugin next to their GPUs; what the job itself was given
// (taskset, numactl, a batch system) is what its main thread may use.
#ifndef R2CC_NETPLUGIN_TRANSPORT_OS_PROCESSORS_H_
#define R2CC_NETPLUGIN_TRANSPORT_OS_PROCESSORS_H_

#include <vector>

namespace r2cc::net {

class Processors {
 public:
  // Those of the process's main thread at this moment; of none, if the kernel does not say.
  static Processors OfMainThread();

  // At least 1.
  int count() const;
  // The calling thread, and what it starts, runs on these from now on. Without any it stays where it is.
  void Use() const;

 private:
  std::vector<unsigned long> mask_;  // as sched_setaffinity() wants it
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_OS_PROCESSORS_H_
