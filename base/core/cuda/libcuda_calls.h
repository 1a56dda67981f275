// The calls of the CUDA driver's library, found by name in a library that was opened at run time. The driver's binary interface is stable
// and a machine that builds this need not have its header: what is used is declared here.
#ifndef R2CC_BASE_CORE_CUDA_LIBCUDA_CALLS_H_
#define R2CC_BASE_CORE_CUDA_LIBCUDA_CALLS_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace r2cc::gpu {

// CUresult, CUdevice and CUdeviceptr.
using Result = int;
using Device = int;
using Pointer = unsigned long long;
// CUcontext, CUstream, CUevent, CUmodule and CUfunction.
using Context = struct ContextStruct*;
using Stream = struct StreamStruct*;
using Event = struct EventStruct*;
using Module = struct ModuleStruct*;
using Function = struct FunctionStruct*;

constexpr Result kNotReady = 600;            // CUDA_ERROR_NOT_READY
constexpr int kMemoryType = 2;               // CU_POINTER_ATTRIBUTE_MEMORY_TYPE
constexpr int kOrdinal = 9;                  // CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
constexpr unsigned kDeviceMemory = 2;        // CU_MEMORYTYPE_DEVICE
constexpr int kDmaBufDescriptor = 1;         // CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD
constexpr unsigned kNonBlockingStream = 1;   // CU_STREAM_NON_BLOCKING
constexpr unsigned kEventWithoutTiming = 2;  // CU_EVENT_DISABLE_TIMING
constexpr unsigned kPortableMappedHost = 3;  // CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP
constexpr unsigned kPortableRegistered = 1;  // CU_MEMHOSTREGISTER_PORTABLE
constexpr int kCaptureRelaxed = 2;           // CU_STREAM_CAPTURE_MODE_RELAXED

struct LibcudaCalls {
  Result (*init)(unsigned flags);
  Result (*get_error_string)(Result error, const char** text);
  Result (*device_get_count)(int* count);
  Result (*device_get_pci_bus_id)(char* id, int size, Device device);
  Result (*primary_context_get_state)(Device device, unsigned* flags, int* active);
  Result (*primary_context_retain)(Context* context, Device device);
  Result (*context_push)(Context context);
  Result (*context_pop)(Context* context);
  Result (*context_get_priorities)(int* least, int* greatest);
  Result (*pointer_get_attribute)(void* data, int attribute, Pointer address);
  Result (*memory_allocate)(Pointer* address, size_t bytes);
  Result (*memory_free)(Pointer address);
  Result (*memory_copy)(Pointer to, Pointer from, size_t bytes, Stream stream);
  Result (*memory_get_handle)(void* handle, Pointer address, size_t bytes, int type, unsigned long long flags);  // null: no dma-buf
  Result (*stream_create)(Stream* stream, unsigned flags, int priority);
  Result (*stream_synchronize)(Stream stream);
  Result (*exchange_capture_mode)(int* mode);
  Result (*event_create)(Event* event, unsigned flags);
  Result (*event_record)(Event event, Stream stream);
  Result (*event_query)(Event event);
  Result (*module_load)(Module* module, const void* image);
  Result (*module_get_function)(Function* function, Module module, const char* name);
  Result (*launch)(Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                   unsigned block_z, unsigned shared_bytes, Stream stream, void** parameters, void** extra);

  // Not for the plugin: null where the driver lacks them.
  Result (*event_synchronize)(Event event);
  Result (*event_destroy)(Event event);
  Result (*stream_wait_event)(Stream stream, Event event, unsigned flags);
  Result (*stream_is_capturing)(Stream stream, int* status);
  Result (*host_allocate)(void** memory, size_t bytes, unsigned flags);
  Result (*host_free)(void* memory);
  Result (*memory_get_info)(size_t* free, size_t* total);
  Result (*driver_get_version)(int* version);  // 12010: CUDA 12.1
  Result (*context_synchronize)();
  Result (*host_register)(void* memory, size_t bytes, unsigned flags);
  Result (*host_unregister)(void* memory);

  // From what dlopen() returned. The first that is needed and not there; empty: all are.
  std::string Find(void* handle);
  std::string TextOf(Result error) const;
};

}  // namespace r2cc::gpu

#endif  // R2CC_BASE_CORE_CUDA_LIBCUDA_CALLS_H_
