// The exported symbols: NCCL's CollNet tables, version by version. Each entry adapts its arguments to plugin/calls.h and coll_calls.h and
// does nothing else.

#include "netplugin/abi/collnet_v10.h"
#include "netplugin/abi/collnet_v11.h"
#include "netplugin/abi/collnet_v12.h"
#include "netplugin/abi/collnet_v7.h"
#include "netplugin/abi/collnet_v8.h"
#include "netplugin/abi/collnet_v9.h"
#include "netplugin/plugin/calls.h"
#include "netplugin/plugin/coll_calls.h"
#include "netplugin/plugin/properties.h"
#include "netplugin/plugin/registration.h"

namespace r2cc::net {
namespace {

using abi::Result;

// A context of CollNet's would be lost where CollNet has no devices. NCCL 2.28.3 then ends it by a table that the communicator does not
// have, and crashes in ncclCommDestroy; later releases never end it.
Result InitV11(void** context, uint64_t, abi::Logger log) {
  *context = nullptr;
  return CallInit(log);
}
Result FinalizeV11(void*) { return Result::kSuccess; }
Result ListenV11(void*, int device, void* handle, void** listen_comm) { return CallCollListen(device, handle, listen_comm); }
Result AllReduceV7(void* coll_comm, void* send_data, void* recv_data, int count, abi::DataType type, abi::RedOp op, void* send_mhandle,
                   void* recv_mhandle, void** request) {
  return CallAllReduce(coll_comm, send_data, recv_data, SizeOf(count), type, op, send_mhandle, recv_mhandle, request);
}
// Nothing needs one: vectors lie in host memory.
Result Flush(void*, void*, int, void*, void** request) {
  *request = nullptr;
  return Result::kSuccess;
}

// In the order of the table. reg_mr_dma_buf may be null, and is: vectors lie in host memory. iallgather, ireducescatter and make_v_device
// may be null, and are: NCCL takes its rings then. It would use the first two on machines with an NVSwitch, where each GPU has a NIC
// (CollNetDirect, NVLS), and nothing could be gained: each member receives the vectors of all others, and its own rails set the time, as
// they do in a ring (docs/internals/schedules.md).
constexpr abi::CollNetTableV7 TableV7() {
  return {kNetName,       CallInit,        CallCollDevices,    Fill<abi::NetPropertiesV7>,
          CallCollListen, CallCollConnect, CallReduceSupport,  CollRegisterV7,
          nullptr,        Deregister,      AllReduceV7,        Flush,
          CallCollTest,   CallCloseColl,   CallCollCloseListen};
}

constexpr abi::CollNetTableV8 TableV8() {
  return {kNetName,
          CallInit,
          CallCollDevices,
          Fill<abi::NetPropertiesV8>,
          CallCollListen,
          CallCollConnect,
          CallReduceSupport,
          CollRegisterV8,
          nullptr,
          Deregister,
          AllReduceV7,
          nullptr,
          nullptr,
          Flush,
          CallCollTest,
          CallCloseColl,
          CallCollCloseListen};
}

constexpr abi::CollNetTableV9 TableV9() {
  return {kNetName,
          CallInit,
          CallCollDevices,
          FillV9<abi::NetPropertiesV9>,
          CallCollListen,
          CallCollConnect,
          CallReduceSupport,
          CollRegisterV8,
          nullptr,
          Deregister,
          CallAllReduce,
          nullptr,
          nullptr,
          Flush,
          CallCollTest,
          CallCloseColl,
          CallCollCloseListen,
          nullptr};
}

template <typename Table, auto kFill>
constexpr Table FromV11() {
  return {kNetName,       InitV11,       CallCollDevices,     kFill,         ListenV11,  CallCollConnect, CallReduceSupport,
          CollRegisterV8, nullptr,       Deregister,          CallAllReduce, nullptr,    nullptr,         Flush,
          CallCollTest,   CallCloseColl, CallCollCloseListen, nullptr,       FinalizeV11};
}

}  // namespace
}  // namespace r2cc::net

#define R2CC_EXPORT __attribute__((visibility("default")))

namespace net = r2cc::net;
namespace abi = r2cc::abi;

extern "C" {

R2CC_EXPORT abi::CollNetTableV7 ncclCollNetPlugin_v7 = net::TableV7();
R2CC_EXPORT abi::CollNetTableV8 ncclCollNetPlugin_v8 = net::TableV8();
R2CC_EXPORT abi::CollNetTableV9 ncclCollNetPlugin_v9 = net::TableV9();
R2CC_EXPORT abi::CollNetTableV10 ncclCollNetPlugin_v10 = net::TableV9();
R2CC_EXPORT abi::CollNetTableV11 ncclCollNetPlugin_v11 = net::FromV11<abi::CollNetTableV11, net::FillV11<abi::NetPropertiesV11>>();
R2CC_EXPORT abi::CollNetTableV12 ncclCollNetPlugin_v12 = net::FromV11<abi::CollNetTableV12, net::FillV12>();

}  // extern "C"
