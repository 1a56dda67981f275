// Every tuner table that the library exports, v2 to v6, as NCCL calls it: silent where CollNet is off, whatever it is asked; where it is
// on, AllReduce of the threshold takes it and nothing else changes.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <type_traits>
#include <vector>

#include "netplugin/abi/seat_v2.h"
#include "netplugin/abi/tuner_v2.h"
#include "netplugin/abi/tuner_v3.h"
#include "netplugin/abi/tuner_v4.h"
#include "netplugin/abi/tuner_v5.h"
#include "netplugin/abi/tuner_v6.h"
#include "tests/plugin/net_table.h"
#include "tests/plugin/own_process.h"

namespace r2cc::plugin_test {
namespace {

using abi::Function;
using abi::Result;

constexpr size_t kMinBytes = 4 << 20;
const OwnProcess::Environment kThreshold = {{"R2CC_COLLNET_MIN_BYTES", std::to_string(kMinBytes)}};
constexpr Function kFunctions[] = {Function::kBroadcast, Function::kReduce, Function::kAllGather, Function::kReduceScatter,
                                   Function::kAllReduce};
constexpr size_t kSizes[] = {0, 1, kMinBytes - 1, kMinBytes, kMinBytes + 1, size_t{1} << 40};
constexpr int kAlgorithms = 7;
constexpr int kProtocols = 3;
constexpr int kMargin = 64;
constexpr int kDirect = kMargin + 2 * kProtocols + 2;  // CollNetDirect's Simple
constexpr int kChain = kMargin + 3 * kProtocols + 2;

__attribute__((format(printf, 5, 6))) void Log(abi::DebugLogLevel, unsigned long, const char*, int, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::vfprintf(stderr, format, arguments);
  va_end(arguments);
  std::fprintf(stderr, "\n");
}

// All that a call may write, and what lies around it.
struct World {
  float cost[kMargin + kAlgorithms * kProtocols + kMargin];
  int algorithm = -1;
  int protocol = -1;
  int nchannels = 0;
  abi::TunerConstantsV5 constants;
  abi::NvlDomainInfoV5 domains;

  // As NCCL makes it; of CollNet's entries those that are said to be possible.
  World(bool direct, bool chain) {
    std::memset(&constants, 0x3b, sizeof(constants));
    std::memset(&domains, 0x01, sizeof(domains));
    for (float& entry : cost) entry = 77;
    for (int i = 0; i < kAlgorithms * kProtocols; ++i) cost[kMargin + i] = static_cast<float>(i + 1);
    for (int i = 2 * kProtocols; i < 4 * kProtocols; ++i) cost[kMargin + i] = abi::kCostIgnored;
    if (direct) cost[kDirect] = 500;
    if (chain) cost[kChain] = 400;
  }
  bool operator==(const World& other) const {
    return std::memcmp(cost, other.cost, sizeof(cost)) == 0 && algorithm == other.algorithm && protocol == other.protocol &&
           nchannels == other.nchannels && std::memcmp(&constants, &other.constants, sizeof(constants)) == 0 &&
           std::memcmp(&domains, &other.domains, sizeof(domains)) == 0;
  }
};

// The versions behind one interface.
class Tuner {
 public:
  virtual ~Tuner() = default;
  virtual std::string name() const = 0;
  virtual Result Open(size_t ranks, size_t nodes, World* world, void** context) = 0;
  // `collnet`: what v2 is told instead of a table.
  virtual Result Ask(void* context, Function function, size_t bytes, bool collnet, World* world, float* table, int algorithms,
                     int protocols) = 0;
  virtual Result Close(void* context) = 0;

