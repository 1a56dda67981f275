#include "base/core/verbs/libibverbs_values.h"

#include <arpa/inet.h>

#include <array>
#include <cstring>

namespace r2cc::verbs {
namespace {

Status StatusOf(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_SUCCESS:
    case IBV_WC_LOC_LEN_ERR:
    case IBV_WC_LOC_QP_OP_ERR:
    case IBV_WC_LOC_PROT_ERR:
    case IBV_WC_WR_FLUSH_ERR:
    case IBV_WC_MW_BIND_ERR:
    case IBV_WC_BAD_RESP_ERR:
    case IBV_WC_LOC_ACCESS_ERR:
    case IBV_WC_REM_INV_REQ_ERR:
    case IBV_WC_REM_ACCESS_ERR:
    case IBV_WC_REM_OP_ERR:
    case IBV_WC_RETRY_EXC_ERR:
    case IBV_WC_RNR_RETRY_EXC_ERR:
    case IBV_WC_REM_ABORT_ERR:
    case IBV_WC_FATAL_ERR:
    case IBV_WC_RESP_TIMEOUT_ERR: return static_cast<Status>(status);
    default: return Status::kGeneral;  // of services that the transport does not use
  }
}

CompletionKind KindOf(ibv_wc_opcode opcode) {
  switch (opcode) {
    case IBV_WC_RDMA_WRITE: return CompletionKind::kWrite;
    case IBV_WC_RDMA_READ: return CompletionKind::kRead;
    case IBV_WC_RECV: return CompletionKind::kReceive;
    case IBV_WC_RECV_RDMA_WITH_IMM: return CompletionKind::kReceiveWriteWithImmediate;
    default: return CompletionKind::kSend;
  }
}

ibv_wr_opcode OpcodeOf(SendKind kind) {
  switch (kind) {
    case SendKind::kSend: return IBV_WR_SEND;
    case SendKind::kWrite: return IBV_WR_RDMA_WRITE;
    case SendKind::kWriteWithImmediate: return IBV_WR_RDMA_WRITE_WITH_IMM;
    case SendKind::kRead: break;
  }
  return IBV_WR_RDMA_READ;
}

}  // namespace

int AccessFlags(uint32_t access) {
  int flags = 0;
  if ((access & (kLocalWrite | kRemoteWrite)) != 0) flags |= IBV_ACCESS_LOCAL_WRITE;
  if ((access & kRemoteWrite) != 0) flags |= IBV_ACCESS_REMOTE_WRITE;
  if ((access & kRemoteRead) != 0) flags |= IBV_ACCESS_REMOTE_READ;
  return flags;
}

PortState StateOf(ibv_port_state state) {
  switch (state) {
    case IBV_PORT_INIT: return PortState::kInitializing;
    case IBV_PORT_ARMED: return PortState::kArmed;
    case IBV_PORT_ACTIVE: return PortState::kActive;
    default: return PortState::kDown;
  }
}

LinkLayer LinkLayerOf(uint8_t layer) {
  if (layer == IBV_LINK_LAYER_INFINIBAND) return LinkLayer::kInfiniBand;
  return layer == IBV_LINK_LAYER_ETHERNET ? LinkLayer::kEthernet : LinkLayer::kUnknown;
}

uint32_t MtuBytes(ibv_mtu mtu) { return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? 128u << mtu : 0; }

ibv_mtu MtuOf(uint32_t bytes) {
  for (const ibv_mtu mtu : {IBV_MTU_256, IBV_MTU_512, IBV_MTU_1024, IBV_MTU_2048, IBV_MTU_4096})
    if (MtuBytes(mtu) == bytes) return mtu;
  return static_cast<ibv_mtu>(0);
}

double BitsPerSecond(uint8_t speed, uint8_t width) {
  constexpr std::array kLaneGbps = {2.5, 5.0, 10.0, 10.0, 14.0, 25.0, 50.0, 100.0};  // by the bit: SDR, DDR, QDR, FDR10, FDR, EDR, HDR, NDR
  constexpr std::array kLanes = {1, 4, 8, 12, 2};                                    // by the bit
  double lane_gbps = 0;
  int lanes = 0;
  for (size_t bit = 0; bit < kLaneGbps.size(); ++bit)
    if (speed == 1u << bit) lane_gbps = kLaneGbps[bit];
  for (size_t bit = 0; bit < kLanes.size(); ++bit)
    if (width == 1u << bit) lanes = kLanes[bit];
  return lane_gbps * lanes * 1e9;
}

Completion CompletionOf(const ibv_wc& wc) {
  Completion completion{.wr_id = wc.wr_id, .status = StatusOf(wc.status), .vendor_error = wc.vendor_err, .queue_pair_number = wc.qp_num};
  // The other members of a failed one were not written.
  if (completion.status != Status::kSuccess) return completion;
  completion.kind = KindOf(wc.opcode);
  completion.bytes = wc.byte_len;
  completion.has_immediate = (wc.wc_flags & IBV_WC_WITH_IMM) != 0;
  if (completion.has_immediate) completion.immediate = ntohl(wc.imm_data);
  return completion;
}

