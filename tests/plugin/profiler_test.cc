// Every profiler table that the library exports, v1 to v7, as NCCL calls it: an operation that waits is named to the plugin of the process;
// without the plugin nothing is asked for; whatever NCCL gives back in whatever order is success.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "base/core/clock.h"
#include "netplugin/abi/profile_v1.h"
#include "netplugin/abi/profiler_v1.h"
#include "netplugin/abi/profiler_v2.h"
#include "netplugin/abi/profiler_v4.h"
#include "netplugin/abi/profiler_v5.h"
#include "tests/plugin/own_process.h"

namespace r2cc::plugin_test {
namespace {

using abi::Result;

constexpr char kProfiler[] = "nccl/profiler/libnccl-profiler-r2cc.so";
constexpr char kPlugin[] = "netplugin/libnccl-net-r2cc.so";
constexpr char kStub[] = "tests/plugin/libnccl-stub-profile.so";
constexpr int kRank = 3, kRanks = 8;
constexpr uint64_t kCommunicator = 0xabcdef0123456789;

__attribute__((format(printf, 5, 6))) void Log(abi::DebugLogLevel level, unsigned long, const char*, int, const char* format, ...) {
  if (level != abi::DebugLogLevel::kWarn) return;
  va_list arguments;
  va_start(arguments, format);
  std::vfprintf(stderr, format, arguments);
  va_end(arguments);
  std::fprintf(stderr, "\n");
}

void* Symbol(const char* file, const std::string& name) {
  void* const library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) std::fprintf(stderr, "%s\n", dlerror());
  R2CC_MUST(library != nullptr);
  void* const symbol = dlsym(library, name.c_str());
  R2CC_MUST(symbol != nullptr);
  return symbol;
}

// The versions behind one interface.
class Nccl {
 public:
  virtual ~Nccl() = default;
  virtual Result Open(void** context, int* mask) = 0;
  virtual void* Group(void* context) = 0;
  virtual void* AllReduce(void* context, void* parent, uint64_t sequence) = 0;
  virtual void* Send(void* context, void* parent, int peer) = 0;
  virtual void* Part(void* context, void* parent, int32_t pid) = 0;
  virtual Result Start(void* context, void** handle, bool described) = 0;
  virtual Result Stop(void* handle) = 0;
  virtual Result Record(void* handle) = 0;
  virtual Result Close(void* context) = 0;
};

template <typename Table, typename Descriptor>
class NcclOf final : public Nccl {
 public:
  explicit NcclOf(int version) : table_(static_cast<const Table*>(Symbol(kProfiler, "ncclProfiler_v" + std::to_string(version)))) {
    R2CC_MUST(std::string(table_->name) == "R2CC");
  }
  Result Open(void** context, int* mask) override {
    if constexpr (std::is_invocable_v<decltype(table_->init), void**, int*>)
      return table_->init(context, mask);
    else if constexpr (std::is_same_v<Table, abi::ProfilerTableV4>)
      return table_->init(context, mask, "tp0", kCommunicator, 2, kRanks, kRank, Log);
    else
      return table_->init(context, kCommunicator, mask, "tp0", 2, kRanks, kRank, Log);
  }
  void* Group(void* context) override {
    Descriptor descriptor = Of(abi::kProfileGroup, nullptr);
    return Started(context, &descriptor);
  }
  void* AllReduce(void* context, void* parent, uint64_t sequence) override {
    Descriptor descriptor = Of(abi::kProfileColl, parent);
    descriptor.coll.sequence = sequence;
    Describe(&descriptor.coll, "AllReduce", 4);
    return Started(context, &descriptor);
  }
  void* Send(void* context, void* parent, int peer) override {
    Descriptor descriptor = Of(abi::kProfileP2p, parent);
    descriptor.p2p.peer = peer;
    Describe(&descriptor.p2p, "Send", 6);
    return Started(context, &descriptor);
  }
  void* Part(void* context, void* parent, int32_t pid) override {
    Descriptor descriptor = Of(abi::kProfileProxyOp, parent);
    descriptor.proxy_op.pid = pid;
    return Started(context, &descriptor);
  }
  Result Start(void* context, void** handle, bool described) override {
    Descriptor descriptor = Of(abi::kProfileColl, nullptr);
    return table_->start_event(context, handle, described ? &descriptor : nullptr);
  }
  Result Stop(void* handle) override { return table_->stop_event(handle); }
  Result Record(void* handle) override { return table_->record_event_state(handle, 7, nullptr); }
  Result Close(void* context) override { return table_->finalize(context); }

