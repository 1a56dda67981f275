// Every CollNet table that the library exports, v7 to v12, as NCCL calls it: members are threads of one process, as where one process has
// several GPUs.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdarg>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "netplugin/abi/collnet_v10.h"
#include "netplugin/abi/collnet_v11.h"
#include "netplugin/abi/collnet_v12.h"
#include "netplugin/abi/collnet_v7.h"
#include "netplugin/abi/collnet_v8.h"
#include "netplugin/abi/collnet_v9.h"
#include "tests/plugin/net_table.h"
#include "tests/plugin/own_process.h"

namespace r2cc::plugin_test {
namespace {

using abi::DataType;
using abi::RedOp;
using abi::Result;

constexpr double kLimitS = 60;
constexpr size_t kElementsMax = 300'000;

void Log(abi::DebugLogLevel, unsigned long, const char*, int, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::vfprintf(stderr, (std::string(format) + "\n").c_str(), arguments);
  va_end(arguments);
}

// A table of any version, with the calls that all have.
class CollNet {
 public:
  virtual ~CollNet() = default;
  virtual std::string name() const = 0;
  virtual Result Init(void** context) = 0;
  virtual Result Finalize(void* context) = 0;
  virtual Result Devices(int* count) = 0;
  virtual Result Listen(void* context, int device, void* handle, void** listen_comm) = 0;
  virtual Result Connect(void** handles, int members, int member, void* listen_comm, void** coll_comm) = 0;
  virtual Result ReduceSupport(DataType type, RedOp op, int* supported) = 0;
  virtual Result Register(void* comm, void* data, size_t bytes, void** mhandle) = 0;
  virtual Result Deregister(void* comm, void* mhandle) = 0;
  virtual Result AllReduce(void* comm, void* from, void* to, size_t count, DataType type, RedOp op, void* from_mhandle, void* to_mhandle,
                           void** request) = 0;
  virtual Result Test(void* request, int* done, int* size) = 0;
  virtual Result CloseColl(void* comm) = 0;
  virtual Result CloseListen(void* comm) = 0;
};

template <typename Table>
class Versioned final : public CollNet {
 public:
  explicit Versioned(const Table* table) : table_(table) {}
  std::string name() const override { return table_->name; }
  Result Init(void** context) override {
    if constexpr (kHasContext)
      return table_->init(context, 1, Log);
    else
      return table_->init(Log);
  }
  Result Finalize(void* context) override {
    if constexpr (kHasContext)
      return table_->finalize(context);
    else
      return Result::kSuccess;
  }
  Result Devices(int* count) override { return table_->devices(count); }
  Result Listen(void* context, int device, void* handle, void** listen_comm) override {
    if constexpr (kHasContext)
      return table_->listen(context, device, handle, listen_comm);
    else
      return table_->listen(device, handle, listen_comm);
  }
  Result Connect(void** handles, int members, int member, void* listen_comm, void** coll_comm) override {
    return table_->connect(handles, members, member, listen_comm, coll_comm);
  }
  Result ReduceSupport(DataType type, RedOp op, int* supported) override { return table_->reduce_support(type, op, supported); }
  Result Register(void* comm, void* data, size_t bytes, void** mhandle) override {
    return table_->reg_mr(comm, data, static_cast<int>(bytes), abi::kPtrHost, mhandle);
  }
  Result Deregister(void* comm, void* mhandle) override { return table_->dereg_mr(comm, mhandle); }
  Result AllReduce(void* comm, void* from, void* to, size_t count, DataType type, RedOp op, void* from_mhandle, void* to_mhandle,
                   void** request) override {
    return table_->iallreduce(comm, from, to, static_cast<int>(count), type, op, from_mhandle, to_mhandle, request);
  }
  Result Test(void* request, int* done, int* size) override { return table_->test(request, done, size); }
  Result CloseColl(void* comm) override { return table_->close_coll(comm); }
  Result CloseListen(void* comm) override { return table_->close_listen(comm); }

