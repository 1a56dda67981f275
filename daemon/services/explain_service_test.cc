#include "daemon/services/explain_service.h"

#include <gtest/gtest.h>

namespace r2cc::daemon {
namespace {

using health::Fault;
using health::FaultKind;
using health::NicKey;
using health::NicState;
using health::NicStatus;

const NicKey kNic = {"n1", "rail2"};
const NicKey kOther = {"n0", "rail2"};

NicStatus Nic(NicState state, bool link_up = true) {
  return {.identity = {.name = "rail2", .interface = "eth2"}, .state = state, .reason = "the reason", .link_up = link_up};
}

TEST(MakeVerdict, ALinkThatIsDownIsAPortFaultByItsOwnReport) {
  const NicVerdict verdict = MakeVerdict(kNic, Nic(NicState::kFailed, false), Fault(), nullptr, nullptr);
  EXPECT_EQ(verdict.kind, "port");
  EXPECT_EQ(verdict.text, "port of n1/rail2 (NIC, cable or switch port): the kernel of its node reports: the reason");
  ASSERT_EQ(verdict.advice.size(), 1U);
  EXPECT_EQ(verdict.advice[0], "on n1: `ip link show dev eth2`; then the cable and the switch port that it leads to");
}

TEST(MakeVerdict, AnInterfaceThatIsGoneMayHaveAnotherName) {
  NicStatus gone = Nic(NicState::kFailed, false);
  gone.reason = "interface eth2 is gone";
  const NicVerdict verdict = MakeVerdict(kNic, gone, Fault(), nullptr, nullptr);
  EXPECT_EQ(verdict.text, "n1/rail2: n1 has no interface eth2: it has another name now, or its device is gone");
  ASSERT_EQ(verdict.advice.size(), 2U);
  EXPECT_EQ(verdict.advice[0],
            "on n1: `ip -br link` lists the interfaces; if it has another name, set nics { interface } and run `r2ccctl config reload`");
}

TEST(MakeVerdict, BothEndsOfADirectCableDownIsTheCable) {
  const NicStatus up = Nic(NicState::kHealthy);
  const NicStatus down = Nic(NicState::kFailed, false);
  EXPECT_EQ(MakeVerdict(kNic, down, Fault(), &kOther, &down).kind, "cable");
  EXPECT_EQ(MakeVerdict(kNic, down, Fault(), &kOther, &down).text,
            "cable between n1/rail2 and n0/rail2, or the port at one of its ends: both ends lost their link");
  EXPECT_EQ(MakeVerdict(kNic, down, Fault(), &kOther, &up).kind, "port");
  EXPECT_EQ(MakeVerdict(kNic, down, Fault(), &kOther, nullptr).kind, "cannot-tell");
}

TEST(MakeVerdict, ProbesDecideWhileTheLinkIsUp) {
  Fault fault{.kind = FaultKind::kPath, .peers = {kOther}, .auxiliary = {{"n2", "rail2"}}};
  EXPECT_EQ(MakeVerdict(kNic, Nic(NicState::kDegraded), fault, nullptr, nullptr).kind, "path");
  fault.kind = FaultKind::kInconclusive;
  fault.missing = "a third node";
  const NicVerdict verdict = MakeVerdict(kNic, Nic(NicState::kSuspect), fault, nullptr, nullptr);
  EXPECT_EQ(verdict.kind, "cannot-tell");
  EXPECT_EQ(verdict.advice,
            (std::vector<std::string>{"check eth2 of n1, " + kOther.ToString() + " and their switch ports; `r2ccctl nic drain n1/" +
                                          kNic.nic + "` keeps traffic off it meanwhile",
                                      "missing: a third node"}))
      << "two nodes have no third, and there is something to do";
}

TEST(MakeVerdict, LostLargePacketsAreNamedWhereSmallOnesPass) {
  health::LargeFault large{.fault = {.kind = FaultKind::kInconclusive, .peers = {kOther}},
                           .loss = {.packet_bytes = 9000, .passed_bytes = 1500}};
  NicVerdict verdict = MakeVerdict(kNic, Nic(NicState::kDegraded), Fault(), nullptr, nullptr, large);
  EXPECT_EQ(verdict.kind, "cannot-tell");
  EXPECT_EQ(verdict.text, "packets over 1500 bytes are lost between n1/rail2 and " + kOther.ToString() + "; small ones pass");
  ASSERT_EQ(verdict.advice.size(), 2u);
  EXPECT_EQ(verdict.advice[0].substr(0, 13), "check the MTU");
  // Silence is more, and so is a link that is down.
  const Fault silence{.kind = FaultKind::kPath, .peers = {kOther}};
  EXPECT_EQ(MakeVerdict(kNic, Nic(NicState::kDegraded), silence, nullptr, nullptr, large).kind, "path");
  EXPECT_EQ(MakeVerdict(kNic, Nic(NicState::kFailed, false), Fault(), nullptr, nullptr, large).kind, "port");
}

TEST(MakeVerdict, TheOperatorsSettingIsShownNextToTheFault) {
  NicStatus drilled = Nic(NicState::kFailed);
  drilled.drill_failed = true;
  EXPECT_EQ(MakeVerdict(kNic, drilled, Fault(), nullptr, nullptr).kind, "operator");
  NicStatus drained = Nic(NicState::kDrained);
  drained.drained = true;
  EXPECT_EQ(MakeVerdict(kNic, drained, Fault(), nullptr, nullptr).text, "n1/rail2 is drained by an operator");
  drained.link_up = false;
  const NicVerdict both = MakeVerdict(kNic, drained, Fault(), nullptr, nullptr);
  EXPECT_EQ(both.kind, "port");
  EXPECT_EQ(both.advice.back(), "r2ccctl nic undrain n1/rail2");
}

TEST(MakeVerdict, EveryStateHasAText) {
  for (int state = 0; state < health::kNicStates; ++state) {
    const NicVerdict verdict = MakeVerdict(kNic, Nic(static_cast<NicState>(state)), Fault(), nullptr, nullptr);
    EXPECT_FALSE(verdict.kind.empty()) << state;
    EXPECT_FALSE(verdict.text.empty()) << state;
  }
  EXPECT_EQ(MakeVerdict(kNic, Nic(NicState::kDegraded), Fault(), nullptr, nullptr).text, "n1/rail2 carries less than its due: the reason");
}

TEST(MakeVerdictFromAfar, AnsweringNicsWorkAndSilentOnesAreInconclusive) {
  const NicKey there = {"n2", "rail2"};
  NicVerdict verdict = MakeVerdictFromAfar(kNic, {kOther}, {}, {});
  EXPECT_EQ(verdict.kind, "cannot-tell");
  EXPECT_EQ(verdict.text, "n1/rail2 answers the rail probes of n0/rail2, so it works; only its daemon cannot be asked");
  verdict = MakeVerdictFromAfar(kNic, {}, {kOther}, {there});
  EXPECT_EQ(verdict.text,
            "neither n1/rail2 nor the daemon of n1 answers: the node or its NIC; not the rail of n0/rail2, where n2/rail2 "
            "answers");
  EXPECT_EQ(verdict.advice.front(), "missing: a path to n1 in addition to this rail (a management network, or a second rail)");
  verdict = MakeVerdictFromAfar(kNic, {}, {kOther}, {});
  EXPECT_EQ(verdict.text, "neither n1/rail2 nor the daemon of n1 answers: the node or its NIC, or this rail");
  verdict = MakeVerdictFromAfar(kNic, {}, {}, {});
  EXPECT_EQ(verdict.text, "the daemon of n1 cannot be asked, and no rail of this node leads to n1/rail2");
}

}  // namespace
}  // namespace r2cc::daemon
