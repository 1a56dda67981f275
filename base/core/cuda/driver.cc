#include "base/core/cuda/driver.h"

#include <dlfcn.h>

namespace r2cc::gpu {

const std::string& Driver::missing() {
  std::call_once(once_, [this] {
    // Never closed: the driver leaves threads of its own behind.
    void* const handle = dlopen(library_.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      missing_ = "R2CC: there is no CUDA driver: " + std::string(dlerror());
    } else if (const std::string lacks = calls_.Find(handle); !lacks.empty()) {
      missing_ = "R2CC: the CUDA driver is too old: " + library_ + " lacks " + lacks;
    } else if (const Result result = calls_.init(0); result != 0) {
      missing_ = "R2CC: the CUDA driver does not start: " + calls_.TextOf(result);
    }
  });
  return missing_;
}

bool Driver::Fine(Result result, const char* what, int gpu, std::string* error) const {
  if (result != 0) *error = std::string("R2CC: cannot ") + what + " GPU " + std::to_string(gpu) + ": " + calls_.TextOf(result);
  return result == 0;
}

Context Driver::ContextOf(int gpu, std::string* error) {
  if (!missing().empty()) {
    *error = missing();
    return nullptr;
  }
  const MutexLock lock(mutex_);
  Context& context = contexts_[gpu];
  if (context == nullptr && !Fine(calls_.primary_context_retain(&context, gpu), "use", gpu, error)) context = nullptr;
  return context;
}

Driver::InContext::InContext(Driver* of, int gpu, std::string* error) : calls_(of->calls_) {
  const Context context = of->ContextOf(gpu, error);
  if (context == nullptr) return;
  pushed_ = of->Fine(calls_.context_push(context), "work on", gpu, error);
  if (pushed_) calls_.exchange_capture_mode(&capture_mode_);
}

Driver::InContext::~InContext() {
  if (!pushed_) return;
  calls_.exchange_capture_mode(&capture_mode_);
  Context popped = nullptr;
  calls_.context_pop(&popped);
}

Stream Driver::NewStream(int gpu, Priority priority, std::string* error) {
  int least = 0, greatest = 0;
  Stream stream = nullptr;
  if (!Fine(calls_.context_get_priorities(&least, &greatest), "look at", gpu, error) ||
      !Fine(calls_.stream_create(&stream, kNonBlockingStream, priority == Priority::kFirst ? greatest : least), "make a stream on", gpu,
            error))
    return nullptr;
  return stream;
}

}  // namespace r2cc::gpu