 private:
  static constexpr bool kHasContext = std::is_same_v<Table, abi::CollNetTableV11> || std::is_same_v<Table, abi::CollNetTableV12>;
  const Table* const table_;
};

std::unique_ptr<CollNet> CollNetOf(void* library, int version) {
  void* const table = dlsym(library, ("ncclCollNetPlugin_v" + std::to_string(version)).c_str());
  R2CC_MUST(table != nullptr);
  switch (version) {
    case 7: return std::make_unique<Versioned<abi::CollNetTableV7>>(static_cast<abi::CollNetTableV7*>(table));
    case 8: return std::make_unique<Versioned<abi::CollNetTableV8>>(static_cast<abi::CollNetTableV8*>(table));
    case 9: return std::make_unique<Versioned<abi::CollNetTableV9>>(static_cast<abi::CollNetTableV9*>(table));
    case 10: return std::make_unique<Versioned<abi::CollNetTableV9>>(static_cast<abi::CollNetTableV10*>(table));
    case 11: return std::make_unique<Versioned<abi::CollNetTableV11>>(static_cast<abi::CollNetTableV11*>(table));
    default: return std::make_unique<Versioned<abi::CollNetTableV12>>(static_cast<abi::CollNetTableV12*>(table));
  }
}

// A group whose members are threads.
class Group {
 public:
  Group(CollNet* net, int members) : net_(net), members_(static_cast<size_t>(members)), handles_(members_.size()) {
    R2CC_MUST(net_->Init(&context_) == Result::kSuccess);
    for (size_t i = 0; i < members_.size(); ++i) {
      R2CC_MUST(net_->Listen(context_, static_cast<int>(i % 4), handles_[i].bytes, &members_[i].listen) == Result::kSuccess);
      pointers_.push_back(handles_[i].bytes);
    }
  }
  // What each member does, at the same time as the others.
  void All(const std::function<void(size_t)>& what) {
    std::vector<std::thread> threads;
    for (size_t i = 0; i < members_.size(); ++i) threads.emplace_back([&, i] { what(i); });
    for (std::thread& thread : threads) thread.join();
  }
  Result Connect(size_t i) {
    const Result result =
        net_->Connect(pointers_.data(), static_cast<int>(members_.size()), static_cast<int>(i), members_[i].listen, &members_[i].comm);
    R2CC_MUST(net_->CloseListen(members_[i].listen) == Result::kSuccess);
    return result;
  }
  // To the end, or to an error.
  Result Finish(void* request, int* bytes) {
    int done = 0;
    for (const double until = NowS() + kLimitS; done == 0 && NowS() < until;)
      if (const Result result = net_->Test(request, &done, bytes); result != Result::kSuccess) return result;
    R2CC_MUST(done == 1);
    return Result::kSuccess;
  }
  void Close() {
    All([this](size_t i) { R2CC_MUST(members_[i].comm == nullptr || net_->CloseColl(members_[i].comm) == Result::kSuccess); });
    R2CC_MUST(net_->Finalize(context_) == Result::kSuccess);
  }
  void* comm(size_t i) { return members_[i].comm; }
  size_t size() const { return members_.size(); }
  void BreakHandle(size_t i) { handles_[i].bytes[20] ^= 1; }

