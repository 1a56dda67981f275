// Fakes a host with two devices and a GPU on the fake fabric, for tests of the paths between them.
#ifndef R2CC_NETPLUGIN_TRANSPORT_VERBS_FAKE_GPUS_H_
#define R2CC_NETPLUGIN_TRANSPORT_VERBS_FAKE_GPUS_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "netplugin/gpu/fake_gpu.h"
#include "netplugin/transport/verbs/fake_control_thread.h"
#include "netplugin/transport/verbs/fake_types.h"
#include "netplugin/transport/verbs/loopback_pair.h"

namespace r2cc::net::verbs {

class FakeGpus : public testing::Test {
 protected:
  struct TimelineClock final : Clock {
    explicit TimelineClock(const FakeTimeline* of) : time(of) {}
    Nanos Now() const override { return time->now(); }
    const FakeTimeline* const time;
  };

  FakeGpus() {
    for (int i = 0; i < 2; ++i) {
      fabric_.AddDevice(0, NameOf(i));
      fabric_.device(0, NameOf(i))->limits.dma_buf = true;
    }
    fabric_.on_placing = [this](const FakePortName& port, uint32_t, std::byte* to, size_t bytes) {
      if (!astray_) gpu_.Placing(port.device, to, bytes);
      // The bytes go to memory of another owner.
      if (astray_) gpu_.Placing("nobody", to, bytes);
    };
    fabric_.on_reading = [this](const FakePortName& port, const std::byte* from, size_t) { gpu_.Flushed(port.device, from); };
  }
  static std::string NameOf(int i) { return "mlx5_" + std::to_string(i); }
  std::shared_ptr<Device> Open(int i) {
    std::string error;
    auto device = Device::Open(&faulty_, {NameOf(i), "mlx5_core", 1}, std::make_unique<FakeControlThread>(&time_), &error);
    EXPECT_NE(device, nullptr) << error;
    return device;
  }
  std::shared_ptr<Domain> OpenDomain(int i) {
    int failed = 0;
    return Domain::Allocate(Open(i), &failed);
  }
  std::byte* Allocate(uint64_t bytes) { return gpu_.Allocate(0, bytes, &error_); }
  // GPU memory, with all access that a peer may have.
  MemoryRegion Register(Domain* domain, std::byte* base, uint64_t bytes) {
    MemoryRegion region;
    EXPECT_EQ(domain->device()->verbs()->Register(domain->id(), base, bytes, kLocalWrite | kRemoteWrite | kRemoteRead, &region), 0);
    return region;
  }
  // The bytes that the GPU sees.
  std::string Seen(const std::byte* at, size_t bytes) {
    std::string seen(bytes, '?');
    EXPECT_TRUE(gpu_.Copy(0, seen.data(), at, bytes, &error_)) << error_;
    return seen;
  }

  FakeTimeline time_;
  const TimelineClock clock_{&time_};
  FakeFabric fabric_{&time_};
  FakeVerbs fake_{&fabric_, 0};
  FaultyVerbs faulty_{&fake_};
  gpu::FakeGpu gpu_;
  bool astray_ = false;
  std::string error_;
};

}  // namespace r2cc::net::verbs

#endif  // R2CC_NETPLUGIN_TRANSPORT_VERBS_FAKE_GPUS_H_
