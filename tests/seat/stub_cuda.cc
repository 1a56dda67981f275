// libcuda.so.1 for the stub of NCCL: nothing is ever under way. With STUB_EVENTS_LATE events end only for who waits for them. What comes
// after an operation of NCCL's that hangs never ends.
#include <dlfcn.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>

namespace {

struct StubEvent {
  bool never_ends = false;
};

bool NcclHangs() {
  static const auto hangs = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "stub_hangs"));
  return hangs != nullptr && hangs() != 0;
}

}  // namespace

#define R2CC_NOTHING(name) \
  int name() { return 0; }

extern "C" {

R2CC_NOTHING(cuInit)
R2CC_NOTHING(cuGetErrorString)
R2CC_NOTHING(cuDeviceGetCount)
R2CC_NOTHING(cuDeviceGetPCIBusId)
R2CC_NOTHING(cuDevicePrimaryCtxGetState)
R2CC_NOTHING(cuDevicePrimaryCtxRetain)
R2CC_NOTHING(cuCtxPushCurrent_v2)
R2CC_NOTHING(cuCtxPopCurrent_v2)
R2CC_NOTHING(cuCtxGetStreamPriorityRange)
R2CC_NOTHING(cuPointerGetAttribute)
R2CC_NOTHING(cuMemAlloc_v2)
R2CC_NOTHING(cuMemFree_v2)
R2CC_NOTHING(cuMemcpyAsync)
R2CC_NOTHING(cuStreamCreateWithPriority)
R2CC_NOTHING(cuStreamSynchronize)
R2CC_NOTHING(cuThreadExchangeStreamCaptureMode)
R2CC_NOTHING(cuModuleLoadData)
R2CC_NOTHING(cuModuleGetFunction)
R2CC_NOTHING(cuLaunchKernel)
R2CC_NOTHING(cuStreamWaitEvent)

int cuEventCreate(void** event, unsigned) {
  *event = new StubEvent;
  return 0;
}
int cuEventDestroy_v2(StubEvent* event) {
  delete event;
  return 0;
}
int cuEventRecord(StubEvent* event, void*) {
  event->never_ends = NcclHangs();
  return 0;
}
int cuEventQuery(const StubEvent* event) { return event->never_ends || std::getenv("STUB_EVENTS_LATE") != nullptr ? 600 : 0; }
int cuEventSynchronize(const StubEvent* event) {
  while (event->never_ends) pause();
  return 0;
}
int cuStreamIsCapturing(void*, int* status) {
  *status = 0;
  return 0;
}
int cuMemHostAlloc(void** memory, size_t bytes, unsigned) {
  *memory = std::malloc(bytes);
  return *memory == nullptr;
}
int cuMemFreeHost(void* memory) {
  std::free(memory);
  return 0;
}
int cuMemGetInfo_v2(size_t* free, size_t* total) {
  *free = *total = size_t{8} << 30;
  return 0;
}

}  // extern "C"
