// libcuda.so.1 for the stub of NCCL: nothing is ever under way. With STUB_EVENTS_LATE events end only for who waits for them.
#include <cstddef>
#include <cstdlib>

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
R2CC_NOTHING(cuEventRecord)
R2CC_NOTHING(cuModuleLoadData)
R2CC_NOTHING(cuModuleGetFunction)
R2CC_NOTHING(cuLaunchKernel)
R2CC_NOTHING(cuEventSynchronize)
R2CC_NOTHING(cuEventDestroy_v2)
R2CC_NOTHING(cuStreamWaitEvent)

int cuEventQuery() { return std::getenv("STUB_EVENTS_LATE") == nullptr ? 0 : 600; }
int cuEventCreate(void** event, unsigned) {
  static char one;
  *event = &one;
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
