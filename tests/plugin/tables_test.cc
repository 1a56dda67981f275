// Every net table that the library exports, v7 to v12, moves real bytes over real sockets: what NCCL of any release may call.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "netplugin/abi/net_v8.h"
#include "netplugin/abi/seat_v2.h"
#include "tests/plugin/net_table.h"
#include "tests/plugin/own_process.h"
#include "tests/plugin/pair.h"

namespace r2cc::plugin_test {
namespace {

using abi::Result;

void ExpectFine(const std::function<int()>& body) {
  OwnProcess process({}, body);
  EXPECT_EQ(process.Wait(), 0) << process.text();
}

class TableTest : public testing::TestWithParam<int> {};

TEST_P(TableTest, EveryByteOfEverySize) {
  ExpectFine([] {
    const std::unique_ptr<Net> net = NetOf(OpenLibrary(), GetParam());
    R2CC_MUST(net != nullptr && net->name() == "R2CC");
    void* context = nullptr;
    R2CC_MUST(net->Init(&context) == Result::kSuccess);
    int devices = 0;
    R2CC_MUST(net->Devices(&devices) == Result::kSuccess && devices == 4);
    uint64_t number = 0;
    for (int device = 0; device < devices; ++device) {
      std::string name;
      R2CC_MUST(net->DeviceName(device, &name) == Result::kSuccess && name == "127.0.0." + std::to_string(device + 1));
      Pair pair = Pair::Open(net.get(), context, device);
      // Exact fits, and a message that is smaller than its buffer.
      for (const size_t bytes : {0, 1, 127, 128, 129, 4096, 65'535, 65'536, 65'537, 1'000'003, 8 << 20}) {
        pair.Transfer(number++, bytes, bytes);
        pair.Transfer(number++, bytes, bytes + 4096);
      }
      pair.Close();
    }
    R2CC_MUST(net->Finalize(context) == Result::kSuccess);
    return 0;
  });
}

// As many outstanding as NCCL ever has, and tested oldest first, while others wait.
TEST_P(TableTest, ManyOutstandingInOrder) {
  ExpectFine([] {
    constexpr int kSlots = abi::kNetRequestsMax;
    constexpr int kMessages = 400;
    const std::unique_ptr<Net> net = NetOf(OpenLibrary(), GetParam());
    void* context = nullptr;
    R2CC_MUST(net->Init(&context) == Result::kSuccess);
    Pair pair = Pair::Open(net.get(), context, 0);
    const auto size_of = [](int message) { return static_cast<size_t>(message % 7 == 0 ? 0 : (message * 7919) % 30'000); };
    std::vector<std::vector<uint8_t>> from(kSlots, std::vector<uint8_t>(30'000)), to = from;
    std::vector<void*> sends(kSlots), receives(kSlots);
    const auto end = [&](int message) {
      const int slot = message % kSlots;
      R2CC_MUST(Finish(net.get(), receives[slot]) == static_cast<int>(size_of(message)));
      R2CC_MUST(HoldsPattern(message, {to[slot].data(), size_of(message)}));
      R2CC_MUST(Finish(net.get(), sends[slot]) >= 0);
    };
    for (int message = 0; message < kMessages; ++message) {
      const int slot = message % kSlots;
      if (message >= kSlots) end(message - kSlots);
      std::fill(to[slot].begin(), to[slot].end(), 0);
      receives[slot] = pair.Receive(to[slot].data(), to[slot].size());
      FillPattern(message, {from[slot].data(), size_of(message)});
      sends[slot] = pair.Send(from[slot].data(), size_of(message));
    }
    for (int message = kMessages - kSlots; message < kMessages; ++message) end(message);
    pair.Close();
    return 0;
  });
}

TEST_P(TableTest, MemoryIsRegisteredOnBothKindsOfComm) {
  ExpectFine([] {
    const std::unique_ptr<Net> net = NetOf(OpenLibrary(), GetParam());
    void* context = nullptr;
    R2CC_MUST(net->Init(&context) == Result::kSuccess);
    Pair pair = Pair::Open(net.get(), context, 1);
    std::vector<uint8_t> from(100'000), to(100'000);
    void* send_mhandle = nullptr;
    void* recv_mhandle = nullptr;
    R2CC_MUST(net->Register(pair.send_comm, from.data(), from.size(), abi::kPtrHost, &send_mhandle) == Result::kSuccess);
    R2CC_MUST(net->Register(pair.recv_comm, to.data(), to.size(), abi::kPtrHost, &recv_mhandle) == Result::kSuccess);
    R2CC_MUST(send_mhandle != nullptr && recv_mhandle != nullptr);
    FillPattern(3, from);
    void* receive = pair.Receive(to.data(), to.size(), recv_mhandle);
    void* send = pair.Send(from.data(), from.size(), send_mhandle);
    R2CC_MUST(Finish(net.get(), receive) == static_cast<int>(to.size()) && Finish(net.get(), send) >= 0 && HoldsPattern(3, to));
    // A flush has nothing to do on TCP rails: done at once, or with the next test.
    void* flush = nullptr;
    R2CC_MUST(net->Flush(pair.recv_comm, to.data(), static_cast<int>(to.size()), recv_mhandle, &flush) == Result::kSuccess);
    R2CC_MUST(flush == nullptr || Finish(net.get(), flush) >= 0);
    void* device_mhandle = nullptr;
    R2CC_MUST(net->Register(pair.recv_comm, to.data(), to.size(), abi::kPtrCuda, &device_mhandle) != Result::kSuccess);
    R2CC_MUST(net->Deregister(pair.send_comm, send_mhandle) == Result::kSuccess);
    R2CC_MUST(net->Deregister(pair.recv_comm, recv_mhandle) == Result::kSuccess);
    pair.Close();
    return 0;
  });
}

TEST_P(TableTest, MissingObjectsAreRefused) {
  ExpectFine([] {
    const std::unique_ptr<Net> net = NetOf(OpenLibrary(), GetParam());
    void* context = nullptr;
    R2CC_MUST(net->Init(&context) == Result::kSuccess);
    std::string name;
    void* comm = nullptr;
    alignas(8) uint8_t handle[abi::kNetHandleBytesMax] = {};
    for (const int device : {-1, 4, 1 << 30}) {
      R2CC_MUST(net->DeviceName(device, &name) != Result::kSuccess);
      R2CC_MUST(net->Listen(context, device, handle, &comm) != Result::kSuccess);
    }
    // The handle of another plugin.
    R2CC_MUST(net->Connect(context, 0, handle, &comm) == Result::kInvalidUsage && comm == nullptr);
    return 0;
  });
}

INSTANTIATE_TEST_SUITE_P(AllVersions, TableTest, testing::Range(kVersionLeast, kVersionNewest + 1),
                         [](const auto& info) { return "v" + std::to_string(info.param); });

// NCCL 2.20 to 2.22 would send more than the peer receives, from memory that the job has registered.
TEST(Tables, V8OffersNoGlobalRegistration) {
  ExpectFine([] {
    const auto* const table = static_cast<const abi::NetTableV8*>(TableOf(OpenLibrary(), 8));
    abi::NetPropertiesV8 properties{};
    R2CC_MUST(table->get_properties(0, &properties) == Result::kSuccess && properties.reg_is_global == 0);
    return 0;
  });
}

// Two versions in one process: one registry behind all of them.
TEST(Tables, AFlowMayJoinTwoVersions) {
  ExpectFine([] {
    void* library = OpenLibrary();
    const std::unique_ptr<Net> old_net = NetOf(library, 7), new_net = NetOf(library, 12);
    void* context = nullptr;
    void* none = nullptr;
    R2CC_MUST(old_net->Init(&none) == Result::kSuccess && new_net->Init(&context) == Result::kSuccess);
    Pair old_pair = Pair::Open(old_net.get(), none, 0), new_pair = Pair::Open(new_net.get(), context, 3);
    for (uint64_t number = 0; number < 20; ++number) {
      old_pair.Transfer(number, 10'000, 10'000);
      new_pair.Transfer(number, 300'000, 300'000);
    }
    old_pair.Close();
    new_pair.Close();
    R2CC_MUST(new_net->Finalize(context) == Result::kSuccess);
    return 0;
  });
}

class SeatTest : public testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(WithContexts, SeatTest, testing::Range(11, kVersionNewest + 1),
                         [](const auto& info) { return "v" + std::to_string(info.param); });

const abi::SeatTableV2* SeatTable(void* library) { return static_cast<const abi::SeatTableV2*>(dlsym(library, "r2cc_seat_v2")); }

// Rails that carried a part of `bytes`, by the totals in the log: control messages alone are less.
int BusyRails(const std::string& log, double bytes) {
  int busy = 0;
  for (size_t at = 0; (at = log.find(" sent ", at)) != std::string::npos; ++at)
    busy += std::strtod(log.c_str() + at + 6, nullptr) * 1e9 > bytes / 50;
  return busy;
}

// The flows of the one communicator that begins while libr2cc-nccl.so watches go by all rails; of any other by their own.
TEST_P(SeatTest, ItsFlowsAreStriped) {
  constexpr int kMessages = 8;
  constexpr size_t kBytes = 8 << 20;
  for (const bool seat : {false, true}) {
    OwnProcess process({{"R2CC_LOG", "info"}, {"R2CC_BULK_THREADS", "0"}}, [seat] {
      void* const library = OpenLibrary();
      const std::unique_ptr<Net> net = NetOf(library, GetParam());
      void* parent = nullptr;
      void* child = nullptr;
      R2CC_MUST(net->Init(&parent) == Result::kSuccess);
      SeatTable(library)->watch();
      R2CC_MUST(net->Init(&child) == Result::kSuccess && SeatTable(library)->mark(1) == 1);
      Pair pair = Pair::Open(net.get(), seat ? child : parent, 1);
      for (int number = 0; number < kMessages; ++number) pair.Transfer(number, kBytes, kBytes);
      pair.Close();
      R2CC_MUST(net->Finalize(child) == Result::kSuccess && net->Finalize(parent) == Result::kSuccess);
      return 0;
    });
    ASSERT_EQ(process.Wait(), 0) << process.text();
    EXPECT_EQ(BusyRails(process.text(), static_cast<double>(kMessages) * kBytes), seat ? 4 : 1) << process.text();
  }
}

// None begins; two; one that has ended; two threads that watch.
TEST_P(SeatTest, NoneIsMarkedUnlessItIsClearWhich) {
  ExpectFine([] {
    void* const library = OpenLibrary();
    const std::unique_ptr<Net> net = NetOf(library, GetParam());
    const abi::SeatTableV2* const table = SeatTable(library);
    void *first = nullptr, *second = nullptr;
    R2CC_MUST(net->Init(&first) == Result::kSuccess);
    table->watch();
    R2CC_MUST(table->mark(1) == 0);
    table->watch();
    R2CC_MUST(net->Finalize(first) == Result::kSuccess && table->mark(1) == 0);
    table->watch();
    R2CC_MUST(net->Init(&first) == Result::kSuccess && net->Init(&second) == Result::kSuccess && table->mark(1) == 0);
    R2CC_MUST(net->Finalize(first) == Result::kSuccess);
    table->watch();
    table->watch();
    R2CC_MUST(net->Init(&first) == Result::kSuccess && table->mark(1) == 0 && table->mark(1) == 0);
    R2CC_MUST(net->Finalize(first) == Result::kSuccess && net->Finalize(second) == Result::kSuccess);
    return 0;
  });
}

}  // namespace
}  // namespace r2cc::plugin_test
