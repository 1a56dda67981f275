// The answers to "why" against the text that a person is to see, whole.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "client/format/format.h"

namespace r2cc::client {
namespace {

// 2025-01-02 03:04:05 UTC
constexpr int64_t kNow = 1'735'787'045'000'000'000;

template <typename Message>
Message FromText(const char* text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
  return message;
}

TEST(Format, AWideListHasThePartsAndWhyAFactIsMissing) {
  const auto nic = FromText<v1::ExplainNicReply>(R"pb(
    node: "n0"
    nic { name: "rail0" state: HEALTHY pci: "0000:81:00.0" address: "10.0.0.1" }
    inventory { driver: "mlx5_core" firmware: "28.39" slot: "4" missing: "serial: only root\033[2J" })pb");
  EXPECT_EQ(FormatWideNics({nic}, {}),
            "NIC       STATE    RATE  DRIVER     FIRMWARE  SLOT  PCI           ADDRESS\n"
            "n0/rail0  HEALTHY     ?  mlx5_core  28.39     4     0000:81:00.0  10.0.0.1\n"
            "\n"
            "n0/rail0: no serial: only root [2J\n");
  EXPECT_NE(FormatExplainNic(nic, {}).find("part    mlx5_core, firmware 28.39, slot 4 (0000:81:00.0)\n"), std::string::npos);
}

TEST(Format, WhyIsTheWholeStoryOfANic) {
  const auto reply = FromText<v1::ExplainNicReply>(R"pb(
    node: "n1"
    nic {
      name: "rail2"
      state: FAILED
      since_ns: 1735787042000000000
      reason: "silent"
      link_up: true
      rate_bits_per_s: 500000000
      flaps_total: 1
    }
    verdict: "port"
    verdict_text: "port of n1/rail2"
    planned { node: "n1" nic: "rail2" state: FAILED }
    pairs {
      nic: "rail2"
      peer_node: "n0"
      peer_nic: "rail2"
      state: "silent"
      since_ns: 1735787042000000000
      active: true
      sent: 90
      answered: 60
      recent: 64
      recent_lost: 32
      round_trip_ns: 150000
      last_answer_ns: 1735787041000000000
    }
    evidence {
      first_ns: 1735787042000000000
      last_ns: 1735787042000000000
      times: 1
      observer: "n1"
      kind: "rail-silent"
      detail: "port of n1/rail2"
    }
    done {
      sequence: 7
      time_ns: 1735787042000000000
      node: "n1"
      nic: "rail2"
      kind: "nic-state"
      from_state: HEALTHY
      to_state: FAILED
      message: "silent"
    }
    advice: "check the cable"
  )pb");
  EXPECT_EQ(FormatExplainNic(reply, {kNow}), R"(n1/rail2  FAILED  3.0 s ago: silent
verdict port of n1/rail2
plan    FAILED, weight 0%
jobs    send nothing over it; their data goes over the node's other NICs
link    up, 500 Mbit/s, 1 flap
do      check the cable

probes
FROM      TO        STATE       SINCE  LOSS  ROUND TRIP       LAST  ANSWERED  USE
n1/rail2  n0/rail2  silent  3.0 s ago   50%      150 us  4.0 s ago     60/90  jobs

evidence, newest first
     LAST  TIMES  SEEN BY  EVIDENCE             DETAIL
3.0 s ago      1  n1       no answer to probes  port of n1/rail2

what happened, newest first
     7  2025-01-02 03:04:02.000+00:00  n1/rail2          nic-state       HEALTHY -> FAILED, silent
)");
}

TEST(Format, PlanWhyGivesReasonsAndEachGpusNics) {
  const auto reply = FromText<v1::ExplainPlanReply>(R"pb(
    epoch { counter: 4 }
    reasons {
      planned { node: "n0" nic: "rail0" state: DEGRADED weight_permille: 250 }
      reason: "runs at 25 Gbit/s"
    }
    routes {
      gpu_pci: "0000:1b:00.0"
      chain { nic: "rail0" distance: "same-switch" weight_permille: 1000 }
      chain { nic: "rail1" distance: "same-numa" }
    }
    trouble: "a NIC twice"
  )pb");
  EXPECT_EQ(FormatExplainPlan(reply, {kNow}), R"(plan 4 (life 0000000000000000)
refused a NIC twice; the plan before is in force

NIC       STATE     WEIGHT  WHY
n0/rail0  DEGRADED     25%  runs at 25 Gbit/s

GPU           NICS, NEAREST FIRST
0000:1b:00.0  rail0 100% (same-switch) > rail1 (same-numa)
)");
}

}  // namespace
}  // namespace r2cc::client
