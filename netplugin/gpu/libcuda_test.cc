#include "netplugin/gpu/libcuda.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

namespace r2cc::gpu {
namespace {

constexpr char kStub[] = "netplugin/gpu/libstub_cuda.so";
constexpr int kUsed = 1;

class LibcudaTest : public testing::Test {
 protected:
  // What was pushed, changed or allocated is as before, and each copy was waited for.
  ~LibcudaTest() override {
    void* const handle = dlopen(kStub, RTLD_NOW);
    EXPECT_NE(handle, nullptr) << dlerror();
    const auto errors = reinterpret_cast<int (*)()>(dlsym(handle, "stub_libcuda_errors"));
    EXPECT_EQ(errors(), 0);
  }

  Libcuda cuda_{kStub};
  std::string error_;
};

TEST(LibcudaMissingTest, WithoutTheDriverThereAreNoGpusAndALineStatesIt) {
  Libcuda cuda("libthere_is_no_such_cuda.so.1");
  EXPECT_TRUE(cuda.InUse().empty());
  EXPECT_EQ(cuda.missing().rfind("R2CC: there is no CUDA driver: libthere_is_no", 0), 0u) << cuda.missing();
  EXPECT_EQ(cuda.missing().find('\n'), std::string::npos);
  int on_stack = 0;
  EXPECT_FALSE(cuda.Of(&on_stack).has_value());
  EXPECT_EQ(cuda.PciAddress(0), "");
  std::string error;
  EXPECT_EQ(cuda.Allocate(0, 1, &error), nullptr);
  EXPECT_EQ(error, cuda.missing());
  EXPECT_FALSE(cuda.Copy(0, &on_stack, &on_stack, 1, &error));
  EXPECT_EQ(cuda.DmaBuf(0, nullptr, 1), -1);
}

TEST(LibcudaMissingTest, ADriverThatLacksACallIsNamedWithIt) {
  Libcuda cuda("netplugin/gpu/libstub_cuda_old.so");
  EXPECT_EQ(cuda.missing(), "R2CC: the CUDA driver is too old: netplugin/gpu/libstub_cuda_old.so lacks cuLaunchKernel");
  EXPECT_TRUE(cuda.InUse().empty());
}

TEST_F(LibcudaTest, FindsTheGpuOfTheJobAndItsPciAddress) {
  ASSERT_EQ(cuda_.missing(), "");
  EXPECT_EQ(cuda_.InUse(), std::vector<int>{kUsed});
  EXPECT_EQ(cuda_.PciAddress(kUsed), "0000:ab:00.0");
}

TEST_F(LibcudaTest, MemoryIsKnownAndCopiedBothWays) {
  std::byte* const memory = cuda_.Allocate(kUsed, 100, &error_);
  ASSERT_NE(memory, nullptr) << error_;
  EXPECT_EQ(cuda_.Of(memory + 50), kUsed);
  EXPECT_FALSE(cuda_.Of(&error_).has_value());
  const char sent[] = "there and back";
  char came[sizeof(sent)] = {};
  EXPECT_TRUE(cuda_.Copy(kUsed, memory, sent, sizeof(sent), &error_)) << error_;
  EXPECT_TRUE(cuda_.Copy(kUsed, came, memory, sizeof(sent), &error_)) << error_;
  EXPECT_STREQ(came, sent);
  const int descriptor = cuda_.DmaBuf(kUsed, memory, 4096);
  EXPECT_GE(descriptor, 0);
  close(descriptor);
  EXPECT_EQ(cuda_.DmaBuf(kUsed, memory + 1, 4096), -1);
  cuda_.Free(kUsed, memory);
}

TEST_F(LibcudaTest, AFailureIsOneLineThatNamesTheGpu) {
  EXPECT_EQ(cuda_.Allocate(0, 1, &error_), nullptr);
  EXPECT_EQ(error_, "R2CC: cannot use GPU 0: out of memory");
  EXPECT_EQ(cuda_.Allocate(kUsed, uint64_t{1} << 41, &error_), nullptr);
  EXPECT_EQ(error_, "R2CC: cannot find memory on GPU 1: out of memory");
}

}  // namespace
}  // namespace r2cc::gpu
