// The contract over the RDMA devices that R2CC_HW names, after the fence probe on the first two of them (tests/rigs/one_guest). The rails
// that they do not make, and the out-of-band cable, are virtual ones, by TCP.
//
// It needs the machine for itself: interfaces of those devices go down, and how the kernel routes between its own addresses is changed
// until the end.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/contract/fixture.h"
#include "tests/contract/processes/process_world.h"
#include "tests/contract/verbs/local_nodes.h"
#include "tests/rigs/hardware/hardware.h"

namespace r2cc::contract {
namespace {

constexpr char kCables[] = "tests/contract/verbs/cables.sh";
// Of the virtual rails: next to nothing, so that the NICs carry the most.
constexpr int64_t kRailBytesPerS = 2'000'000;
// The machine may be an emulated one.
constexpr Nanos kPatience = 120 * kSecond;
constexpr int kSlack = 8;
constexpr Nanos kSilence = 400 * kMs;

constexpr char kSilenceTrait[] = "a rail that falls silent without an event";
constexpr char kRateTrait[] = "rails of a rate that the test chooses";
constexpr char kCountTrait[] = "a count of the bytes that left by a rail";

std::vector<rig::HardwareCable>& Hardware() {
  static auto* const cables = new std::vector<rig::HardwareCable>;
  return *cables;
}

std::string MendOf(size_t rail, const rig::HardwareCable& cable) {
  return std::string(kCables) + " route " + std::to_string(rail) + " " + cable.ends[0].interface + ":" + cable.ends[1].interface;
}

// Before all tests, once R2CC_HW is known to be good, and after them.
class HardwareIsSetUp : public testing::Environment {
 public:
  void SetUp() override {
    std::string error;
    if (!rig::FindHardware(std::getenv("R2CC_HW"), "/sys", &Hardware(), &error)) FAIL() << error;
    if (Hardware().empty()) return;
    if (geteuid() != 0) FAIL() << "R2CC_HW needs root (sudo): interfaces are taken down and routes are made";
    std::string command = std::string(kCables) + " up";
    for (const rig::HardwareCable& cable : Hardware()) {
      for (const rig::HardwareEnd& end : cable.ends) std::printf("%s\n", rig::Describe(end, "/sys").c_str());
      command += " " + cable.ends[0].interface + ":" + cable.ends[1].interface;
    }
    std::fflush(stdout);
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
  }
  void TearDown() override {
    if (Hardware().empty()) return;
    EXPECT_EQ(std::system((std::string(kCables) + " down").c_str()), 0);
  }
};

// In place of RDMA's: nothing travels eagerly.
class HardwareWorld final : public ProcessWorld {
 public:
  using ProcessWorld::ProcessWorld;
  bool HasEagerMessages() const override { return false; }
};

std::unique_ptr<World> MakeWorld(const Options& options) {
  static LocalNodes* const nodes = [] {
    std::array<Cable, kRails + 1> cables;
    for (size_t i = 0; i < cables.size(); ++i) {
      const std::string rail = std::to_string(i);
      if (i < Hardware().size()) {
        const rig::HardwareCable& real = Hardware()[i];
        cables[i] = {.interfaces = {real.ends[0].interface, real.ends[1].interface}, .mend = MendOf(i, real)};
      } else {
        cables[i] = {.interfaces = {"hw" + rail + "a", "hw" + rail + "b"}, .ports = {"hwp" + rail + "a", "hwp" + rail + "b"}};
        cables[i].bridge = "hwbr" + rail;
      }
    }
    return new LocalNodes(cables, Hardware().size() == kRails ? "verbs" : "auto");
  }();
  return std::make_unique<HardwareWorld>(options, nodes);
}

std::string Missing() { return Hardware().empty() ? rig::kNoHardware : ""; }

const std::map<std::string, std::string> kLacks = {
    {"GrantedNothingTravelsBeforeItsBufferIsPosted", kCountTrait},
    {"FlushDoneMeansThereWhicheverRailsCarriedIt", kCountTrait},
    {"PageMovesTrafficAwayAndBack", kCountTrait},
    {"FencedOnceForAllFlowsOfTheLink", kRateTrait},
    {"AbortOfEitherSideIsTheOthersError", kRateTrait},
    {"GrayRailIsUsedForWhatItMovesAndNotGivenUp", kRateTrait},
    {"PathsThatTheTwoEndsLostDifferently", kRateTrait},
    {"PageWeightIsACeiling", kRateTrait},
    {"GrantedLosingAnyChannelLosesNothing", kSilenceTrait},
    {"NoLateWriteFromARailThatWasOnlySilent", kSilenceTrait},
    {"ExactlyOnceInChunksOfWholeLines", kSilenceTrait},
    {"NthFailureDuringTheReplay", kSilenceTrait},
    {"NthFailureTakesTheChannelThatAnswersTheFence", kSilenceTrait},
    {"RepairedRailIsUsedAgain", kSilenceTrait},
    {"LastAcksOutliveFlowAndProcess", kSilenceTrait},
    {"PathsOpenWithRailsDeadAtTheStart", kSilenceTrait},
    {"PathsFaultsDuringConnectAndAccept", kSilenceTrait},
    {"PathsAllLostBeyondTheDeadlineIsAnErrorAtBothEnds", kSilenceTrait},
    {"PathsToANodeThatVanishedAreAnErrorAtBothEnds", kSilenceTrait},
    {"SilenceOfARailIsGivenUpInTime", kSilenceTrait},
};

INSTANTIATE_TEST_SUITE_P(VerbsHw, Contract,
                         testing::Values(Transport{.name = "Hardware",
                                                   .missing = Missing,
                                                   .make = MakeWorld,
                                                   .real_time = true,
                                                   .patience = kPatience,
                                                   .slack = kSlack,
                                                   .rail_bytes_per_s_most = kRailBytesPerS,
                                                   .silence_least = kSilence,
                                                   .lacks = kLacks}),
                         [](const auto& info) { return info.param.name; });

const testing::Environment* const kEnvironment = testing::AddGlobalTestEnvironment(new HardwareIsSetUp);

}  // namespace
}  // namespace r2cc::contract
