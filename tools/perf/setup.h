// Makes and ends the connections of a rank, like NCCL's service thread.
#ifndef R2CC_TOOLS_PERF_SETUP_H_
#define R2CC_TOOLS_PERF_SETUP_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "netplugin/abi/nccl_types.h"
#include "tools/perf/net.h"
#include "tools/perf/progress_loop.h"
#include "tools/perf/status.h"

namespace r2cc::perf {

// Service thread only. The flows exist already, without comm and mhandle; Connect gives them both.
class Setup {
 public:
  Setup(Net* net, std::vector<Channel>* channels, int devices, int rank, int ranks)
      : net_(net), channels_(channels), devices_(devices), rank_(rank), ranks_(ranks) {}

  // Listens once for each receive flow. *handles: what the other ranks need, the same length on every rank.
  Status Listen(std::string* handles);

  // all_handles: every rank's, by rank. Connects and accepts in turn, without waiting for one, until all are there; then registers their
  // memory. timeout_ns as for a run; 0: none.
  Status Connect(const std::vector<std::string>& all_handles, int64_t timeout_ns);

  // Deregisters and closes everything that Connect made.
  Status Close();

 private:
  using Handle = std::array<char, abi::kNetHandleBytesMax>;

  struct Pending {
    Flow* flow = nullptr;
    bool sends = false;
    void* listen_comm = nullptr;
    // A plugin may keep the state of an unfinished connect in here, so each has its own, aligned like NCCL's.
    alignas(16) Handle handle{};
  };

  size_t HandleAt(int channel, int peer) const { return (static_cast<size_t>(channel) * ranks_ + peer) * abi::kNetHandleBytesMax; }
  Status TryOnce(Pending* pending);
  Status Register(Flow* flow);
  Status Failed(const char* call, abi::Result result, const Flow& flow) const;

  Net* const net_;
  std::vector<Channel>* const channels_;
  const int devices_;
  const int rank_;
  const int ranks_;
  std::vector<std::unique_ptr<Pending>> pending_;  // a handle keeps its address between the calls, as under NCCL
};

}  // namespace r2cc::perf

#endif  // R2CC_TOOLS_PERF_SETUP_H_
