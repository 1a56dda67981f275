// Defines the scalar types, constants and callbacks that NCCL's plugin tables share, in their memory layout (NCCL 2.19 to 2.30).
//
// Everything in this folder is layout: field order and width are the contract, the names are ours. Nothing here depends on NCCL's headers,
// so the plugin and r2cc-perf build on a machine that has never seen NCCL.
#ifndef R2CC_NETPLUGIN_ABI_NCCL_TYPES_H_
#define R2CC_NETPLUGIN_ABI_NCCL_TYPES_H_

#include <cstddef>
#include <cstdint>

namespace r2cc::abi {

// ncclResult_t.
enum class Result : int {
  kSuccess = 0,
  kUnhandledCudaError = 1,
  kSystemError = 2,
  kInternalError = 3,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kRemoteError = 6,
  kInProgress = 7,
  kTimeout = 8,  // since 2.30
};

// The name in NCCL's manual; "ncclResult?" for a value that no version knows.
constexpr const char* ResultName(Result result) {
  switch (result) {
    case Result::kSuccess: return "ncclSuccess";
    case Result::kUnhandledCudaError: return "ncclUnhandledCudaError";
    case Result::kSystemError: return "ncclSystemError";
    case Result::kInternalError: return "ncclInternalError";
    case Result::kInvalidArgument: return "ncclInvalidArgument";
    case Result::kInvalidUsage: return "ncclInvalidUsage";
    case Result::kRemoteError: return "ncclRemoteError";
    case Result::kInProgress: return "ncclInProgress";
    case Result::kTimeout: return "ncclTimeout";
  }
  return "ncclResult?";
}

// ncclDataType_t.
enum class DataType : int {
  kInt8 = 0,
  kUint8 = 1,
  kInt32 = 2,
  kUint32 = 3,
  kInt64 = 4,
  kUint64 = 5,
  kFloat16 = 6,
  kFloat32 = 7,
  kFloat64 = 8,
  kBfloat16 = 9,
  kFloat8e4m3 = 10,  // since 2.24
  kFloat8e5m2 = 11,  // since 2.24
};

// ncclRedOp_t.
enum class RedOp : int { kSum = 0, kProd = 1, kMax = 2, kMin = 3, kAvg = 4 };

// ncclFunc_t, the values that NCCL passes to a tuner.
enum class Function : int { kBroadcast = 0, kReduce = 1, kAllGather = 2, kReduceScatter = 3, kAllReduce = 4 };

// NCCL_ALGO_* and NCCL_PROTO_*: the rows and columns of a tuner's cost table. Older versions have fewer rows.
enum class Algorithm : int { kTree = 0, kRing = 1, kCollNetDirect = 2, kCollNetChain = 3, kNvls = 4, kNvlsTree = 5, kPat = 6 };
enum class Protocol : int { kLl = 0, kLl128 = 1, kSimple = 2 };
constexpr float kCostIgnored = -1.0f;  // NCCL_ALGO_PROTO_IGNORE: an entry that may not be chosen

// ncclDebugLogLevel.
enum class DebugLogLevel : int { kNone = 0, kVersion = 1, kWarn = 2, kInfo = 3, kAbort = 4, kTrace = 5 };

// ncclDebugLogSubSys: bits of a logger's flags.
constexpr unsigned long kLogInit = 0x1;
constexpr unsigned long kLogNet = 0x10;
constexpr unsigned long kLogEnv = 0x80;
constexpr unsigned long kLogAll = ~0ul;

// ncclDebugLogger_t. Thread-safe; adds the line feed itself.
using Logger = void (*)(DebugLogLevel level, unsigned long flags, const char* file, int line, const char* format, ...);

// ncclProfilerCallback_t (v10 and later). type: 0 start, 1 stop, 2 update, 3 update and stop.
using ProfilerCallback = Result (*)(void** event, int type, void* parent, int64_t plugin_id, void* data);

// Kinds of memory: regMr's type, and the bits of ptr_support.
constexpr int kPtrHost = 0x1;
constexpr int kPtrCuda = 0x2;
constexpr int kPtrDmaBuf = 0x4;

constexpr size_t kNetHandleBytesMax = 128;              // NCCL_NET_HANDLE_MAXSIZE
constexpr int kNetRequestsMax = 32;                     // outstanding requests of one communicator, times max_recvs if grouped
constexpr int kNetDeviceHost = 0;                       // net_device_type: the proxy moves the data, not a GPU
constexpr int kUndefined = -1;                          // traffic class, rail, plane and network attributes that are not set
constexpr size_t kMessageBytesMax = size_t{1} << 40;    // max_p2p_bytes and max_coll_bytes lie in 1..this
constexpr size_t kMessageBytesMaxV8 = size_t{1} << 30;  // no message of a v7 or v8 table is larger
inline void* const kOptionalRecvCompletion = reinterpret_cast<void*>(uintptr_t{0x1});  // on entry to irecv: "completion optional"

// ncclNetDeviceHandle_v7_t and later. Only for devices with GPU offload; all others do not set the out-pointer.
struct NetDeviceHandle {
  int net_device_type;
  int net_device_version;
  void* handle;
  size_t size;
  int needs_proxy_progress;
};
static_assert(sizeof(NetDeviceHandle) == 32 && offsetof(NetDeviceHandle, handle) == 8 &&
              offsetof(NetDeviceHandle, needs_proxy_progress) == 24);

// ncclNetCommConfig_v10_t and later.
struct NetCommConfig {
  int traffic_class;
};
static_assert(sizeof(NetCommConfig) == 4);

// ncclNetVDeviceProps: the physical devices behind one device.
struct NetVDevicePropsV9 {  // v9 to v11
  int ndevs;
  int devs[4];
};
struct NetVDevicePropsV12 {
  int ndevs;
  int devs[8];
};
static_assert(sizeof(NetVDevicePropsV9) == 20 && sizeof(NetVDevicePropsV12) == 36);

// ncclNetAttr_v11_t: a hint before transfers. op, algo and proto are bit masks (1 << value).
struct NetCommAttrV11 {
  int32_t max_concurrent_peers;
  int32_t min_concurrent_peers;
  int32_t max_flows_per_peer;
  int32_t min_flows_per_peer;
};
struct NetAttrV11 {
  NetCommAttrV11 send;
  NetCommAttrV11 recv;
  uint32_t op;
  uint32_t algo;
  uint32_t proto;
};
static_assert(sizeof(NetAttrV11) == 44 && offsetof(NetAttrV11, op) == 32);

}  // namespace r2cc::abi

#endif  // R2CC_NETPLUGIN_ABI_NCCL_TYPES_H_
