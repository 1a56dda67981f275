// The values that the frozen bytes of release 0.2.0 encode, of what TCP, RDMA and collectives say within frames and messages: only these
// rooms read it. The rules of golden_values.h apply.
#ifndef R2CC_TESTS_UPGRADE_GOLDEN_TRANSPORT_VALUES_H_
#define R2CC_TESTS_UPGRADE_GOLDEN_TRANSPORT_VALUES_H_

#include <string>
#include <utility>
#include <vector>

#include "netplugin/collnet/message.h"
#include "netplugin/transport/tcp/endpoint.h"
#include "netplugin/transport/verbs/grant_ring.h"
#include "netplugin/transport/verbs/offer.h"
#include "netplugin/transport/verbs/tail.h"

namespace r2cc::golden {

// ---- TCP ----

inline net::SocketAddress TcpAddress() {
  net::SocketAddress address;
  net::ParseAddress("10.1.0.1", 7461, &address);
  return address;
}
constexpr net::TcpPath kTcpPath = {.control = false, .socket = 2, .sockets = 4};

// ---- RDMA ----

inline net::verbs::RailAddress VerbsAddress() {
  return {net::verbs::LinkLayer::kEthernet, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 1, 0, 1}, 7};
}
inline net::verbs::Offer VerbsOffer() {
  return {.address = VerbsAddress(),
          .number = 0x1234,
          .psn = 0x56789a,
          .mtu_bytes = 4096,
          .receives = 512,
          .adaptive_routing = true,
          .records = {0x1112'1314'1516'1718, 1},
          .tails = {0x2122'2324'2526'2728, 2},
          .proof = {0x3132'3334'3536'3738, 3}};
}
constexpr uint32_t kVerbsKey = 0xcafe'f00d;
constexpr net::verbs::ChunkMark kVerbsMark = {.ticket = net::verbs::TicketOf(7, 42), .chunk = 3, .last = true};
constexpr net::verbs::Tail kVerbsTail = {1 << 20, 1 << 17};
// One of each kind, with its name as the file's.
inline std::vector<std::pair<std::string, net::verbs::Record>> VerbsRecords() {
  using net::verbs::RecordKind;
  return {{"verbs_credit", {.kind = RecordKind::kCredit, .number = 1, .receives = 512, .read = 3}},
          {"verbs_ack", {.kind = RecordKind::kAck, .number = 2, .receives = 513, .read = 4, .flow = 7, .placed_through = 41}},
          {"verbs_grant",
           {.kind = RecordKind::kGrant,
            .number = 3,
            .receives = 514,
            .read = 5,
            .flow = 7,
            .placed_through = 41,
            .messages = 2,
            .message = 43,
            .capacity = 1 << 20,
            .place = {5, 2, 4096},
            .next_offset = 8192}}};
}

// ---- collectives ----

// Members whose versions differ refuse each other: a range there is none.
constexpr uint16_t kOldGroup = 2;

inline collnet::OperationOffer GroupOffer() {
  return {.operation = 42, .epoch = 3, .count = 1 << 20, .type = abi::DataType::kFloat32, .op = abi::RedOp::kSum};
}
inline collnet::Greeting GroupGreeting() {
  return {.group = 0x1112'1314'1516'1718, .members = 4, .member = 2, .control = false, .slot = 1, .from_lane = 3, .to_lane = 2};
}
inline std::vector<std::pair<std::string, collnet::Message>> GroupMessages() {
  const collnet::PlanSpec direct = {
      .kind = collnet::PlanSpec::Kind::kDirect,
      .pieces_max = 8,
      .piece_bytes = 65536,
      .parts = {collnet::PlanSpec::kWhole / 2, collnet::PlanSpec::kWhole / 4, 0, collnet::PlanSpec::kWhole / 4}};
  return {{"group_stamp", collnet::Stamp{.epoch = 2, .from = 10, .through = 20, .plan = direct}},
          {"group_state", collnet::MemberState{.member = 2, .number = 5, .bytes_per_s = 12'500'000'000, .unreachable = {0, 3}}},
          {"group_failure", collnet::GroupFailure{"no path to member 3"}}};
}
constexpr uint32_t kGroupMembers = 4;

}  // namespace r2cc::golden

#endif  // R2CC_TESTS_UPGRADE_GOLDEN_TRANSPORT_VALUES_H_
