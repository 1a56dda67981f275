// A library with the names of the CUDA driver's that stands for two GPUs, of which the job uses the second, in host memory. It writes down
// what is out of order; stub_libcuda_errors() says how often.
#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include "base/core/cuda/libcuda_calls.h"

namespace {

using namespace r2cc::gpu;

constexpr Result kInvalid = 1, kOutOfMemory = 2;
constexpr int kUsed = 1;

int errors = 0, depth = 0, capture_mode = 0, unsynchronized = 0;
char context_of_used, stream_of_used, event_of_used;
std::map<Pointer, size_t> memory;

bool InContext() {
  if (depth == 0) ++errors;
  return depth > 0;
}

}  // namespace

extern "C" {

int stub_libcuda_errors() { return errors + depth + unsynchronized + (capture_mode != 0 ? 1 : 0) + static_cast<int>(memory.size()); }

Result cuInit(unsigned) { return 0; }
Result cuGetErrorString(Result error, const char** text) {
  *text = "out of memory";
  return error == kOutOfMemory ? 0 : kInvalid;
}
Result cuDeviceGetCount(int* count) {
  *count = 2;
  return 0;
}
Result cuDeviceGetPCIBusId(char* id, int size, Device device) {
  std::snprintf(id, static_cast<size_t>(size), "0000:%s:00.0", device == 0 ? "07" : "AB");
  return 0;
}
Result cuDevicePrimaryCtxGetState(Device device, unsigned*, int* active) {
  *active = device == kUsed;
  return 0;
}
Result cuDevicePrimaryCtxRetain(Context* context, Device device) {
  if (device != kUsed) return kOutOfMemory;
  *context = reinterpret_cast<Context>(&context_of_used);
  return 0;
}
Result cuCtxPushCurrent_v2(Context context) {
  if (context != reinterpret_cast<Context>(&context_of_used)) return kInvalid;
  ++depth;
  return 0;
}
Result cuCtxPopCurrent_v2(Context* context) {
  *context = reinterpret_cast<Context>(&context_of_used);
  if (InContext()) --depth;
  return 0;
}
Result cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  InContext();
  *least = 0;
  *greatest = -5;
  return 0;
}
Result cuPointerGetAttribute(void* data, int attribute, Pointer address) {
  for (const auto& [base, bytes] : memory) {
    if (address < base || address >= base + bytes) continue;
    if (attribute == kMemoryType) *static_cast<unsigned*>(data) = kDeviceMemory;
    if (attribute == kOrdinal) *static_cast<int*>(data) = kUsed;
    return 0;
  }
  return kInvalid;
}
Result cuMemAlloc_v2(Pointer* address, size_t bytes) {
  if (!InContext() || capture_mode != kCaptureRelaxed) ++errors;
  if (bytes > 1ull << 40) return kOutOfMemory;
  *address = reinterpret_cast<uintptr_t>(std::malloc(bytes));
  memory[*address] = bytes;
  return 0;
}
Result cuMemFree_v2(Pointer address) {
  if (!InContext() || memory.erase(address) != 1) ++errors;
  std::free(reinterpret_cast<void*>(address));
  return 0;
}
Result cuMemcpyAsync(Pointer to, Pointer from, size_t bytes, Stream stream) {
  if (!InContext() || stream != reinterpret_cast<Stream>(&stream_of_used)) ++errors;
  std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes);
  ++unsynchronized;
  return 0;
}
Result cuMemGetHandleForAddressRange(void* handle, Pointer address, size_t, int type, unsigned long long) {
  if (!InContext() || type != kDmaBufDescriptor || !memory.contains(address)) return kInvalid;
  *static_cast<int*>(handle) = open("/dev/null", O_RDONLY | O_CLOEXEC);
  return 0;
}
Result cuStreamCreateWithPriority(Stream* stream, unsigned flags, int priority) {
  if (!InContext() || flags != kNonBlockingStream || priority != -5) ++errors;
  *stream = reinterpret_cast<Stream>(&stream_of_used);
  return 0;
}
Result cuStreamSynchronize(Stream) {
  unsynchronized = 0;
  return 0;
}
Result cuThreadExchangeStreamCaptureMode(int* mode) {
  const int before = capture_mode;
  capture_mode = *mode;
  *mode = before;
  return 0;
}
Result cuEventCreate(Event* event, unsigned flags) {
  if (!InContext() || flags != kEventWithoutTiming) ++errors;
  *event = reinterpret_cast<Event>(&event_of_used);
  return 0;
}
Result cuEventRecord(Event, Stream stream) {
  if (!InContext() || stream != reinterpret_cast<Stream>(&stream_of_used)) ++errors;
  return 0;
}
Result cuEventQuery(Event) { return InContext() ? 0 : kInvalid; }
// It has no kernels.
Result cuModuleLoadData(Module*, const void*) { return kInvalid; }
Result cuModuleGetFunction(Function*, Module, const char*) { return kInvalid; }
#ifndef R2CC_STUB_WITHOUT_LAUNCH
Result cuLaunchKernel(Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Stream, void**, void**) {
  return kInvalid;
}
#endif

}  // extern "C"
