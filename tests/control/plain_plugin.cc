// The plain plugin's tables: the negative control of the drill, and the baseline of comparisons. One socket per communicator on the
// communicator's own rail; when that rail dies, so does the job.
#include <cstdlib>
#include <mutex>
#include <string>
#include <vector>

#include "netplugin/abi/net_v11.h"
#include "netplugin/abi/net_v8.h"
#include "tests/control/plain_comm.h"
#include "tests/control/rails.h"

namespace r2cc::control {
namespace {

using abi::Result;

constexpr int kSpeedMbps = 10'000;

// NCCL initialises a plugin once per process (v8) or once per communicator (v11); the rails are the same each time.
struct Plugin {
  std::mutex mutex;
  abi::Logger log = nullptr;
  std::vector<Rail> rails;
};

Plugin& ThePlugin() {
  static auto* plugin = new Plugin;  // never destroyed: names handed to NCCL stay valid until the process ends
  return *plugin;
}

Result Failed(Result result, const std::string& why) {
  if (result != Result::kSuccess && ThePlugin().log != nullptr)
    ThePlugin().log(abi::DebugLogLevel::kWarn, abi::kLogNet, __FILE__, __LINE__, "%s", why.c_str());
  return result;
}

bool IsRail(int dev) { return dev >= 0 && dev < static_cast<int>(ThePlugin().rails.size()); }

Result Init(abi::Logger log) {
  Plugin& plugin = ThePlugin();
  std::lock_guard<std::mutex> lock(plugin.mutex);
  plugin.log = log;
  if (!plugin.rails.empty()) return Result::kSuccess;
  const char* text = std::getenv("R2CC_RAILS");
  std::string error;
  if (!ParseRails(text != nullptr ? text : "", ListInterfaces(), &plugin.rails, &error)) return Failed(Result::kInvalidUsage, error);
  return Result::kSuccess;
}

Result InitV11(void** ctx, uint64_t, abi::NetCommConfig*, abi::Logger log, abi::ProfilerCallback) {
  *ctx = &ThePlugin();
  return Init(log);
}

Result Devices(int* count) {
  *count = static_cast<int>(ThePlugin().rails.size());
  return Result::kSuccess;
}

template <typename Properties>
Result GetProperties(int dev, Properties* properties) {
  if (!IsRail(dev)) return Failed(Result::kInvalidArgument, "getProperties: there is no such device");
  *properties = {};
  properties->name = ThePlugin().rails[dev].name.data();
  properties->guid = static_cast<uint64_t>(dev) + 1;
  properties->ptr_support = abi::kPtrHost;
  properties->speed_mbps = kSpeedMbps;
  properties->max_comms = 65536;
  properties->max_recvs = 1;
  properties->net_device_type = abi::kNetDeviceHost;
  return Result::kSuccess;
}

Result GetPropertiesV11(int dev, abi::NetPropertiesV11* properties) {
  const Result result = GetProperties(dev, properties);
  if (result != Result::kSuccess) return result;
  properties->v_props.ndevs = 1;
  properties->v_props.devs[0] = dev;
  properties->max_p2p_bytes = abi::kMessageBytesMaxV8;
  properties->max_coll_bytes = abi::kMessageBytesMaxV8;
  properties->max_multi_request_size = 1;
  return Result::kSuccess;
}

Result ListenOn(int dev, void* handle, void** comm) {
  if (!IsRail(dev)) return Failed(Result::kInvalidArgument, "listen: there is no such device");
  std::string error;
  ListenComm* listener = nullptr;
  const Result result = Listen(ThePlugin().rails[dev], static_cast<Handle*>(handle), &listener, &error);
  *comm = listener;
  return Failed(result, error);
}

Result ListenOnV11(void*, int dev, void* handle, void** comm) { return ListenOn(dev, handle, comm); }

Result ConnectFrom(int dev, void* handle, void** comm, abi::NetDeviceHandle**) {
  if (!IsRail(dev)) return Failed(Result::kInvalidArgument, "connect: there is no such device");
  std::string error;
  PlainComm* sender = nullptr;
  const Result result = Connect(ThePlugin().rails[dev], static_cast<Handle*>(handle), &sender, &error);
  *comm = sender;
  return Failed(result, error);
}

Result ConnectFromV11(void*, int dev, void* handle, void** comm, abi::NetDeviceHandle** offload) {
  return ConnectFrom(dev, handle, comm, offload);
}

Result AcceptFrom(void* listener, void** comm, abi::NetDeviceHandle**) {
  std::string error;
  PlainComm* receiver = nullptr;
  const Result result = Accept(static_cast<ListenComm*>(listener), &receiver, &error);
  *comm = receiver;
  return Failed(result, error);
}

Result RegMr(void*, void*, size_t, int type, void** mhandle) {
  *mhandle = nullptr;
  return type == abi::kPtrHost ? Result::kSuccess : Failed(Result::kInvalidArgument, "regMr: host memory only");
}

Result DeregMr(void*, void*) { return Result::kSuccess; }

Result Post(void* comm, void* data, uint64_t bytes, void** request) {
  auto* plain = static_cast<PlainComm*>(comm);
  Request* posted = plain->Post(data, bytes);
  *request = posted;
  return Failed(plain->Pump(), plain->error());
}

Result Isend(void* comm, void* data, int size, int, void*, void** request) {
  return Post(comm, data, static_cast<uint64_t>(size), request);
}
Result IsendV11(void* comm, void* data, size_t size, int, void*, void*, void** request) { return Post(comm, data, size, request); }

Result Irecv(void* comm, int n, void** data, int* sizes, int*, void**, void** request) {
  if (n != 1) return Failed(Result::kInvalidArgument, "irecv: one buffer at a time");
  return Post(comm, data[0], static_cast<uint64_t>(sizes[0]), request);
}

Result IrecvV11(void* comm, int n, void** data, size_t* sizes, int*, void**, void**, void** request) {
  if (n != 1) return Failed(Result::kInvalidArgument, "irecv: one buffer at a time");
  return Post(comm, data[0], sizes[0], request);
}

Result Iflush(void*, int, void**, int*, void**, void** request) {
  *request = nullptr;
  return Result::kSuccess;
}

Result Test(void* request, int* done, int* sizes) {
  auto* tested = static_cast<Request*>(request);
  PlainComm* comm = tested->comm;
  const Result result = comm->Test(tested, done, sizes);
  return Failed(result, comm->error());
}

Result CloseComm(void* comm) {
  delete static_cast<PlainComm*>(comm);
  return Result::kSuccess;
}

Result StopListening(void* comm) {
  delete static_cast<ListenComm*>(comm);
  return Result::kSuccess;
}

Result Finalize(void*) { return Result::kSuccess; }

}  // namespace
}  // namespace r2cc::control

