// Each reply against the text that a person is to see, whole.
#include "client/format/format.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <string>

#include "proto/json.h"

namespace r2cc::client {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr int64_t kSecond = 1'000'000'000;
// 2025-01-02 03:04:05 UTC
constexpr int64_t kNow = 1'735'787'045 * kSecond;

template <typename Message>
Message FromText(const char* text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
  return message;
}

v1::ListNicsReply TwoNodes() {
  return FromText<v1::ListNicsReply>(R"pb(
    nodes {
      node: "n0"
      word: NODE_DEGRADED
      nics {
        name: "rail0"
        state: HEALTHY
        link_up: true
        rate_bits_per_s: 500000000
        operator_weight_permille: 1000
        address: "10.0.0.1"
        since_ns: 1735786865000000000
      }
      nics {
        name: "rail1"
        state: FAILED
        drill_failed: true
        drill_ends_ns: 1735787643000000000
        flaps_total: 2
        rate_bits_per_s: 500000000
        operator_weight_permille: 250
        address: "10.1.0.1"
        since_ns: 1735787044000000000
        reason: "link down"
      }
    }
    nodes {
      node: "node-one"
      nics { name: "r0" state: DRAINED link_up: true drained: true drill_failed: true operator_weight_permille: 1000 }
    })pb");
}

TEST(Format, Nics) {
  EXPECT_EQ(FormatNics(TwoNodes(), {.now_ns = kNow}),
            "NIC          STATE    LINK        RATE  LIMIT  OPERATOR                   FLAPS          SINCE  ADDRESS   REASON\n"
            "n0/rail0     HEALTHY  up    500 Mbit/s   100%                                 0  3 min 0 s ago  10.0.0.1\n"
            "n0/rail1     FAILED   down  500 Mbit/s    25%  fail-nic, 9 min 58 s left      2      1.0 s ago  10.1.0.1  link down\n"
            "node-one/r0  DRAINED  up             ?   100%  drained, fail-nic              0\n");
  EXPECT_EQ(FormatNics({}, {}), "no NICs\n");
  EXPECT_EQ(FormatNics({}, {}, /*only_bad=*/true), "none is bad\n");
  const auto gray = FromText<v1::ListNicsReply>(R"pb(nodes {
                                                       node: "n0"
                                                       nics {
                                                         name: "rail0"
                                                         state: DEGRADED
                                                         link_up: true
                                                         operator_weight_permille: 1000
                                                         reason: "moves 25% of the best rail (train (pid 7))"
                                                         share_permille: 250
                                                       }
                                                     })pb");
  EXPECT_EQ(FormatNics(gray, {}),
            "NIC       STATE     LINK  RATE  LIMIT  FLAPS  REASON\n"
            "n0/rail0  DEGRADED  up       ?   100%      0  moves 25% of the best rail (train (pid 7))\n");
}

TEST(Format, ColourOnlyWhereAsked) {
  EXPECT_THAT(FormatNics(TwoNodes(), {.now_ns = kNow}), Not(HasSubstr("\033")));
  EXPECT_THAT(FormatNics(TwoNodes(), {.now_ns = kNow, .colour = true}), HasSubstr("\033[31mFAILED\033[0m"));
}

TEST(Format, Status) {
  auto reply = FromText<v1::StatusReply>(R"pb(
    node: "n0"
    release: "0.1"
    word: NODE_DEGRADED
    uptime_ns: 62000000000
    jobs: 2
    store: "serving"
    epoch { incarnation: 0xfeed0123 counter: 17 }
    plan_epoch { incarnation: 0xfeed0123 counter: 4 }
    peers { node: "node-one" address: "10.9.0.2:7460" connected: true }
    peers { node: "n2" address: "10.9.0.3:7460" error: "connection refused" })pb");
  *reply.mutable_nodes() = TwoNodes().nodes();
  EXPECT_EQ(FormatStatus(reply, {.now_ns = kNow}),
            "node    n0  (r2ccd 0.1)\n"
            "health  Degraded\n"
            "uptime  1 min 2 s\n"
            "store   serving\n"
            "jobs    2\n"
            "drill   n0/rail1: fail-nic, 9 min 58 s left\n"
            "drill   node-one/r0: fail-nic\n"
            "view    17 (life 00000000feed0123)\n"
            "plan    4 (life 00000000feed0123)\n"
            "\n"
            "NODE      HEALTH    NICS                 DAEMON\n"
            "n0        Degraded  1 healthy, 1 failed  this daemon\n"
            "node-one  ?         1 drained            connected, 10.9.0.2:7460\n"
            "n2        ?         no view yet          not connected, 10.9.0.3:7460: connection refused\n");
}

