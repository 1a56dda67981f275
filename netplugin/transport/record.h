// Records the results of links for the daemon and the log.
#ifndef R2CC_NETPLUGIN_TRANSPORT_RECORD_H_
#define R2CC_NETPLUGIN_TRANSPORT_RECORD_H_

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "netplugin/link/action.h"
#include "netplugin/link/job_wait.h"
#include "netplugin/rails/reach.h"
#include "netplugin/transport/host.h"

namespace r2cc::net {

inline void CopyText(const std::string& text, char* out, size_t size) {
  const size_t length = std::min(text.size(), size - 1);
  std::memcpy(out, text.data(), length);
  out[length] = '\0';
}

// kLinkUp, kLinkLost, kLinkFenced, kLinkPassed, kLinkRefused, kLinkSlow.
void RecordUp(Host* host, const SessionAction& action, const LinkEnds& ends);
void RecordLost(Host* host, const SessionAction& action, const LinkEnds& ends);
void RecordFenced(Host* host, const SessionAction& action, const LinkEnds& ends);
// `communicator`: NCCL's commId of the flow that waited longest; 0: not known.
void RecordPassed(Host* host, const SessionAction& action, const LinkEnds& ends, uint64_t communicator);
void RecordRefused(Host* host, const SessionAction& action, const LinkEnds& ends);
void RecordSlow(Host* host, const SessionAction& action, const LinkEnds& ends);

// An operation of the job with the process of `peer` failed; each plan::Failure is reported once.
void RecordFailed(Host* host, const std::string& peer, uint64_t failure);

// From `when` on this process sends over `usable` of its rails.
void RecordUse(Host* host, uint32_t usable, Nanos when);

// Which run this process belongs to, and when the plugin started.
plan::EvidenceRecord RunRecord(const Host& host, Nanos started);

// From `call` on the AllReduces of a communicator use `way`, a plan::Way; see plan::EvidenceRecordKind::kWay.
plan::EvidenceRecord WayRecord(Nanos now, uint32_t communicator, uint64_t call, uint64_t bytes_min, uint32_t way,
                               uint32_t expected_permille);

// `requests` requests have made no progress for `waited`; `wait`: what they wait for. 0 requests: the wait is over.
plan::EvidenceRecord WaitRecord(Nanos now, uint64_t requests, Nanos waited, const JobWait& wait, const LinkEnds& ends);

// Records that the process of `peer` has another release, from its greeting: once, and again when the release changes. Empty: it is older
// than releases in greetings. `logged`: the caller's memory of the last record.
void RecordRelease(Host* host, const std::string& peer, const std::string& release, uint32_t wire_version, std::string* logged);

// The job gives up on the process of `peer`; its rails and its names on the page are given. Reports the reason to the daemon, rail by rail,
// and returns the line for the job. `fates`: empty if nothing is known of rails.
std::string RecordGaveUp(Host* host, const std::string& peer, std::span<const RailInfo> peer_rails, const NamesOnPage& peer_names,
                         std::span<const LinkFate> fates, Nanos lasted);

// The addresses of rails, as this process or a peer has announced them.
std::vector<RailEnd> EndsOf(const Host& host, std::span<const RailInfo> rails);

// For a line about a peer that was never reached: the ways from the rails `from` to the rails `to`, what they need, and what this process
// lacks for them. `oob`: where the peer accepts out-of-band connections; null: these came from the peer.
std::string TriedWays(const Host& host, const OobAddress* oob, std::span<const RailInfo> from, std::span<const RailInfo> to);

// Warns that `peer`, a node or an address, is not reached yet by `ways`.
void WarnNotReached(Host* host, ReachWatch::Missing missing, const std::string& peer, const std::string& ways);

// One line per rail: what it carried and its faults.
std::vector<std::string> RailTotals(const Host& host);

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_RECORD_H_