 private:
  static Descriptor Of(uint64_t type, void* parent) {
    Descriptor descriptor;
    std::memset(&descriptor, 0, sizeof(descriptor));
    descriptor.type = static_cast<decltype(descriptor.type)>(type);
    descriptor.parent = parent;
    descriptor.rank = kRank;
    return descriptor;
  }
  template <typename Operation>
  static void Describe(Operation* operation, const char* text, uint8_t number) {
    if constexpr (std::is_pointer_v<decltype(operation->function)>)
      operation->function = text;
    else
      operation->function = number;
    if constexpr (requires { operation->communicator; }) {
      operation->communicator = kCommunicator;
      operation->name = "tp0";
    }
  }
  void* Started(void* context, Descriptor* descriptor) {
    void* handle = nullptr;
    R2CC_MUST(table_->start_event(context, &handle, descriptor) == Result::kSuccess && handle != nullptr);
    return handle;
  }
  const Table* const table_;
};

std::unique_ptr<Nccl> NcclOfVersion(int version) {
  if (version == 1) return std::make_unique<NcclOf<abi::ProfilerTableV1, abi::ProfilerEventV1>>(version);
  if (version <= 3) return std::make_unique<NcclOf<abi::ProfilerTableV2, abi::ProfilerEventV2>>(version);
  if (version == 4) return std::make_unique<NcclOf<abi::ProfilerTableV4, abi::ProfilerEventV4>>(version);
  return std::make_unique<NcclOf<abi::ProfilerTableV5, abi::ProfilerEventV5>>(version);
}

class ProfilerTest : public testing::TestWithParam<int> {
 protected:
  // The text that the process wrote.
  static std::string Run(const std::function<int()>& body, const OwnProcess::Environment& environment = {}) {
    OwnProcess process(environment, body);
    EXPECT_EQ(process.Wait(), 0) << process.text();
    return process.text();
  }
};

// What the stub of the plugin is told to ask.
struct Stub {
  Stub() : held(*static_cast<abi::HeldOperationsV1*>(Symbol(kStub, "stub_held"))) {}
  // In the time from `begun` until now.
  std::vector<abi::HeldOperationV1> Ask(Nanos begun, uint64_t communicator = 0) const {
    std::vector<abi::HeldOperationV1> all(8);
    R2CC_MUST(held != nullptr);
    all.resize(held(communicator, begun, SteadyClock().Now(), all.data(), all.size()));
    return all;
  }
  const abi::HeldOperationsV1& held;
};

TEST_P(ProfilerTest, AnOperationThatWaitsIsNamed) {
  const std::string text = Run([] {
    const Stub stub;
    const std::unique_ptr<Nccl> nccl = NcclOfVersion(GetParam());
    void *context = nullptr, *other = nullptr;
    int mask = 0;
    R2CC_MUST(nccl->Open(&context, &mask) == Result::kSuccess && context != nullptr);
    R2CC_MUST(mask == 14);  // collectives, sends, parts
    R2CC_MUST(nccl->Open(&other, &mask) == Result::kSuccess && other != context);
    const Nanos begun = SteadyClock().Now();
    void* const group = nccl->Group(context);
    void* const reduce = nccl->AllReduce(context, group, 41);
    void* const send = nccl->Send(context, group, 5);
    for (void* const handle : {reduce, send, group}) R2CC_MUST(nccl->Stop(handle) == Result::kSuccess);
    R2CC_MUST(stub.Ask(begun).empty());
    // NCCL's progress thread.
    std::thread([&] {
      void* const parts[] = {nccl->Part(context, reduce, getpid()), nccl->Part(context, reduce, getpid())};
      R2CC_MUST(nccl->Stop(parts[0]) == Result::kSuccess && nccl->Record(parts[1]) == Result::kSuccess);
      const Nanos stalled = SteadyClock().Now();
      std::vector<abi::HeldOperationV1> held = stub.Ask(stalled, kCommunicator);
      R2CC_MUST(held.size() == 1 && std::string(held[0].function) == "AllReduce" && held[0].number == 42);
      R2CC_MUST(held[0].communicator == kCommunicator && std::string(held[0].communicator_name) == "tp0" && held[0].rank == kRank);
      R2CC_MUST(held[0].ranks == (GetParam() < 4 ? 0 : kRanks));
      R2CC_MUST(nccl->Stop(parts[1]) == Result::kSuccess);
      void* const sending = nccl->Part(context, send, getpid());
      const Nanos later = SteadyClock().Now();
      held = stub.Ask(later);
      R2CC_MUST(held.size() == 1 && std::string(held[0].function) == "Send to 5" && held[0].number == 0);
      R2CC_MUST(nccl->Stop(sending) == Result::kSuccess);
    }).join();
    R2CC_MUST(stub.Ask(SteadyClock().Now()).empty());
    R2CC_MUST(nccl->Close(context) == Result::kSuccess && nccl->Close(other) == Result::kSuccess);
    return 0;
  });
  EXPECT_EQ(text, "");
}

TEST_P(ProfilerTest, WithoutThePluginOneLineAndNoEvents) {
  const std::string text = Run([] {
    const std::unique_ptr<Nccl> nccl = NcclOfVersion(GetParam());
    for (int i = 0; i < 3; ++i) {
      void* context = nullptr;
      int mask = -1;
      R2CC_MUST(nccl->Open(&context, &mask) == Result::kSuccess && mask == 0);
      R2CC_MUST(nccl->Close(context) == Result::kSuccess);
    }
    return 0;
  });
  EXPECT_EQ(text,
            "R2CC: the profiler records nothing: libnccl-net-r2cc.so of this release is not in this process; set NCCL_NET_PLUGIN=r2cc\n");
}

TEST_P(ProfilerTest, AnyOrderAndAnythingIsSuccess) {
  const std::string text = Run([] {
    const Stub stub;
    const std::unique_ptr<Nccl> nccl = NcclOfVersion(GetParam());
    // Before any init.
    R2CC_MUST(nccl->Stop(nullptr) == Result::kSuccess && nccl->Close(nullptr) == Result::kSuccess);
    void* handle = nullptr;
    R2CC_MUST(nccl->Start(nullptr, &handle, true) == Result::kSuccess && handle != nullptr);
    R2CC_MUST(nccl->Start(nullptr, &handle, false) == Result::kSuccess && handle == nullptr);
    R2CC_MUST(nccl->Start(nullptr, nullptr, true) == Result::kSuccess && nccl->Start(nullptr, nullptr, false) == Result::kSuccess);
    R2CC_MUST(nccl->Open(nullptr, nullptr) == Result::kSuccess);
    void* context = nullptr;
    int mask = 0;
    R2CC_MUST(nccl->Open(&context, &mask) == Result::kSuccess);
    const Nanos begun = SteadyClock().Now();
    void* const reduce = nccl->AllReduce(context, nullptr, 0);
    nccl->Part(context, reduce, getpid() + 1);  // of another process
    for (void* const odd : {static_cast<void*>(nullptr), reduce, context, reinterpret_cast<void*>(uintptr_t{0xdeadbeef}),
                            reinterpret_cast<void*>(UINTPTR_MAX)}) {
      R2CC_MUST(nccl->Stop(odd) == Result::kSuccess && nccl->Record(odd) == Result::kSuccess);
      if (odd != reduce) R2CC_MUST(nccl->Stop(nccl->Part(odd, odd, getpid())) == Result::kSuccess);
      nccl->AllReduce(odd, odd, UINT64_MAX);
    }
    R2CC_MUST(stub.Ask(begun).empty());
    // After its communicator has ended, and twice.
    void* const part = nccl->Part(context, reduce, getpid());
    for (int i = 0; i < 2; ++i) R2CC_MUST(nccl->Close(context) == Result::kSuccess);
    for (int i = 0; i < 2; ++i) R2CC_MUST(nccl->Stop(part) == Result::kSuccess);
    R2CC_MUST(stub.Ask(begun).empty());
    return 0;
  });
  EXPECT_EQ(text, "");
}

INSTANTIATE_TEST_SUITE_P(AllVersions, ProfilerTest, testing::Range(1, 8),
                         [](const auto& info) { return "v" + std::to_string(info.param); });

// The real plugin takes one profiler.
TEST(ProfilerAndPlugin, ThePluginAsksTheFirstProfilerAlone) {
  OwnProcess process({}, [] {
    const auto* const plugin = static_cast<const abi::ProfileTableV1*>(Symbol(kPlugin, "r2cc_profile_v1"));
    const abi::HeldOperationsV1 other = [](uint64_t, int64_t, int64_t, abi::HeldOperationV1*, size_t) -> size_t { return 0; };
    const std::unique_ptr<Nccl> nccl = NcclOfVersion(7);
    void* context = nullptr;
    int mask = 0;
    R2CC_MUST(nccl->Open(&context, &mask) == Result::kSuccess && mask == 14);
    R2CC_MUST(plugin->ask(other) == 0);
    R2CC_MUST(nccl->Open(&context, &mask) == Result::kSuccess && mask == 14);
    return 0;
  });
  EXPECT_EQ(process.Wait(), 0) << process.text();
  EXPECT_EQ(process.text(), "");
}

TEST(ProfilerAndPlugin, TheSecondOfTwoProfilersLogsIt) {
  OwnProcess process({}, [] {
    const auto* const plugin = static_cast<const abi::ProfileTableV1*>(Symbol(kPlugin, "r2cc_profile_v1"));
    R2CC_MUST(plugin->ask([](uint64_t, int64_t, int64_t, abi::HeldOperationV1*, size_t) -> size_t { return 0; }) == 1);
    const std::unique_ptr<Nccl> nccl = NcclOfVersion(7);
    void* context = nullptr;
    int mask = -1;
    for (int i = 0; i < 2; ++i) R2CC_MUST(nccl->Open(&context, &mask) == Result::kSuccess && mask == 0);
    return 0;
  });
  EXPECT_EQ(process.Wait(), 0) << process.text();
  EXPECT_EQ(process.text(), "R2CC: the profiler records nothing: this process has another profiler of R2CC; load one file alone\n");
}

}  // namespace
}  // namespace r2cc::plugin_test