extern "C" {

__attribute__((visibility("default"))) extern const r2cc::abi::NetTableV8 ncclNetPlugin_v8;
__attribute__((visibility("default"))) extern const r2cc::abi::NetTableV11 ncclNetPlugin_v11;

const r2cc::abi::NetTableV8 ncclNetPlugin_v8 = {
    .name = "PLAIN",
    .init = r2cc::control::Init,
    .devices = r2cc::control::Devices,
    .get_properties = r2cc::control::GetProperties<r2cc::abi::NetPropertiesV8>,
    .listen = r2cc::control::ListenOn,
    .connect = r2cc::control::ConnectFrom,
    .accept = r2cc::control::AcceptFrom,
    .reg_mr = r2cc::control::RegMr,
    .reg_mr_dma_buf = nullptr,
    .dereg_mr = r2cc::control::DeregMr,
    .isend = r2cc::control::Isend,
    .irecv = r2cc::control::Irecv,
    .iflush = r2cc::control::Iflush,
    .test = r2cc::control::Test,
    .close_send = r2cc::control::CloseComm,
    .close_recv = r2cc::control::CloseComm,
    .close_listen = r2cc::control::StopListening,
    .get_device_mr = nullptr,
    .irecv_consumed = nullptr,
};

const r2cc::abi::NetTableV11 ncclNetPlugin_v11 = {
    .name = "PLAIN",
    .init = r2cc::control::InitV11,
    .devices = r2cc::control::Devices,
    .get_properties = r2cc::control::GetPropertiesV11,
    .listen = r2cc::control::ListenOnV11,
    .connect = r2cc::control::ConnectFromV11,
    .accept = r2cc::control::AcceptFrom,
    .reg_mr = r2cc::control::RegMr,
    .reg_mr_dma_buf = nullptr,
    .dereg_mr = r2cc::control::DeregMr,
    .isend = r2cc::control::IsendV11,
    .irecv = r2cc::control::IrecvV11,
    .iflush = r2cc::control::Iflush,
    .test = r2cc::control::Test,
    .close_send = r2cc::control::CloseComm,
    .close_recv = r2cc::control::CloseComm,
    .close_listen = r2cc::control::StopListening,
    .get_device_mr = nullptr,
    .irecv_consumed = nullptr,
    .make_v_device = nullptr,
    .finalize = r2cc::control::Finalize,
    .set_net_attr = nullptr,
};

}  // extern "C"
