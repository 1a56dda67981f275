// A GPU's producer over a driver that runs its kernels' code on the processor: a fixture of tests.
#ifndef R2CC_OBSERVE_CUDA_CUDA_RIG_H_
#define R2CC_OBSERVE_CUDA_CUDA_RIG_H_

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>

#include "observe/cuda/cuda_producer.h"
#include "observe/cuda/kernels.h"
#include "observe/ring/ring_reader.h"

namespace r2cc::observe {

using Found = RingReader::Found;

class CudaProducerTest : public testing::Test {
 protected:
  void SetUp() override {
    if (gpu::ObserveStepImage().empty()) GTEST_SKIP() << "needs nvcc: compiles a kernel";
    stub_ = dlopen("observe/cuda/libstub_cuda.so", RTLD_NOW);
    ASSERT_NE(stub_, nullptr) << dlerror();
  }
  template <typename Call>
  Call* Of(const char* name) {
    return reinterpret_cast<Call*>(dlsym(stub_, name));
  }
  std::unique_ptr<CudaProducer> Open(ProducerOptions options = {}) {
    if (options.run.empty()) options.run = "cuda." + std::to_string(getpid());
    auto producer = CudaProducer::Open(options, 0, &clock_, &error_);
    EXPECT_NE(producer, nullptr) << error_;
    return producer;
  }
  static std::unique_ptr<RingReader> Reader(Producer* producer) {
    RunMemory* const memory = producer->memory();
    return std::make_unique<RingReader>(memory->control(), memory->ring(), memory->cursors(), 1);
  }

  void* stub_ = nullptr;
  SteadyClock clock_;
  std::string error_;
};

}  // namespace r2cc::observe

#endif  // R2CC_OBSERVE_CUDA_CUDA_RIG_H_