TEST(Format, TheStateOfANodeThatIsAwayIsStale) {
  auto reply = FromText<v1::StatusReply>(R"pb(
    node: "n0"
    nodes {
      node: "n1"
      word: NODE_HEALTHY
      nics { state: HEALTHY }
    }
    peers { node: "n1" address: "10.9.0.2:7460" known: true error: "Connection refused" })pb");
  EXPECT_THAT(FormatStatus(reply, {}), HasSubstr("n1    Healthy, stale  1 healthy  not connected, 10.9.0.2:7460: Connection refused\n"));
  reply.mutable_peers(0)->set_connected(true);
  EXPECT_THAT(FormatStatus(reply, {}), Not(HasSubstr("stale")));
}

TEST(Format, NicAction) {
  const auto request = FromText<v1::NicActionRequest>(R"pb(node: "n0" nic: "rail1" action: FAIL)pb");
  auto reply =
      FromText<v1::NicActionReply>(R"pb(changed: true
                                        nic { name: "rail1" state: FAILED operator_weight_permille: 1000 reason: "fail-nic" })pb");
  EXPECT_EQ(FormatNicAction(request, reply, {}), "n0/rail1: now FAILED, limit 100%: fail-nic\n");
  reply.set_changed(false);
  EXPECT_EQ(FormatNicAction(request, reply, {}), "n0/rail1: nothing to change, already FAILED, limit 100%: fail-nic\n");
}

