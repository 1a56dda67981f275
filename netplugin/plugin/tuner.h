// Implements NCCL's tuner table for all its versions: one function per entry. The versions differ only in the shapes of their arguments
// (tuner_tables.cc). Any thread may call them. They start nothing, neither rails nor threads nor the connection to the daemon, because a
// job may take its tuner from here and its network from elsewhere. The environment is read once per process, with the first communicator.
//
// NCCL passes an error of a tuner to the job, and ranks that choose differently hang. So a call that cannot be answered is no opinion: a
// null pointer, impossible sizes, a forked process, an environment that the plugin refuses.
#ifndef R2CC_NETPLUGIN_PLUGIN_TUNER_H_
#define R2CC_NETPLUGIN_PLUGIN_TUNER_H_

#include <cstddef>
#include <cstdint>

#include "netplugin/abi/nccl_types.h"
#include "netplugin/abi/seat_v2.h"

namespace r2cc::net {

constexpr char kTunerName[] = "R2CC";

// One context a communicator; CloseTuner() frees it. An error only if there is no memory: a rank without a tuner would choose differently
// from the others, and at this point NCCL can still refuse the communicator on all of them.
abi::Result OpenTuner(size_t ranks, size_t nodes, abi::Logger log, void** context) noexcept;
abi::Result CloseTuner(void* context) noexcept;

// For libr2cc-nccl.so: see abi/seat_v2.h.
void WatchForSeat(size_t ranks) noexcept;
int MarkSeat() noexcept;
void WatchAllReduce(size_t bytes) noexcept;
uint64_t WatchedCommunicator() noexcept;
int SetWay(uint64_t number, abi::SeatWay way) noexcept;

// Always success.
abi::Result TuneCosts(void* context, abi::Function function, size_t bytes, float** cost, int algorithms, int protocols) noexcept;
// Sets both or neither.
abi::Result TuneChoice(void* context, abi::Function function, size_t bytes, int collnet_support, int* algorithm, int* protocol) noexcept;

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_PLUGIN_TUNER_H_
