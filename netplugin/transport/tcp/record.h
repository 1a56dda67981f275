// From a session's words to evidence records and summary lines. Pure.
#ifndef R2CC_NETPLUGIN_TRANSPORT_TCP_RECORD_H_
#define R2CC_NETPLUGIN_TRANSPORT_TCP_RECORD_H_

#include <algorithm>
#include <cstring>
#include <string>

#include "netplugin/link/action.h"

namespace r2cc::net {

inline void CopyText(const std::string& text, char* out, size_t size) {
  const size_t length = std::min(text.size(), size - 1);
  std::memcpy(out, text.data(), length);
  out[length] = '\0';
}

inline plan::EvidenceRecord MakeRecord(plan::EvidenceKind kind, const Action& action, uint16_t local_rail, Nanos now,
                                       const std::string& peer_node, const std::string& peer_nic) {
  plan::EvidenceRecord record{};
  record.kind = static_cast<uint32_t>(kind);
  record.cause = static_cast<uint32_t>(action.report.cause);
  record.time_ns = now;
  record.local_rail = local_rail;
  record.incarnation = action.incarnation;
  record.replayed_bytes = action.report.replayed_bytes;
  record.duration_ns = static_cast<uint64_t>(std::max<Nanos>(action.report.duration, 0));
  CopyText(peer_node, record.peer_node, sizeof(record.peer_node));
  CopyText(peer_nic, record.peer_nic, sizeof(record.peer_nic));
  return record;
}

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_TCP_RECORD_H_