ibv_send_wr WorkRequestOf(const SendRequest& request) {
  ibv_send_wr work{};
  work.wr_id = request.wr_id;
  work.opcode = OpcodeOf(request.kind);
  if (request.signaled) work.send_flags |= IBV_SEND_SIGNALED;
  if (request.solicited) work.send_flags |= IBV_SEND_SOLICITED;
  if (request.fence) work.send_flags |= IBV_SEND_FENCE;
  if (request.inlined) work.send_flags |= IBV_SEND_INLINE;
  work.imm_data = htonl(request.immediate);
  work.wr.rdma.remote_addr = request.remote_address;
  work.wr.rdma.rkey = request.remote_key;
  return work;
}

ibv_recv_wr WorkRequestOf(const ReceiveRequest& request) {
  ibv_recv_wr work{};
  work.wr_id = request.wr_id;
  return work;
}

QueuePairState StateOf(ibv_qp_state state) {
  switch (state) {
    case IBV_QPS_RESET: return QueuePairState::kReset;
    case IBV_QPS_INIT: return QueuePairState::kInit;
    case IBV_QPS_RTR: return QueuePairState::kReadyToReceive;
    case IBV_QPS_RTS: return QueuePairState::kReadyToSend;
    case IBV_QPS_SQD: return QueuePairState::kSendQueueDrained;
    case IBV_QPS_SQE: return QueuePairState::kSendQueueError;
    default: return QueuePairState::kError;
  }
}

bool AttributesOf(const ReadyToReceive& ready, ibv_qp_attr* attributes) {
  const ibv_mtu mtu = MtuOf(ready.mtu_bytes);
  if (mtu == 0 || ready.path.gid_index > kGidIndexMax) return false;
  *attributes = {};
  attributes->qp_state = IBV_QPS_RTR;
  attributes->path_mtu = mtu;
  attributes->dest_qp_num = ready.remote_number;
  attributes->rq_psn = ready.receive_psn;
  attributes->max_dest_rd_atomic = ready.reads;
  attributes->min_rnr_timer = ready.min_rnr_timer;
  ibv_ah_attr& route = attributes->ah_attr;
  route.port_num = ready.path.port;
  route.dlid = ready.path.remote_lid;
  route.sl = ready.path.service_level;
  if (ready.path.global) {
    route.is_global = 1;
    std::memcpy(route.grh.dgid.raw, ready.path.remote_gid.data(), ready.path.remote_gid.size());
    route.grh.sgid_index = static_cast<uint8_t>(ready.path.gid_index);
    route.grh.hop_limit = ready.path.hop_limit;
    route.grh.traffic_class = ready.path.traffic_class;
  }
  return true;
}

ibv_qp_attr AttributesOf(const ReadyToSend& ready) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.sq_psn = ready.send_psn;
  attributes.timeout = ready.timeout;
  attributes.retry_cnt = ready.retry_cnt;
  attributes.rnr_retry = ready.rnr_retry;
  attributes.max_rd_atomic = ready.reads;
  return attributes;
}

AsyncKind AsyncKindOf(ibv_event_type type) {
  switch (type) {
    case IBV_EVENT_PORT_ACTIVE: return AsyncKind::kPortActive;
    case IBV_EVENT_PORT_ERR: return AsyncKind::kPortError;
    case IBV_EVENT_GID_CHANGE: return AsyncKind::kGidChange;
    case IBV_EVENT_LID_CHANGE: return AsyncKind::kLidChange;
    case IBV_EVENT_PKEY_CHANGE: return AsyncKind::kPkeyChange;
    case IBV_EVENT_QP_FATAL: return AsyncKind::kQueuePairFatal;
    case IBV_EVENT_QP_REQ_ERR: return AsyncKind::kQueuePairRequestError;
    case IBV_EVENT_QP_ACCESS_ERR: return AsyncKind::kQueuePairAccessError;
    case IBV_EVENT_PATH_MIG: return AsyncKind::kPathMigrated;
    case IBV_EVENT_COMM_EST: return AsyncKind::kCommunicationEstablished;
    case IBV_EVENT_SQ_DRAINED: return AsyncKind::kSendQueueDrained;
    case IBV_EVENT_QP_LAST_WQE_REACHED: return AsyncKind::kLastRequestReached;
    case IBV_EVENT_CQ_ERR: return AsyncKind::kCompletionQueueError;
    case IBV_EVENT_DEVICE_FATAL: return AsyncKind::kDeviceFatal;
    default: return AsyncKind::kOther;
  }
}

Subject SubjectOf(ibv_event_type type) {
  switch (type) {
    case IBV_EVENT_CQ_ERR: return Subject::kCompletionQueue;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED: return Subject::kQueuePair;
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_PKEY_CHANGE:
    case IBV_EVENT_SM_CHANGE:
    case IBV_EVENT_CLIENT_REREGISTER:
    case IBV_EVENT_GID_CHANGE: return Subject::kPort;
    default: return Subject::kNone;
  }
}

}  // namespace r2cc::verbs