 private:
  struct Member {
    void* listen = nullptr;
    void* comm = nullptr;
  };
  struct HandleBytes {
    char bytes[abi::kNetHandleBytesMax];
  };
  CollNet* const net_;
  void* context_ = nullptr;
  std::vector<Member> members_;
  std::vector<HandleBytes> handles_;
  std::vector<void*> pointers_;
};

// Any value, and whole: its sum over some members is exact in f32.
float ValueOf(size_t member, size_t operation, size_t at) { return static_cast<float>((member * 131 + operation * 17 + at) % 4096); }

void ExpectFine(const OwnProcess::Environment& environment, const std::function<int()>& body) {
  OwnProcess process(environment, body);
  EXPECT_EQ(process.Wait(), 0) << process.text();
}

class CollNetTable : public testing::TestWithParam<int> {};

TEST_P(CollNetTable, AllReducesAreRightWithManyUnderWay) {
  ExpectFine({{"NCCL_COLLNET_ENABLE", "1"}}, [] {
    const std::unique_ptr<CollNet> net = CollNetOf(OpenLibrary(), GetParam());
    R2CC_MUST(net->name() == "R2CC");
    int devices = 0, supported = 0;
    R2CC_MUST(net->Devices(&devices) == Result::kSuccess && devices == 4);
    R2CC_MUST(net->ReduceSupport(DataType::kBfloat16, RedOp::kMax, &supported) == Result::kSuccess && supported == 1);
    R2CC_MUST(net->ReduceSupport(DataType::kFloat32, static_cast<RedOp>(4), &supported) == Result::kSuccess && supported == 0);
    Group group(net.get(), 3);
    group.All([&](size_t i) { R2CC_MUST(group.Connect(i) == Result::kSuccess); });
    group.All([&](size_t i) {
      constexpr size_t kOperations = 40, kUnderWay = 12;
      std::vector<std::vector<float>> from(kUnderWay, std::vector<float>(kElementsMax)), to = from;
      std::vector<void*> from_handles(kUnderWay), to_handles(kUnderWay), requests(kUnderWay);
      for (size_t slot = 0; slot < kUnderWay; ++slot) {
        R2CC_MUST(net->Register(group.comm(i), from[slot].data(), kElementsMax * 4, &from_handles[slot]) == Result::kSuccess);
        R2CC_MUST(net->Register(group.comm(i), to[slot].data(), kElementsMax * 4, &to_handles[slot]) == Result::kSuccess);
      }
      // One element more than is registered, at either side.
      for (const bool result : {false, true}) {
        std::vector<float>& other = result ? from[1] : to[1];
        R2CC_MUST(net->AllReduce(group.comm(i), (result ? other : from[0]).data(), (result ? to[0] : other).data(), kElementsMax + 1,
                                 DataType::kFloat32, RedOp::kSum, result ? nullptr : from_handles[0], result ? to_handles[0] : nullptr,
                                 &requests[0]) == Result::kInvalidArgument);
      }
      const auto count_of = [](size_t operation) { return operation % 7 == 6 ? 0 : (operation * 7919 + 1) % kElementsMax; };
      const auto end = [&](size_t operation) {
        const size_t slot = operation % kUnderWay;
        int bytes = -1;
        R2CC_MUST(group.Finish(requests[slot], &bytes) == Result::kSuccess);
        R2CC_MUST(bytes == static_cast<int>(count_of(operation) * 4));
        for (size_t at = 0; at < count_of(operation); ++at) {
          float want = 0;
          for (size_t each = 0; each < group.size(); ++each) want += ValueOf(each, operation, at);
          R2CC_MUST(to[slot][at] == want);
        }
      };
      for (size_t operation = 0; operation < kOperations; ++operation) {
        const size_t slot = operation % kUnderWay;
        if (operation >= kUnderWay) end(operation - kUnderWay);
        for (size_t at = 0; at < count_of(operation); ++at) from[slot][at] = ValueOf(i, operation, at);
        R2CC_MUST(net->AllReduce(group.comm(i), from[slot].data(), to[slot].data(), count_of(operation), DataType::kFloat32, RedOp::kSum,
                                 from_handles[slot], to_handles[slot], &requests[slot]) == Result::kSuccess);
        R2CC_MUST(requests[slot] != nullptr);
      }
      for (size_t operation = kOperations - kUnderWay; operation < kOperations; ++operation) end(operation);
      for (size_t slot = 0; slot < kUnderWay; ++slot) {
        R2CC_MUST(net->Deregister(group.comm(i), from_handles[slot]) == Result::kSuccess);
        R2CC_MUST(net->Deregister(group.comm(i), to_handles[slot]) == Result::kSuccess);
      }
    });
    group.Close();
    return 0;
  });
}

INSTANTIATE_TEST_SUITE_P(Versions, CollNetTable, testing::Range(kVersionLeast, kVersionNewest + 1),
                         [](const auto& info) { return "V" + std::to_string(info.param); });

// A ring over balanced rails is as quick as these can be, and null is how NCCL learns that it should take one.
TEST(CollNetCalls, AllGatherAndReduceScatterAreLeftToRings) {
  ExpectFine({}, [] {
    const auto is_null = [library = OpenLibrary()](auto table, int version) {
      const auto* const of = static_cast<decltype(table)*>(dlsym(library, ("ncclCollNetPlugin_v" + std::to_string(version)).c_str()));
      R2CC_MUST(of != nullptr && of->iallreduce != nullptr);
      R2CC_MUST(of->iallgather == nullptr && of->ireducescatter == nullptr);
    };
    is_null(abi::CollNetTableV8(), 8);
    is_null(abi::CollNetTableV9(), 9);
    is_null(abi::CollNetTableV10(), 10);
    is_null(abi::CollNetTableV11(), 11);
    is_null(abi::CollNetTableV12(), 12);
    return 0;
  });
}

TEST(CollNetCalls, ThereAreNoDevicesUnlessTheJobWantsThem) {
  const auto devices_are = [](int wanted) {
    return [wanted] {
      const std::unique_ptr<CollNet> net = CollNetOf(OpenLibrary(), 12);
      void* context = nullptr;
      R2CC_MUST(net->Init(&context) == Result::kSuccess);
      int devices = -1;
      R2CC_MUST(net->Devices(&devices) == Result::kSuccess && devices == wanted);
      return 0;
    };
  };
  ExpectFine({}, devices_are(0));
  ExpectFine({{"NCCL_COLLNET_ENABLE", "0"}}, devices_are(0));
  ExpectFine({{"R2CC_MODE", "2"}}, devices_are(0));
  ExpectFine({{"R2CC_MODE", "3"}}, devices_are(4));
  ExpectFine({{"NCCL_COLLNET_ENABLE", "1"}}, devices_are(4));
}

// NCCL 2.28.3 ends a context that is not null by the table of a communicator that has none if there are no devices.
TEST(CollNetCalls, InitLeavesNoContext) {
  for (const char* enabled : {"0", "1"}) {
    ExpectFine({{"NCCL_COLLNET_ENABLE", enabled}}, [] {
      for (int version : {11, 12}) {
        const std::unique_ptr<CollNet> net = CollNetOf(OpenLibrary(), version);
        int stale = 0;
        void* context = &stale;
        R2CC_MUST(net->Init(&context) == Result::kSuccess && context == nullptr);
        R2CC_MUST(net->Finalize(context) == Result::kSuccess);
      }
      return 0;
    });
  }
}

TEST(CollNetCalls, ACallBeyondTheOpenOperationsIsAskedForAgain) {
  ExpectFine({}, [] {
    const std::unique_ptr<CollNet> net = CollNetOf(OpenLibrary(), 11);
    Group group(net.get(), 2);
    group.All([&](size_t i) { R2CC_MUST(group.Connect(i) == Result::kSuccess); });
    // The second member calls nothing, so that none is done.
    std::vector<float> from(100), to(100);
    void* request = nullptr;
    int taken = 0;
    do {
      R2CC_MUST(net->AllReduce(group.comm(0), from.data(), to.data(), 100, DataType::kFloat32, RedOp::kSum, nullptr, nullptr, &request) ==
                Result::kSuccess);
      taken += request != nullptr ? 1 : 0;
    } while (request != nullptr);
    R2CC_MUST(taken >= 64);
    group.Close();
    return 0;
  });
}

TEST(CollNetCalls, AMemberThatDoesNotConnectIsAnErrorOfSetUp) {
  ExpectFine({{"R2CC_DEADLINE_MS", "1000"}}, [] {
    const std::unique_ptr<CollNet> net = CollNetOf(OpenLibrary(), 11);
    Group group(net.get(), 3);
    const double began = NowS();
    group.All([&](size_t i) { R2CC_MUST(i == 2 || group.Connect(i) != Result::kSuccess); });
    R2CC_MUST(NowS() - began < 5);
    return 0;
  });
}

TEST(CollNetCalls, AMemberThatNeverCallsIsAnErrorOnAllAtTheDeadline) {
  OwnProcess process({{"R2CC_COLLNET_DEADLINE_MS", "1000"}}, [] {
    const std::unique_ptr<CollNet> net = CollNetOf(OpenLibrary(), 11);
    Group group(net.get(), 3);
    group.All([&](size_t i) { R2CC_MUST(group.Connect(i) == Result::kSuccess); });
    std::vector<std::vector<float>> from(3, std::vector<float>(1000)), to = from;
    const auto fails = [&](size_t i) {
      void* request = nullptr;
      R2CC_MUST(net->AllReduce(group.comm(i), from[i].data(), to[i].data(), 1000, DataType::kFloat32, RedOp::kSum, nullptr, nullptr,
                               &request) == Result::kSuccess);
      int bytes = 0;
      R2CC_MUST(group.Finish(request, &bytes) == Result::kRemoteError);
    };
    group.All([&](size_t i) {
      if (i != 2) fails(i);
    });
    // The late one hears of it when it comes.
    fails(2);
    group.Close();
    return 0;
  });
  EXPECT_EQ(process.Wait(), 0) << process.text();
  EXPECT_NE(process.text().find("operation 0 made no progress for 1000 ms: member 2 has not called it"), std::string::npos)
      << process.text();
}

TEST(CollNetCalls, AnInvalidGroupIsRefused) {
  ExpectFine({}, [] {
    const std::unique_ptr<CollNet> net = CollNetOf(OpenLibrary(), 11);
    Group alone(net.get(), 1), broken(net.get(), 2);
    R2CC_MUST(alone.Connect(0) == Result::kInvalidUsage);
    broken.BreakHandle(1);
    R2CC_MUST(broken.Connect(0) == Result::kInvalidUsage);
    void* listen = nullptr;
    char handle[abi::kNetHandleBytesMax];
    void* context = nullptr;
    R2CC_MUST(net->Init(&context) == Result::kSuccess);
    R2CC_MUST(net->Listen(context, 4, handle, &listen) == Result::kInvalidArgument);
    return 0;
  });
}

TEST(CollNetCalls, MembersThatDifferFailOnAll) {
  ExpectFine({}, [] {
    const std::unique_ptr<CollNet> net = CollNetOf(OpenLibrary(), 11);
    Group group(net.get(), 3);
    group.All([&](size_t i) { R2CC_MUST(group.Connect(i) == Result::kSuccess); });
    group.All([&](size_t i) {
      std::vector<float> from(1001), to(1001);
      void* request = nullptr;
      R2CC_MUST(net->AllReduce(group.comm(i), from.data(), to.data(), i == 1 ? 1001 : 1000, DataType::kFloat32, RedOp::kSum, nullptr,
                               nullptr, &request) == Result::kSuccess);
      int bytes = 0;
      R2CC_MUST(group.Finish(request, &bytes) == Result::kRemoteError);
      R2CC_MUST(net->AllReduce(group.comm(i), from.data(), to.data(), 1, DataType::kFloat32, RedOp::kSum, nullptr, nullptr, &request) ==
                Result::kRemoteError);
      R2CC_MUST(request == nullptr);
    });
    group.Close();
    return 0;
  });
}

}  // namespace
}  // namespace r2cc::plugin_test
