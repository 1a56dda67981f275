// What became of links, for the daemon and the log.
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
void RecordUp(Host* host, const Action& action, const LinkEnds& ends);
void RecordLost(Host* host, const Action& action, const LinkEnds& ends);
void RecordFenced(Host* host, const Action& action, const LinkEnds& ends);
// `communicator`: NCCL's commId of the flow that waited longest; 0: not known.
void RecordPassed(Host* host, const Action& action, const LinkEnds& ends, uint64_t communicator);
void RecordRefused(Host* host, const Action& action, const LinkEnds& ends);
void RecordSlow(Host* host, const Action& action, const LinkEnds& ends);

// An operation of the job with the process of `peer` failed; each plan::Failure is reported once.
void RecordFailed(Host* host, const std::string& peer, uint64_t failure);

// From `when` on this process sends over so many of its rails.
void RecordUse(Host* host, uint32_t usable, Nanos when);

// Which run this process belongs to, and when the plugin started.
plan::EvidenceRecord RunRecord(const Host& host, Nanos started);

// From `call` on the AllReduces of a communicator go by `way`, a plan::Way; see plan::EvidenceKind::kWay.
plan::EvidenceRecord WayRecord(Nanos now, uint32_t communicator, uint64_t call, uint64_t bytes_min, uint32_t way,
                               uint32_t expected_permille);

// That so many requests have made no progress for `waited`, and what they wait for; 0 requests: that is over.
plan::EvidenceRecord WaitRecord(Nanos now, uint64_t requests, Nanos waited, const JobWait& wait, const LinkEnds& ends);

// That the process of `peer` is of another release, by its greeting: once, and again when it says another. Empty: older than such words.
// `told`: the caller's memory of that.
void RecordRelease(Host* host, const std::string& peer, const std::string& release, uint32_t wire_version, std::string* told);

// The job gives up on the process of `peer`, whose rails and names on the page these are. Tells the daemon why, rail by rail, and returns
// the line for the job. `fates`: none where nothing is known of rails.
std::string RecordGaveUp(Host* host, const std::string& peer, std::span<const RailInfo> peer_rails, const NamesOnPage& peer_names,
                         std::span<const LinkFate> fates, Nanos lasted);

// Where rails are of which this process or a peer has told.
std::vector<RailEnd> EndsOf(const Host& host, std::span<const RailInfo> rails);

// For a line about a peer that was never reached: the ways `from` rails `to` others, what they need, and what this process lacks for them.
// `oob`: where the peer takes out-of-band connections; null: these came from it.
std::string TriedWays(const Host& host, const OobAddress* oob, std::span<const RailInfo> from, std::span<const RailInfo> to);

// That `peer`, whose node or address this is, is not reached yet by `ways`.
void WarnNotReached(Host* host, ReachWatch::Missing missing, const std::string& peer, const std::string& ways);

// One line per rail: what it carried and what it went through.
std::vector<std::string> RailTotals(const Host& host);

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_RECORD_H_
