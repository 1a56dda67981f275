// The exported symbols: NCCL's tuner tables, version by version. Each entry adapts its arguments to plugin/tuner.h and does nothing else.
// They have a library of their own, which NCCL opens where NCCL_TUNER_PLUGIN says so.

#include <cstdint>

#include "netplugin/abi/nccl_types.h"
#include "netplugin/abi/seat_v2.h"
#include "netplugin/abi/tuner_v2.h"
#include "netplugin/abi/tuner_v3.h"
#include "netplugin/abi/tuner_v4.h"
#include "netplugin/abi/tuner_v5.h"
#include "netplugin/abi/tuner_v6.h"
#include "netplugin/plugin/tuner.h"

namespace r2cc::net {
namespace {

using abi::Function;
using abi::Result;

Result OpenV5(void** context, uint64_t, size_t ranks, size_t nodes, abi::Logger log, abi::NvlDomainInfoV5*, abi::TunerConstantsV5*) {
  return OpenTuner(ranks, nodes, log, context);
}

Result AskV2(void* context, Function function, size_t bytes, int collnet_support, int, int, int* algorithm, int* protocol, int*) {
  return TuneChoice(context, function, bytes, collnet_support, algorithm, protocol);
}
Result AskV3(void* context, Function function, size_t bytes, int, float** cost, int algorithms, int protocols, int*) {
  return TuneCosts(context, function, bytes, cost, algorithms, protocols);
}
Result AskV4(void* context, Function function, size_t bytes, int, float** cost, int algorithms, int protocols, int, int*) {
  return TuneCosts(context, function, bytes, cost, algorithms, protocols);
}

}  // namespace
}  // namespace r2cc::net

#define R2CC_EXPORT __attribute__((visibility("default")))

namespace net = r2cc::net;
namespace abi = r2cc::abi;

extern "C" {

// In the order of the table: name, init, getCollInfo, destroy or finalize; in v6 getChunkSize, which may be null, and is.
R2CC_EXPORT abi::TunerTableV2 ncclTunerPlugin_v2 = {net::kTunerName, net::OpenTuner, net::AskV2, net::CloseTuner};
R2CC_EXPORT abi::TunerTableV3 ncclTunerPlugin_v3 = {net::kTunerName, net::OpenTuner, net::AskV3, net::CloseTuner};
R2CC_EXPORT abi::TunerTableV4 ncclTunerPlugin_v4 = {net::kTunerName, net::OpenTuner, net::AskV4, net::CloseTuner};
R2CC_EXPORT abi::TunerTableV5 ncclTunerPlugin_v5 = {net::kTunerName, net::OpenV5, net::AskV4, net::CloseTuner};
R2CC_EXPORT abi::TunerTableV6 ncclTunerPlugin_v6 = {net::kTunerName, net::OpenV5, net::AskV4, net::CloseTuner, nullptr};

// And what libr2cc-nccl.so finds here.
R2CC_EXPORT abi::SeatTunerTableV3 r2cc_seat_tuner_v3 = {net::WatchForSeat, net::MarkSeat, net::WatchAllReduce, net::WatchedCommunicator,
                                                        net::SetWay};

}  // extern "C"