TEST(Format, Events) {
  const auto state = FromText<v1::Event>(R"pb(
    sequence: 12
    time_ns: 1735787045123000000
    node: "n0"
    nic: "rail1"
    kind: "nic-state"
    from_state: HEALTHY
    to_state: FAILED
    message: "link down")pb");
  EXPECT_EQ(FormatEvent(state, {}),
            "    12  2025-01-02 03:04:05.123+00:00  n0/rail1          nic-state       HEALTHY -> FAILED, link down\n");
  auto whole = state;
  whole.set_message("n0/rail1 HEALTHY -> FAILED: link down");
  EXPECT_EQ(FormatEvent(whole, {}), FormatEvent(state, {}));
  const auto failover = FromText<v1::Event>(R"pb(
    sequence: 13
    time_ns: 1735787045125000000
    node: "n0"
    nic: "rail1"
    kind: "failover"
    cause: "socket-error"
    replayed_bytes: 1572864
    duration_ns: 8500000
    peer_node: "n1"
    peer_nic: "rail1"
    pid: 77)pb");
  EXPECT_EQ(
      FormatEvent(failover, {}),
      "    13  2025-01-02 03:04:05.125+00:00  n0/rail1          failover        to n1/rail1, its connection broke, 1.5 MiB replayed in 8.5 "
      "ms, pid 77\n");
  auto with_message = failover;
  with_message.set_message("train (pid 77) gave up rail1 -> n1/rail1: its connection broke; 1572864 bytes replayed, 8.5 ms");
  EXPECT_EQ(
      FormatEvent(with_message, {}),
      "    13  2025-01-02 03:04:05.125+00:00  n0/rail1          failover        train (pid 77) gave up rail1 -> n1/rail1: its connection "
      "broke; 1572864 bytes replayed, 8.5 ms\n")
      << "nothing twice";
  EventColumns columns;
  auto longer = state;
  longer.set_node("gpu-node-17.example.com");
  columns.Grow(longer);
  EXPECT_EQ(FormatEvent(state, {}, columns).find("nic-state"), FormatEvent(longer, {}, columns).find("nic-state"));
  const auto node = FromText<v1::Event>(R"pb(sequence: 14 node: "n0" kind: "daemon-started" message: "a\033[2J\nb")pb");
  EXPECT_EQ(FormatEvent(node, {}), "    14  1970-01-01 00:00:00.000+00:00  n0                daemon-started  a [2J b\n");
}

TEST(Format, ForgottenNode) {
  v1::ForgetNodeRequest request;
  request.set_node("n7");
  v1::ForgetNodeReply reply;
  reply.set_silent_ns(182'000'000'000);
  EXPECT_EQ(FormatForgetNode(request, reply), "n7 is forgotten; it had sent nothing for 3 min 2 s\n");
  reply.set_configured(true);
  EXPECT_EQ(FormatForgetNode(request, reply),
            "n7 is forgotten; it had sent nothing for 3 min 2 s; it is listed as a peer as long as this daemon's configuration names "
            "it\n");
}

TEST(Format, Jobs) {
  const auto reply = FromText<v1::ListJobsReply>(R"pb(
    jobs {
      pid: 41
      uid: 1000
      job: "train"
      process_id: "0"
      attached_ns: 1735787035000000000
      peer_nodes: "n1"
      peer_nodes: "n2"
      evidence_dropped: 3
      rails { rail: "eth0" nic: "rail0" sent_bytes: 1048576 received_bytes: 2097152 }
      rails { rail: "eth1" sent_bytes: 512 replayed_bytes: 4096 failovers: 1 }
    }
    jobs { pid: 42 pid_claimed: true job: "idle" })pb");
  EXPECT_EQ(FormatJobs(reply, {.now_ns = kNow}),
            "PID  USER  JOB    PROCESS    ATTACHED  RAIL  NIC           SENT  RECEIVED  REPLAYED  FAILOVERS  LOST  PEERS\n"
            " 41  1000  train  0        10.0 s ago  eth0  rail0        1 MiB     2 MiB       0 B          0     3  n1 n2\n"
            "                                       eth1  not matched  512 B       0 B     4 KiB          1\n"
            "42?  0     idle                        -     -\n");
  Style names{.now_ns = kNow};
  names.user_name = [](uint32_t uid) { return uid == 1000 ? std::string("alice") : std::string(); };
  EXPECT_THAT(FormatJobs(reply, names), HasSubstr("\n 41  alice  train "));
  EXPECT_EQ(FormatJobs({}, {}), "no jobs attached\n");
}

TEST(Format, AJobThatHangsComesFirst) {
  const auto reply = FromText<v1::ListJobsReply>(R"pb(
    jobs {
      pid: 41
      job: "train"
      waiting { since_ns: 1735787035000000000 requests: 3 hangs: true text: "it waits for n1/rail2 over rail2\033[2J" }
    }
    jobs {
      pid: 42
      job: "train"
      waiting { since_ns: 1735787035000000000 requests: 3 text: "not for long" }
    })pb");
  const std::string text = FormatJobs(reply, {.now_ns = kNow});
  EXPECT_THAT(text,
              testing::StartsWith(
                  "hangs: train (pid 41) with 3 requests outstanding, last progress 10.0 s ago: it waits for n1/rail2 over rail2 [2J\n\n"));
  EXPECT_THAT(text, Not(HasSubstr("not for long")));
}

TEST(Format, JobsWhoseAllReducesGoAnotherWay) {
  const auto reply = FromText<v1::ListJobsReply>(R"pb(
    jobs {
      pid: 41
      job: "train"
      ways { communicator: 3 way: "tree" call: 51200 since_ns: 1735787035000000000 bytes_min: 16777216 expected_permille: 660 changes: 1 }
      ways { communicator: 4 way: "nccl" call: 60000 since_ns: 1735787035000000000 changes: 2 }
    })pb");
  EXPECT_THAT(FormatJobs(reply, {.now_ns = kNow}),
              testing::StartsWith("allreduce: train (pid 41), communicator 3: NCCL's tree in another order of nodes from 16 MiB on, "
                                  "expected 0.66 of the usual time, since call 51200 10.0 s ago\n\n"));
}

TEST(Format, EndedJobs) {
  const auto reply = FromText<v1::ListJobsReply>(R"pb(
    jobs {
      pid: 41
      uid: 1000
      job: "train"
      ended_ns: 1735787035000000000
      gave_up { peer_node: "n1" text: "job train gave\033up" }
    })pb");
  EXPECT_EQ(FormatEndedJobs(reply, {.now_ns = kNow}),
            "ENDED       USER  WHY\n"
            "10.0 s ago  1000  job train gave up\n");
  EXPECT_EQ(FormatEndedJobs({}, {}), "no job that ended had given up on a peer\n");
}

TEST(Format, Plan) {
  const auto plan = FromText<v1::Plan>(R"pb(
    epoch { incarnation: 9 counter: 3 }
    nics { node: "n0" nic: "rail0" state: HEALTHY weight_permille: 1000 }
    nics { node: "n0" nic: "rail1" state: FAILED })pb");
  EXPECT_EQ(FormatPlan(plan, {}),
            "plan 3 (life 0000000000000009)\n\n"
            "NIC       STATE    WEIGHT\n"
            "n0/rail0  HEALTHY    100%\n"
            "n0/rail1  FAILED       0%\n");
  v1::Plan with_path = plan;
  auto* path = with_path.add_broken_paths();
  path->set_node("n0");
  path->set_nic("rail0");
  path->set_peer_node("n1");
  path->set_peer_nic("rail0");
  EXPECT_THAT(FormatPlan(with_path, {}), HasSubstr("\nforbidden: the path between n0/rail0 and n1/rail0\n"));
}

TEST(Format, StateNumbersOfALaterReleaseAreShownAsNumbers) {
  v1::Plan plan;
  plan.add_nics()->set_state(static_cast<v1::NicState>(99));
  EXPECT_THAT(FormatPlan(plan, {}), HasSubstr("state 99"));
}

TEST(Json, KeepsFieldNamesAndPrintsDefaultsAndReadsBack) {
  const auto text = ToJsonDocument(TwoNodes());
  ASSERT_TRUE(text.ok());
  for (const char* part : {"\"rate_bits_per_s\"", "\"drained\": false", "\"flaps_total\": 0", "\"state\": \"FAILED\"", "\"pci\": \"\""})
    EXPECT_THAT(*text, HasSubstr(part));
  v1::ListNicsReply back;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(*text, &back).ok());
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(back, TwoNodes()));
}

