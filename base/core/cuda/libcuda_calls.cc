#include "base/core/cuda/libcuda_calls.h"

#include <dlfcn.h>

#include <type_traits>

namespace r2cc::gpu {

std::string LibcudaCalls::Find(void* handle) {
  std::string lacks;
  const auto find = [&](auto& call, const char* name, bool needed = true) {
    void* const found = dlsym(handle, name);
    call = reinterpret_cast<std::remove_reference_t<decltype(call)>>(found);
    if (found == nullptr && needed && lacks.empty()) lacks = name;
  };
  // With the suffixes that cuda.h adds: without them some have another signature.
  find(init, "cuInit");
  find(get_error_string, "cuGetErrorString");
  find(device_get_count, "cuDeviceGetCount");
  find(device_get_pci_bus_id, "cuDeviceGetPCIBusId");
  find(primary_context_get_state, "cuDevicePrimaryCtxGetState");
  find(primary_context_retain, "cuDevicePrimaryCtxRetain");
  find(context_push, "cuCtxPushCurrent_v2");
  find(context_pop, "cuCtxPopCurrent_v2");
  find(context_get_priorities, "cuCtxGetStreamPriorityRange");
  find(pointer_get_attribute, "cuPointerGetAttribute");
  find(memory_allocate, "cuMemAlloc_v2");
  find(memory_free, "cuMemFree_v2");
  find(memory_copy, "cuMemcpyAsync");
  find(memory_get_handle, "cuMemGetHandleForAddressRange", false);
  find(stream_create, "cuStreamCreateWithPriority");
  find(stream_synchronize, "cuStreamSynchronize");
  find(exchange_capture_mode, "cuThreadExchangeStreamCaptureMode");
  find(event_create, "cuEventCreate");
  find(event_record, "cuEventRecord");
  find(event_query, "cuEventQuery");
  find(module_load, "cuModuleLoadData");
  find(module_get_function, "cuModuleGetFunction");
  find(launch, "cuLaunchKernel");
  find(event_synchronize, "cuEventSynchronize", false);
  find(event_destroy, "cuEventDestroy_v2", false);
  find(stream_wait_event, "cuStreamWaitEvent", false);
  find(stream_is_capturing, "cuStreamIsCapturing", false);
  find(host_allocate, "cuMemHostAlloc", false);
  find(host_free, "cuMemFreeHost", false);
  find(memory_get_info, "cuMemGetInfo_v2", false);
  find(driver_get_version, "cuDriverGetVersion", false);
  find(context_synchronize, "cuCtxSynchronize", false);
  find(host_register, "cuMemHostRegister_v2", false);
  find(host_unregister, "cuMemHostUnregister", false);
  return lacks;
}

std::string LibcudaCalls::TextOf(Result error) const {
  const char* text = nullptr;
  return get_error_string(error, &text) == 0 && text != nullptr ? text : "error " + std::to_string(error);
}

}  // namespace r2cc::gpu