  Result Ask(void* context, Function function, size_t bytes, bool collnet, World* world) {
    return Ask(context, function, bytes, collnet, world, world->cost + kMargin, kAlgorithms, kProtocols);
  }
};

template <typename Table>
class TableTuner final : public Tuner {
 public:
  explicit TableTuner(const void* table) : t_(static_cast<const Table*>(table)) {}
  std::string name() const override { return t_->name; }
  Result Open(size_t ranks, size_t nodes, World* world, void** context) override {
    if constexpr (std::is_invocable_v<decltype(t_->init), size_t, size_t, abi::Logger, void**>)
      return t_->init(ranks, nodes, Log, context);
    else
      return t_->init(context, uint64_t{7}, ranks, nodes, Log, world == nullptr ? nullptr : &world->domains,
                      world == nullptr ? nullptr : &world->constants);
  }
  Result Ask(void* context, Function function, size_t bytes, bool collnet, World* world, float* table, int algorithms,
             int protocols) override {
    auto* const cost = reinterpret_cast<float**>(table);
    if constexpr (std::is_same_v<Table, abi::TunerTableV2>)
      return t_->get_coll_info(context, function, bytes, collnet, 1, 1, table == nullptr ? nullptr : &world->algorithm, &world->protocol,
                               &world->nchannels);
    else if constexpr (std::is_same_v<Table, abi::TunerTableV3>)
      return t_->get_coll_info(context, function, bytes, 1, cost, algorithms, protocols, &world->nchannels);
    else
      return t_->get_coll_info(context, function, bytes, 1, cost, algorithms, protocols, 1, &world->nchannels);
  }
  Result Close(void* context) override {
    if constexpr (requires { t_->finalize; })
      return t_->finalize(context);
    else
      return t_->destroy(context);
  }