TEST(Json, ALineIsOneLine) {
  v1::Event event;
  event.set_message("two\nlines");
  const auto text = ToJsonLine(event);
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(text->find('\n'), text->size() - 1);
}

TEST(Format, ALargeClusterBeginsWithHowManyThereAreOfEach) {
  const auto status = FromText<v1::StatusReply>(R"pb(
    node: "n0"
    word: NODE_HEALTHY
    nodes {
      node: "n7"
      word: NODE_DEGRADED
      nics { name: "rail0" state: FAILED }
      nics { name: "rail1" state: UNCABLED }
    }
    peers { node: "n1" address: "10.0.0.1:7460" connected: true known: true }
    summary {
      nodes { word: NODE_HEALTHY nodes: 9990 }
      nodes { word: NODE_DEGRADED nodes: 10 }
      nics { state: HEALTHY nics: 79990 }
      nics { state: FAILED nics: 10 }
    }
    left_out: 9)pb");
  const std::string text = FormatStatus(status, {kNow});
  EXPECT_THAT(text, HasSubstr("nodes   9990 Healthy, 10 Degraded\nNICs    79990 healthy, 10 failed\n"));
  EXPECT_THAT(text, HasSubstr("n7    Degraded  1 failed, 1 uncabled"));
  EXPECT_THAT(text, Not(HasSubstr("no view yet"))) << "n1 is well, and not named for that";
  EXPECT_THAT(text, HasSubstr("and 9 more that are not well: `r2ccctl nic list --bad`\n"));

  const auto nics = FromText<v1::ListNicsReply>(R"pb(summary {
                                                       nodes { word: NODE_HEALTHY nodes: 2 }
                                                       nics { state: HEALTHY nics: 4 }
                                                     })pb");
  EXPECT_EQ(FormatNics(nics, {kNow}), "nodes: 2 Healthy; NICs: 4 healthy\n\nno NICs\n");
}

// A daemon without a store knows a node that is none of its peers because that one calls it.
TEST(Format, ANodeDoesNotComeThroughAMissingStore) {
  v1::StatusReply reply;
  reply.set_node("n0");
  reply.add_nodes()->set_node("n0");
  reply.add_nodes()->set_node("n1");
  EXPECT_THAT(FormatStatus(reply, {}), testing::AllOf(HasSubstr("it calls here"), Not(HasSubstr("through the store"))));
  reply.set_store("serving");
  EXPECT_THAT(FormatStatus(reply, {}), HasSubstr("through the store"));
}

}  // namespace
}  // namespace r2cc::client
