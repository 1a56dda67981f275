// The exported symbols: NCCL's net tables, version by version. Each entry adapts its arguments to plugin/calls.h and does nothing else.

#include "netplugin/abi/nccl_types.h"
#include "netplugin/abi/net_v10.h"
#include "netplugin/abi/net_v11.h"
#include "netplugin/abi/net_v12.h"
#include "netplugin/abi/net_v7.h"
#include "netplugin/abi/net_v8.h"
#include "netplugin/abi/net_v9.h"
#include "netplugin/plugin/calls.h"
#include "netplugin/plugin/properties.h"
#include "netplugin/plugin/registration.h"

namespace r2cc::net {
namespace {

using abi::Result;

// ---- entries that several versions share ----

Result InitV10(abi::Logger log, abi::ProfilerCallback) { return CallInit(log); }
Result InitV11(void** context, uint64_t communicator, abi::NetCommConfig* config, abi::Logger log, abi::ProfilerCallback) {
  return CallOpenContext(context, communicator, log, config);
}

Result ListenV7(int device, void* handle, void** listen_comm) { return CallListen(device, handle, listen_comm); }
Result ListenV11(void*, int device, void* handle, void** listen_comm) { return CallListen(device, handle, listen_comm); }

Result ConnectV7(int device, void* handle, void** send_comm, abi::NetDeviceHandle**) {
  return CallConnect(nullptr, device, handle, send_comm);
}
Result ConnectV10(int device, abi::NetCommConfig* config, void* handle, void** send_comm, abi::NetDeviceHandle**) {
  const Result used = CallUse(config);
  return used == Result::kSuccess ? CallConnect(nullptr, device, handle, send_comm) : used;
}
Result ConnectV11(void* context, int device, void* handle, void** send_comm, abi::NetDeviceHandle**) {
  return CallConnect(context, device, handle, send_comm);
}

Result AcceptV7(void* listen_comm, void** recv_comm, abi::NetDeviceHandle**) { return CallAccept(listen_comm, recv_comm); }

Result SendV7(void* send_comm, void* data, int size, int, void* mhandle, void** request) {
  return CallSend(send_comm, data, SizeOf(size), mhandle, request);
}
Result SendV9(void* send_comm, void* data, size_t size, int, void* mhandle, void** request) {
  return CallSend(send_comm, data, size, mhandle, request);
}
Result SendV10(void* send_comm, void* data, size_t size, int, void* mhandle, void*, void** request) {
  return CallSend(send_comm, data, size, mhandle, request);
}

Result ReceiveV7(void* recv_comm, int n, void** data, int* sizes, int*, void** mhandles, void** request) {
  const size_t capacity = SizeOf(sizes[0]);
  return CallReceive(recv_comm, n, data, &capacity, mhandles, request);
}
Result ReceiveV9(void* recv_comm, int n, void** data, size_t* sizes, int*, void** mhandles, void** request) {
  return CallReceive(recv_comm, n, data, sizes, mhandles, request);
}
Result ReceiveV10(void* recv_comm, int n, void** data, size_t* sizes, int*, void** mhandles, void**, void** request) {
  return CallReceive(recv_comm, n, data, sizes, mhandles, request);
}

// What is received in a GPU's memory is seen by it before the receive is done.
Result Flush(void*, int, void**, int*, void**, void** request) {
  *request = nullptr;
  return Result::kSuccess;
}

}  // namespace
}  // namespace r2cc::net

#define R2CC_EXPORT __attribute__((visibility("default")))

namespace net = r2cc::net;
namespace abi = r2cc::abi;

