// The exported symbols: NCCL's CollNet tables, version by version. Each entry adapts its arguments to plugin/calls.h and coll_calls.h and
// does nothing else.

#include "netplugin/abi/collnet_v10.h"
#include "netplugin/abi/collnet_v11.h"
#include "netplugin/abi/collnet_v12.h"
#include "netplugin/abi/collnet_v6.h"
#include "netplugin/abi/collnet_v7.h"
#include "netplugin/abi/collnet_v8.h"
#include "netplugin/abi/collnet_v9.h"
#include "netplugin/plugin/calls.h"
#include "netplugin/plugin/coll_calls.h"
#include "netplugin/plugin/properties.h"

namespace r2cc::net {
namespace {

using abi::Result;

// A negative count or size becomes one that is refused.
size_t SizeOf(int size) { return size < 0 ? SIZE_MAX : static_cast<size_t>(size); }

Result InitV11(void** context, uint64_t, abi::Logger log) { return CallOpenContext(context, log); }
Result ListenV11(void*, int device, void* handle, void** listen_comm) { return CallCollListen(device, handle, listen_comm); }
Result RegisterV6(void*, void* data, int size, int type, void** mhandle) { return CallRegister(data, SizeOf(size), type, mhandle); }
Result RegisterV8(void*, void* data, size_t size, int type, void** mhandle) { return CallRegister(data, size, type, mhandle); }
Result RegisterDmaBuf(void*, void* data, size_t size, int, uint64_t offset, int fd, void** mhandle) {
  return CallRegisterDmaBuf(data, size, offset, fd, mhandle);
}
Result Deregister(void*, void* mhandle) { return CallDeregister(mhandle); }
Result AllReduceV6(void* coll_comm, void* send_data, void* recv_data, int count, abi::DataType type, abi::RedOp op, void* send_mhandle,
                   void* recv_mhandle, void** request) {
  return CallAllReduce(coll_comm, send_data, recv_data, SizeOf(count), type, op, send_mhandle, recv_mhandle, request);
}
// Host memory needs no flush.
Result Flush(void*, void*, int, void*, void** request) {
  *request = nullptr;
  return Result::kSuccess;
}

}  // namespace
}  // namespace r2cc::net

#define R2CC_EXPORT __attribute__((visibility("default")))

namespace net = r2cc::net;
namespace abi = r2cc::abi;

extern "C" {

// In the order of the table. iallgather, ireducescatter and make_v_device may be null, and are: NCCL does these by its rings then.
R2CC_EXPORT abi::CollNetTableV6 ncclCollNetPlugin_v6 = {
    net::kNetName,       net::CallInit,        net::CallCollDevices,    net::Fill<abi::NetPropertiesV6>,
    net::CallCollListen, net::CallCollConnect, net::CallReduceSupport,  net::RegisterV6,
    net::RegisterDmaBuf, net::Deregister,      net::AllReduceV6,        net::Flush,
    net::CallCollTest,   net::CallCloseColl,   net::CallCollCloseListen};

R2CC_EXPORT abi::CollNetTableV7 ncclCollNetPlugin_v7 = {
    net::kNetName,       net::CallInit,        net::CallCollDevices,    net::Fill<abi::NetPropertiesV7>,
    net::CallCollListen, net::CallCollConnect, net::CallReduceSupport,  net::RegisterV6,
    net::RegisterDmaBuf, net::Deregister,      net::AllReduceV6,        net::Flush,
    net::CallCollTest,   net::CallCloseColl,   net::CallCollCloseListen};

R2CC_EXPORT abi::CollNetTableV8 ncclCollNetPlugin_v8 = {net::kNetName,
                                                        net::CallInit,
                                                        net::CallCollDevices,
                                                        net::FillV8,
                                                        net::CallCollListen,
                                                        net::CallCollConnect,
                                                        net::CallReduceSupport,
                                                        net::RegisterV8,
                                                        net::RegisterDmaBuf,
                                                        net::Deregister,
                                                        net::AllReduceV6,
                                                        nullptr,
                                                        nullptr,
                                                        net::Flush,
                                                        net::CallCollTest,
                                                        net::CallCloseColl,
                                                        net::CallCollCloseListen};

R2CC_EXPORT abi::CollNetTableV9 ncclCollNetPlugin_v9 = {net::kNetName,
                                                        net::CallInit,
                                                        net::CallCollDevices,
                                                        net::FillV9<abi::NetPropertiesV9>,
                                                        net::CallCollListen,
                                                        net::CallCollConnect,
                                                        net::CallReduceSupport,
                                                        net::RegisterV8,
                                                        net::RegisterDmaBuf,
                                                        net::Deregister,
                                                        net::CallAllReduce,
                                                        nullptr,
                                                        nullptr,
                                                        net::Flush,
                                                        net::CallCollTest,
                                                        net::CallCloseColl,
                                                        net::CallCollCloseListen,
                                                        nullptr};

R2CC_EXPORT abi::CollNetTableV10 ncclCollNetPlugin_v10 = {net::kNetName,
                                                          net::CallInit,
                                                          net::CallCollDevices,
                                                          net::FillV9<abi::NetPropertiesV9>,
                                                          net::CallCollListen,
                                                          net::CallCollConnect,
                                                          net::CallReduceSupport,
                                                          net::RegisterV8,
                                                          net::RegisterDmaBuf,
                                                          net::Deregister,
                                                          net::CallAllReduce,
                                                          nullptr,
                                                          nullptr,
                                                          net::Flush,
                                                          net::CallCollTest,
                                                          net::CallCloseColl,
                                                          net::CallCollCloseListen,
                                                          nullptr};

R2CC_EXPORT abi::CollNetTableV11 ncclCollNetPlugin_v11 = {net::kNetName,
                                                          net::InitV11,
                                                          net::CallCollDevices,
                                                          net::FillV11<abi::NetPropertiesV11>,
                                                          net::ListenV11,
                                                          net::CallCollConnect,
                                                          net::CallReduceSupport,
                                                          net::RegisterV8,
                                                          net::RegisterDmaBuf,
                                                          net::Deregister,
                                                          net::CallAllReduce,
                                                          nullptr,
                                                          nullptr,
                                                          net::Flush,
                                                          net::CallCollTest,
                                                          net::CallCloseColl,
                                                          net::CallCollCloseListen,
                                                          nullptr,
                                                          net::CallFinalize};

R2CC_EXPORT abi::CollNetTableV12 ncclCollNetPlugin_v12 = {net::kNetName,
                                                          net::InitV11,
                                                          net::CallCollDevices,
                                                          net::FillV12,
                                                          net::ListenV11,
                                                          net::CallCollConnect,
                                                          net::CallReduceSupport,
                                                          net::RegisterV8,
                                                          net::RegisterDmaBuf,
                                                          net::Deregister,
                                                          net::CallAllReduce,
                                                          nullptr,
                                                          nullptr,
                                                          net::Flush,
                                                          net::CallCollTest,
                                                          net::CallCloseColl,
                                                          net::CallCollCloseListen,
                                                          nullptr,
                                                          net::CallFinalize};

}  // extern "C"