 private:
  const Table* const t_;
};

void* OpenTunerLibrary() {
  void* const library = dlopen("netplugin/libnccl-tuner-r2cc.so", RTLD_NOW | RTLD_LOCAL);
  R2CC_MUST(library != nullptr);
  return library;
}

std::unique_ptr<Tuner> TunerOf(int version) {
  const void* const table = dlsym(OpenTunerLibrary(), ("ncclTunerPlugin_v" + std::to_string(version)).c_str());
  R2CC_MUST(table != nullptr);
  switch (version) {
    case 2: return std::make_unique<TableTuner<abi::TunerTableV2>>(table);
    case 3: return std::make_unique<TableTuner<abi::TunerTableV3>>(table);
    case 4: return std::make_unique<TableTuner<abi::TunerTableV4>>(table);
    case 5: return std::make_unique<TableTuner<abi::TunerTableV5>>(table);
    default: return std::make_unique<TableTuner<abi::TunerTableV6>>(table);
  }
}

class TunerTest : public testing::TestWithParam<int> {
 protected:
  // The text that the process wrote.
  static std::string Run(const OwnProcess::Environment& environment, const std::function<int()>& body) {
    OwnProcess process(environment, body);
    EXPECT_EQ(process.Wait(), 0) << process.text();
    return process.text();
  }
};

// Everything that NCCL may ask is left as it was.
int LeavesEverything(bool direct, bool chain, size_t ranks, size_t nodes) {
  const std::unique_ptr<Tuner> tuner = TunerOf(TunerTest::GetParam());
  World world(direct, chain);
  const World before = world;
  void* context = nullptr;
  R2CC_MUST(tuner->Open(ranks, nodes, &world, &context) == Result::kSuccess && world == before);
  for (const Function function : kFunctions)
    for (const size_t bytes : kSizes)
      R2CC_MUST(tuner->Ask(context, function, bytes, direct || chain, &world) == Result::kSuccess && world == before);
  R2CC_MUST(tuner->Close(context) == Result::kSuccess && world == before);
  return 0;
}

TEST_P(TunerTest, IsSilentWhereCollNetIsOff) {
  EXPECT_EQ(Run({}, [] { return LeavesEverything(false, false, 16, 2); }), "");
  EXPECT_EQ(Run({{"R2CC_COLLNET_MIN_BYTES", "0"}}, [] { return LeavesEverything(false, false, 16, 2); }), "");
}

TEST_P(TunerTest, IsSilentWithoutAThresholdAndWithinANode) {
  EXPECT_EQ(Run({}, [] { return LeavesEverything(true, true, 16, 2); }), "");
  EXPECT_EQ(Run({{"R2CC_COLLNET_MIN_BYTES", ""}}, [] { return LeavesEverything(true, true, 16, 2); }), "");
  EXPECT_EQ(Run(kThreshold, [] { return LeavesEverything(true, true, 8, 1); }), "");
}

TEST_P(TunerTest, AnAllReduceFromTheThresholdOnTakesCollNet) {
  const std::string text = Run(kThreshold, [] {
    const std::unique_ptr<Tuner> tuner = TunerOf(GetParam());
    R2CC_MUST(tuner->name() == "R2CC");
    for (const bool direct : {false, true}) {
      World world(direct, true);
      const World before = world;
      void* context = nullptr;
      R2CC_MUST(tuner->Open(16, 2, &world, &context) == Result::kSuccess && context != nullptr);
      for (const Function function : kFunctions)
        for (const size_t bytes : kSizes) {
          World want = before;
          if (function == Function::kAllReduce && bytes >= kMinBytes) {
            if (GetParam() == 2)
              want.algorithm = 3, want.protocol = 2;
            else
              want.cost[direct ? kDirect : kChain] = 0;
          }
          World got = before;
          R2CC_MUST(tuner->Ask(context, function, bytes, true, &got) == Result::kSuccess && got == want);
        }
      R2CC_MUST(tuner->Close(context) == Result::kSuccess);
    }
    return 0;
  });
  EXPECT_EQ(text, "");
}

// The one communicator that begins while libr2cc-nccl.so watches goes by the tree, from its smallest AllReduce on; no other does.
TEST_P(TunerTest, ASeatTakesTheTree) {
  const std::string text = Run({}, [] {
    const std::unique_ptr<Tuner> tuner = TunerOf(GetParam());
    const auto* const seats = static_cast<const abi::SeatTunerTableV3*>(dlsym(OpenTunerLibrary(), "r2cc_seat_tuner_v3"));
    R2CC_MUST(seats != nullptr);
    World world(true, true);
    const World before = world;
    void *parent = nullptr, *seat = nullptr, *other = nullptr;
    R2CC_MUST(tuner->Open(16, 2, &world, &parent) == Result::kSuccess);
    const auto asks = [&](void* context, Function function, bool tree) {
      World want = before;
      if (tree && GetParam() == 2)
        want.algorithm = 0, want.protocol = 2;
      else if (tree)
        want.cost[want.cost[kMargin + 5 * kProtocols + 2] >= 0 ? kMargin + 5 * kProtocols + 2 : kMargin + 2] = 0;
      World got = before;
      return tuner->Ask(context, function, 1 << 20, false, &got) == Result::kSuccess && got == want;
    };
    // None begins; one of another size; two.
    seats->watch(16);
    R2CC_MUST(seats->mark() == 0);
    seats->watch(16);
    R2CC_MUST(tuner->Open(8, 2, &world, &other) == Result::kSuccess && seats->mark() == 0 && asks(other, Function::kAllReduce, false));
    R2CC_MUST(tuner->Close(other) == Result::kSuccess);
    seats->watch(16);
    R2CC_MUST(tuner->Open(16, 2, &world, &seat) == Result::kSuccess && tuner->Open(16, 2, &world, &other) == Result::kSuccess);
    R2CC_MUST(seats->mark() == 0 && asks(seat, Function::kAllReduce, false) && asks(other, Function::kAllReduce, false));
    R2CC_MUST(tuner->Close(seat) == Result::kSuccess);
    // Two threads that make one each: whose is whose?
    seats->watch(16);
    seats->watch(16);
    R2CC_MUST(tuner->Open(16, 2, &world, &seat) == Result::kSuccess);
    R2CC_MUST(seats->mark() == 0 && seats->mark() == 0 && asks(seat, Function::kAllReduce, false));
    R2CC_MUST(tuner->Close(seat) == Result::kSuccess);
    // One that is gone again.
    seats->watch(16);
    R2CC_MUST(tuner->Open(16, 2, &world, &seat) == Result::kSuccess && tuner->Close(seat) == Result::kSuccess && seats->mark() == 0);
    seats->watch(16);
    R2CC_MUST(tuner->Open(16, 2, &world, &seat) == Result::kSuccess && seats->mark() == 1);
    for (const Function function : kFunctions) R2CC_MUST(asks(seat, function, function == Function::kAllReduce));
    R2CC_MUST(asks(parent, Function::kAllReduce, false) && asks(other, Function::kAllReduce, false));
    for (void* const context : {parent, seat, other}) R2CC_MUST(tuner->Close(context) == Result::kSuccess);
    return 0;
  });
  EXPECT_EQ(text, "");
}

// The one communicator that NCCL asks about while libr2cc-nccl.so watches uses CollNet for the calls that it names, and no other does.
TEST_P(TunerTest, ACommunicatorTakesCollNetForTheCallsThatAreNamed) {
  const std::string text = Run({{"R2CC_SEAT", "1"}}, [] {
    const std::unique_ptr<Tuner> tuner = TunerOf(GetParam());
    const auto* const seats = static_cast<const abi::SeatTunerTableV3*>(dlsym(OpenTunerLibrary(), "r2cc_seat_tuner_v3"));
    R2CC_MUST(seats != nullptr);
    World world(true, true);
    void *parent = nullptr, *other = nullptr;
    R2CC_MUST(tuner->Open(16, 2, &world, &parent) == Result::kSuccess && tuner->Open(16, 2, &world, &other) == Result::kSuccess);
    constexpr size_t kVectorBytes = 512;
    const auto ask = [&](void* context, Function function, size_t bytes, bool offered) {
      World asked(offered, offered);
      return tuner->Ask(context, function, bytes, offered, &asked) == Result::kSuccess;
    };
    const auto takes_collnet = [&](void* context, Function function) {
      World got(true, true);
      R2CC_MUST(tuner->Ask(context, function, 64 << 20, true, &got) == Result::kSuccess);
      return GetParam() == 2 ? got.algorithm == 3 && got.protocol == 2 : got.cost[kDirect] == 0;
    };
    // Nothing is asked; something else; CollNet is not offered; two communicators; two that watch.
    seats->watch_all_reduce(kVectorBytes);
    R2CC_MUST(seats->watched() == 0);
    seats->watch_all_reduce(kVectorBytes);
    R2CC_MUST(ask(parent, Function::kAllGather, kVectorBytes, true) && ask(parent, Function::kAllReduce, 2 * kVectorBytes, true) &&
              ask(parent, Function::kAllReduce, kVectorBytes, false) && seats->watched() == 0);
    seats->watch_all_reduce(kVectorBytes);
    R2CC_MUST(ask(parent, Function::kAllReduce, kVectorBytes, true) && ask(other, Function::kAllReduce, kVectorBytes, true) &&
              seats->watched() == 0);
    // The one that watches has no CollNet, and another one of the same size has it.
    seats->watch_all_reduce(kVectorBytes);
    R2CC_MUST(ask(parent, Function::kAllReduce, kVectorBytes, false) && ask(other, Function::kAllReduce, kVectorBytes, true) &&
              seats->watched() == 0);
    seats->watch_all_reduce(kVectorBytes);
    seats->watch_all_reduce(kVectorBytes);
    R2CC_MUST(ask(parent, Function::kAllReduce, kVectorBytes, true) && seats->watched() == 0 && seats->watched() == 0);
    // NCCL may ask twice for one call.
    seats->watch_all_reduce(kVectorBytes);
    R2CC_MUST(ask(parent, Function::kAllReduce, kVectorBytes, true) && ask(parent, Function::kAllReduce, kVectorBytes, true));
    R2CC_MUST(ask(other, Function::kAllReduce, 64 << 20, true));
    const uint64_t number = seats->watched();
    R2CC_MUST(number != 0 && !takes_collnet(parent, Function::kAllReduce));
    R2CC_MUST(seats->set_way(number, abi::SeatWay::kCollNet) == 1);
    R2CC_MUST(takes_collnet(parent, Function::kAllReduce) && !takes_collnet(parent, Function::kAllGather));
    R2CC_MUST(!takes_collnet(other, Function::kAllReduce));
    R2CC_MUST(seats->set_way(number, abi::SeatWay::kUsual) == 1 && !takes_collnet(parent, Function::kAllReduce));
    // One that has ended, and one that never was.
    R2CC_MUST(tuner->Close(parent) == Result::kSuccess && seats->set_way(number, abi::SeatWay::kCollNet) == 0);
    R2CC_MUST(seats->set_way(0, abi::SeatWay::kCollNet) == 0 && seats->set_way(UINT64_MAX, abi::SeatWay::kCollNet) == 0);
    R2CC_MUST(!takes_collnet(other, Function::kAllReduce) && tuner->Close(other) == Result::kSuccess);
    return 0;
  });
  EXPECT_EQ(text, "");
}

TEST_P(TunerTest, BadArgumentsAreSuccessAndChangeNothing) {
  const std::string text = Run(kThreshold, [] {
    const std::unique_ptr<Tuner> tuner = TunerOf(GetParam());
    World world(true, true);
    const World before = world;
    R2CC_MUST(tuner->Open(16, 2, nullptr, nullptr) == Result::kSuccess);
    R2CC_MUST(tuner->Ask(nullptr, Function::kAllReduce, kMinBytes, true, &world) == Result::kSuccess && world == before);
    R2CC_MUST(tuner->Close(nullptr) == Result::kSuccess);
    void* context = nullptr;
    for (const auto& [ranks, nodes] : std::vector<std::pair<size_t, size_t>>{{0, 0}, {1, 2}, {SIZE_MAX, 2}, {16, SIZE_MAX}}) {
      R2CC_MUST(tuner->Open(ranks, nodes, &world, &context) == Result::kSuccess);
      R2CC_MUST(tuner->Ask(context, Function::kAllReduce, kMinBytes, true, &world) == Result::kSuccess && world == before);
      R2CC_MUST(tuner->Close(context) == Result::kSuccess);
    }
    R2CC_MUST(tuner->Open(16, 2, &world, &context) == Result::kSuccess);
    for (const int function : {-1, 5, 1 << 30})
      R2CC_MUST(tuner->Ask(context, static_cast<Function>(function), kMinBytes, true, &world) == Result::kSuccess && world == before);
    R2CC_MUST(tuner->Ask(context, Function::kAllReduce, SIZE_MAX, true, &world) == Result::kSuccess && world == before);
    R2CC_MUST(tuner->Ask(context, Function::kAllReduce, kMinBytes, true, &world, nullptr, 7, 3) == Result::kSuccess && world == before);
    if (GetParam() > 2)
      for (const auto& [algorithms, protocols] :
           std::vector<std::pair<int, int>>{{0, 3}, {7, 0}, {-7, 3}, {7, -3}, {-7, -3}, {2, 3}, {7, 2}})
        R2CC_MUST(tuner->Ask(context, Function::kAllReduce, kMinBytes, true, &world, world.cost + kMargin, algorithms, protocols) ==
                      Result::kSuccess &&
                  world == before);
    R2CC_MUST(tuner->Close(context) == Result::kSuccess);
    return 0;
  });
  EXPECT_EQ(text, "");
}

TEST_P(TunerTest, AnEnvironmentThatIsRefusedIsNoOpinionAndOneLine) {
  const std::string text = Run({{"R2CC_COLLNET_MIN_BYTES", "4M"}}, [] {
    for (int i = 0; i < 3; ++i) R2CC_MUST(LeavesEverything(true, true, 16, 2) == 0);
    return 0;
  });
  EXPECT_EQ(
      text,
      "R2CC: the tuner leaves every choice to NCCL: R2CC_COLLNET_MIN_BYTES=4M: want bytes, 0 to 1000000000000, the same on all ranks\n");
}

// A job may have its network from elsewhere: no thread, no socket, not a word about rails that are not there.
TEST_P(TunerTest, StartsNothing) {
  OwnProcess::Environment environment = kThreshold;
  environment["R2CC_RAILS"] = "no-such-rail";
  const std::string text = Run(environment, [] {
    const auto count = [](const char* folder) {
      const std::filesystem::directory_iterator all(folder);
      return std::distance(begin(all), end(all));
    };
    const std::unique_ptr<Tuner> tuner = TunerOf(GetParam());
    const auto files = count("/proc/self/fd"), threads = count("/proc/self/task");
    World world(true, true);
    void* context = nullptr;
    R2CC_MUST(tuner->Open(16, 2, &world, &context) == Result::kSuccess);
    R2CC_MUST(tuner->Ask(context, Function::kAllReduce, kMinBytes, true, &world) == Result::kSuccess);
    R2CC_MUST(world.algorithm == 3 || world.cost[kDirect] == 0);
    R2CC_MUST(tuner->Close(context) == Result::kSuccess);
    R2CC_MUST(count("/proc/self/fd") == files && count("/proc/self/task") == threads);
    return 0;
  });
  EXPECT_EQ(text, "");
}

INSTANTIATE_TEST_SUITE_P(AllVersions, TunerTest, testing::Range(2, 7), [](const auto& info) { return "v" + std::to_string(info.param); });

// v2 does not see what the user has excluded.
TEST(TunerV2, AUsersPinnedAlgorithmStays) {
  for (const char* name : {"NCCL_ALGO", "NCCL_PROTO"}) {
    OwnProcess::Environment environment = kThreshold;
    environment[name] = "Ring";
    OwnProcess process(environment, [] {
      const std::unique_ptr<Tuner> tuner = TunerOf(2);
      World world(true, true);
      const World before = world;
      void* context = nullptr;
      R2CC_MUST(tuner->Open(16, 2, &world, &context) == Result::kSuccess);
      R2CC_MUST(tuner->Ask(context, Function::kAllReduce, kMinBytes, true, &world) == Result::kSuccess && world == before);
      R2CC_MUST(tuner->Close(context) == Result::kSuccess);
      return 0;
    });
    EXPECT_EQ(process.Wait(), 0) << process.text();
  }
}

}  // namespace
}  // namespace r2cc::plugin_test