extern "C" {

// In the order of the table: name .. close_listen, then what later versions append. get_device_mr, irecv_consumed,
// make_v_device and set_net_attr may be null, and are.
R2CC_EXPORT abi::NetTableV7 ncclNetPlugin_v7 = {net::kNetName,
                                                net::CallInit,
                                                net::CallDevices,
                                                net::Fill<abi::NetPropertiesV7>,
                                                net::ListenV7,
                                                net::ConnectV7,
                                                net::AcceptV7,
                                                net::RegisterV7,
                                                net::RegisterDmaBuf,
                                                net::Deregister,
                                                net::SendV7,
                                                net::ReceiveV7,
                                                net::Flush,
                                                net::CallTest,
                                                net::CallCloseSend,
                                                net::CallCloseReceive,
                                                net::CallCloseListen,
                                                nullptr,
                                                nullptr};

R2CC_EXPORT abi::NetTableV8 ncclNetPlugin_v8 = {net::kNetName,
                                                net::CallInit,
                                                net::CallDevices,
                                                net::Fill<abi::NetPropertiesV8>,
                                                net::ListenV7,
                                                net::ConnectV7,
                                                net::AcceptV7,
                                                net::RegisterV8,
                                                net::RegisterDmaBuf,
                                                net::Deregister,
                                                net::SendV7,
                                                net::ReceiveV7,
                                                net::Flush,
                                                net::CallTest,
                                                net::CallCloseSend,
                                                net::CallCloseReceive,
                                                net::CallCloseListen,
                                                nullptr,
                                                nullptr};

R2CC_EXPORT abi::NetTableV9 ncclNetPlugin_v9 = {net::kNetName,
                                                net::CallInit,
                                                net::CallDevices,
                                                net::FillV9<abi::NetPropertiesV9>,
                                                net::ListenV7,
                                                net::ConnectV7,
                                                net::AcceptV7,
                                                net::RegisterV8,
                                                net::RegisterDmaBuf,
                                                net::Deregister,
                                                net::SendV9,
                                                net::ReceiveV9,
                                                net::Flush,
                                                net::CallTest,
                                                net::CallCloseSend,
                                                net::CallCloseReceive,
                                                net::CallCloseListen,
                                                nullptr,
                                                nullptr,
                                                nullptr};

R2CC_EXPORT abi::NetTableV10 ncclNetPlugin_v10 = {net::kNetName,
                                                  net::InitV10,
                                                  net::CallDevices,
                                                  net::FillV9<abi::NetPropertiesV9>,
                                                  net::ListenV7,
                                                  net::ConnectV10,
                                                  net::AcceptV7,
                                                  net::RegisterV8,
                                                  net::RegisterDmaBuf,
                                                  net::Deregister,
                                                  net::SendV10,
                                                  net::ReceiveV10,
                                                  net::Flush,
                                                  net::CallTest,
                                                  net::CallCloseSend,
                                                  net::CallCloseReceive,
                                                  net::CallCloseListen,
                                                  nullptr,
                                                  nullptr,
                                                  nullptr};

R2CC_EXPORT abi::NetTableV11 ncclNetPlugin_v11 = {net::kNetName,
                                                  net::InitV11,
                                                  net::CallDevices,
                                                  net::FillV11<abi::NetPropertiesV11>,
                                                  net::ListenV11,
                                                  net::ConnectV11,
                                                  net::AcceptV7,
                                                  net::RegisterV8,
                                                  net::RegisterDmaBuf,
                                                  net::Deregister,
                                                  net::SendV10,
                                                  net::ReceiveV10,
                                                  net::Flush,
                                                  net::CallTest,
                                                  net::CallCloseSend,
                                                  net::CallCloseReceive,
                                                  net::CallCloseListen,
                                                  nullptr,
                                                  nullptr,
                                                  nullptr,
                                                  net::CallFinalize,
                                                  nullptr};

R2CC_EXPORT abi::NetTableV12 ncclNetPlugin_v12 = {net::kNetName,
                                                  net::InitV11,
                                                  net::CallDevices,
                                                  net::FillV12,
                                                  net::ListenV11,
                                                  net::ConnectV11,
                                                  net::AcceptV7,
                                                  net::RegisterV8,
                                                  net::RegisterDmaBuf,
                                                  net::Deregister,
                                                  net::SendV10,
                                                  net::ReceiveV10,
                                                  net::Flush,
                                                  net::CallTest,
                                                  net::CallCloseSend,
                                                  net::CallCloseReceive,
                                                  net::CallCloseListen,
                                                  nullptr,
                                                  nullptr,
                                                  nullptr,
                                                  net::CallFinalize,
                                                  nullptr};

}  // extern "C"
