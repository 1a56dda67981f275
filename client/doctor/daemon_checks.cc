#include "client/doctor/daemon_checks.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/core/units.h"
#include "client/doctor/whose_fault.h"
#include "plan/page/page.h"

namespace r2cc::client {
namespace {

constexpr int64_t kNanosPerSecond = 1'000'000'000;
constexpr int64_t kSecondsPerDay = 86'400;

void CheckConnections(const DaemonFacts& daemon, Findings* found) {
  if (!daemon.connection.ok()) {
    // A fault of this user's groups: the daemon may be well.
    const bool refused = absl::IsPermissionDenied(daemon.connection);
    found->push_back(Fail("daemon", std::string(daemon.connection.message()),
                          refused ? "ask as root, or as a member of r2cc: usermod -aG r2cc USER, from the next login on"
                                  : "systemctl status r2ccd, and journalctl -u r2ccd"));
  } else {
    found->push_back(Ok("daemon", absl::StrCat("r2ccd ", daemon.status.release(), " of node ", daemon.status.node(), " answers")));
  }
  if (daemon.attach.ok())
    found->push_back(Ok("attach socket", "jobs of this user attach from here"));
  else if (absl::IsUnavailable(daemon.connection))
    found->push_back(Fail("attach socket", absl::StrCat("jobs cannot attach: ", daemon.attach.message()),
                          "start r2ccd; in a container mount its run directory (the directory, read-only will do)"));
  else
    found->push_back(Fail("attach socket", absl::StrCat("jobs of this user cannot attach: ", daemon.attach.message()),
                          "chmod o+x the run directory; in a container mount it (the directory, read-only will do)"));
}

void CheckConfiguration(const DaemonFacts& daemon, Findings* found) {
  const v1::ConfigState& config = daemon.status.config();
  for (const std::string& line : config.refused())
    found->push_back(
        Fail("configuration", absl::StrCat("refused, the one before is in force: ", line), "correct it, then r2ccctl config reload"));
  if (!config.needs_restart().empty())
    found->push_back(Warn("configuration", absl::StrCat("not in force yet: ", absl::StrJoin(config.needs_restart(), ", ")),
                          "systemctl restart r2ccd; jobs go on meanwhile"));
  if (daemon.status.insecure())
    found->push_back(Warn("configuration", "insecure: true: everybody who can reach the daemons' port may command this node",
                          "r2ccctl certs makes certificates; set tls and take insecure away"));
  for (const std::string& alarm : daemon.status.alarms())
    // Those of the configuration are reported above.
    if (!absl::StrContains(alarm, "the configuration")) found->push_back(Warn("alarm", alarm, "r2ccctl status"));
  if (config.refused().empty() && config.needs_restart().empty() && !daemon.status.insecure())
    found->push_back(
        Ok("configuration", config.file().empty() ? "there is no file; the defaults are in force" : config.file() + " is in force"));
}

void CheckReleases(const DaemonFacts& daemon, Findings* found) {
  std::vector<std::string> others;
  for (const v1::NodeView& node : daemon.status.nodes())
    if (!node.release().empty() && node.release() != daemon.status.release())
      others.push_back(absl::StrCat(node.node(), " has ", node.release()));
  for (const v1::PeerStatus& peer : daemon.status.peers())
    if (absl::StrContains(peer.error(), "speaks protocol"))
      found->push_back(Warn("releases", peer.error(), "install one release of r2ccd on all nodes"));
  std::vector<std::string> plugins;
  for (const v1::NodeView& node : daemon.status.nodes())
    if (node.jobs_of_other_releases() > 0) plugins.push_back(absl::StrCat(node.jobs_of_other_releases(), " on ", node.node()));
  if (!plugins.empty())
    found->push_back(Warn("releases",
                          absl::StrCat("processes of jobs with a plugin of another release than r2ccd: ", absl::StrJoin(plugins, ", ")),
                          "upgrade r2ccd by one release at a time, and not again before they have ended: r2ccctl jobs"));
  if (!others.empty())
    found->push_back(Warn("releases", absl::StrCat("this node has ", daemon.status.release(), ", ", absl::StrJoin(others, ", ")),
                          "install one release of r2ccd on all nodes"));
  else if (plugins.empty())
    found->push_back(Ok("releases", absl::StrCat("all known nodes have ", daemon.status.release())));
}

void CheckClocks(const DaemonFacts& daemon, Findings* found) {
  size_t compared = 0;
  Findings apart;
  for (const v1::NodeView& node : daemon.status.nodes()) {
    if (!node.has_clock_ahead_ns()) continue;
    ++compared;
    if (std::abs(node.clock_ahead_ns()) <= kClockApartMaxNs) continue;
    apart.push_back(Warn("clocks",
                         absl::StrCat("the clock of ", node.node(), " is ", FormatDuration(std::abs(node.clock_ahead_ns())),
                                      node.clock_ahead_ns() > 0 ? " ahead of" : " behind", " this node's"),
                         "run chrony or another time service on both"));
  }
  const bool own = IsOwnFault(apart.size(), compared);
  for (Finding& finding : apart) {
    if (own) finding.level = Finding::Level::kFail;
    found->push_back(std::move(finding));
  }
  if (!apart.empty()) return;
  if (compared == 0)
    found->push_back(Unchecked("clocks", "no other node's daemon is connected to this one"));
  else
    found->push_back(Ok("clocks", absl::StrCat("within 5 s of each other: this node and ", compared, " more")));
}

void CheckPeers(const DaemonFacts& daemon, Findings* found) {
  for (const v1::Event& event : daemon.duplicates) {
    found->push_back(Warn("node names", event.message(), "give one of the two another name: node in its configuration, or --node"));
    // Two daemons of another name do this node no harm.
    if (event.peer_node() == daemon.status.node()) found->back().level = Finding::Level::kFail;
  }
  if (daemon.duplicates.empty()) found->push_back(Ok("node names", "no two daemons had one name in the last hour"));
  if (daemon.status.peers().empty()) return;
  size_t connected = 0;
  for (const v1::PeerStatus& peer : daemon.status.peers()) connected += peer.connected() ? 1 : 0;
  // A node that reaches none of several is likely to be cut off itself.
  const bool own = connected == 0 && daemon.status.peers_size() > 1;
  for (const v1::PeerStatus& peer : daemon.status.peers()) {
    if (peer.connected() || absl::StrContains(peer.error(), "speaks protocol")) continue;
    found->push_back(Warn("peers", absl::StrCat(peer.node(), " (", peer.address(), ") is not connected: ", peer.error()),
                          absl::StrCat("r2ccctl health on ", peer.node(), "; is the address right, and the port open?")));
    if (own) found->back().level = Finding::Level::kFail;
  }
  if (connected == static_cast<size_t>(daemon.status.peers_size()))
    found->push_back(Ok("peers", absl::StrCat("all ", connected, " are connected")));
}

void CheckStore(const DaemonFacts& daemon, Findings* found) {
  const std::string& store = daemon.status.store();
  if (store.empty()) return;
  if (absl::StartsWith(store, "lost") || absl::StrContains(store, "does not take"))
    found->push_back(Fail("store", store,
                          absl::StrContains(store, "permission denied")
                              ? "give the role of this certificate's user readwrite on the prefix (etcdctl role grant-permission)"
                              : "is it up, and does a firewall let its port through?"));
  else if (absl::StartsWith(store, "connecting"))
    found->push_back(Warn("store", store, "ask again in a moment"));
  else
    found->push_back(Ok("store", store));
  for (const v1::Refusal& refusal : daemon.status.refusals())
    if (refusal.listener() == "store")
      found->push_back(Warn("store",
                            absl::StrCat(refusal.times(), " entries were refused (", refusal.reason(), "), the last of ", refusal.last()),
                            "two clusters on one etcd need a store.prefix each"));
}

void CheckPage(const DaemonFacts& daemon, Findings* found) {
  if (!daemon.plan_entries.ok()) return found->push_back(Unchecked("page", std::string(daemon.plan_entries.status().message())));
  const size_t percent = *daemon.plan_entries * 100 / plan::kPageEntriesMax;
  const std::string text = absl::StrCat(*daemon.plan_entries, " of ", plan::kPageEntriesMax, " entries (", percent, " %)");
  if (percent >= kPagePercentMax)
    found->push_back(Warn("page", text, "r2ccctl node forget what has left; the page leaves out what matters least when it is full"));
  else
    found->push_back(Ok("page", text));
}

void CheckCertificates(const DaemonFacts& daemon, int64_t now_ns, Findings* found) {
  if (!daemon.certificates.ok()) return found->push_back(Unchecked("certificates", std::string(daemon.certificates.status().message())));
  for (const std::string& line : daemon.certificates->wrong)
    // The line about a key has the command that ends it.
    found->push_back(
        Fail("certificates", line,
             absl::StrContains(line, "chown ") ? "r2ccctl config check" : "replace the files; they are in use within seconds"));
  if (!daemon.certificates->wrong.empty() || daemon.certificates->until_s == 0) return;
  const int64_t days = (daemon.certificates->until_s - now_ns / kNanosPerSecond) / kSecondsPerDay;
  const char* const renew = "r2ccctl certs issue; new files are in use within seconds";
  if (days < kCertificateErrorDays)
    found->push_back(Fail("certificates", absl::StrCat("valid for ", days, " more days"), renew));
  else if (days < kCertificateWarnDays)
    found->push_back(Warn("certificates", absl::StrCat("valid for ", days, " more days"), renew));
  else
    found->push_back(Ok("certificates", absl::StrCat("valid for ", days, " more days")));
}

void CheckProcess(const DaemonFacts& daemon, Findings* found) {
  if (!daemon.process.ok()) {
    found->push_back(Unchecked("limits", std::string(daemon.process.status().message())));
  } else {
    const ProcessFacts& process = *daemon.process;
    const size_t before = found->size();
    if (process.open_files_max < kOpenFilesMin)
      found->push_back(Warn("limits",
                            absl::StrCat("r2ccd may open ", process.open_files_max, " files: some ", process.open_files_max / 2, " jobs"),
                            absl::StrCat("LimitNOFILE=16384 in its unit (at least ", kOpenFilesMin, ")")));
    if (daemon.realtime_priority > 0 && !process.realtime)
      found->push_back(Warn("limits", "r2ccd has no real-time priority: its verdicts wait for the jobs' threads",
                            "LimitRTPRIO=1 in its unit, or CAP_SYS_NICE; or realtime_priority: 0 in its configuration"));
    if (!process.realtime && process.nice > daemon.nice)
      found->push_back(
          Warn("limits", absl::StrCat("r2ccd runs at nice ", process.nice, ", not ", daemon.nice), "LimitNICE=-20 in its unit"));
    if (found->size() == before) found->push_back(Ok("limits", absl::StrCat("r2ccd (pid ", process.pid, ") has what it asks for")));
  }
  if (!daemon.receive_buffer.ok())
    found->push_back(Unchecked("receive buffer", std::string(daemon.receive_buffer.status().message())));
  else if (*daemon.receive_buffer < kReceiveBufferMin)
    found->push_back(Warn("receive buffer",
                          absl::StrCat("net.core.rmem_default is ", *daemon.receive_buffer, ": probes are lost here, not on the way"),
                          absl::StrCat("sysctl -w net.core.rmem_default=", kReceiveBufferMin)));
  else
    found->push_back(
        Ok("receive buffer", absl::StrCat(FormatBytes(static_cast<uint64_t>(*daemon.receive_buffer)), " for a rail's probes")));
}

}  // namespace

Findings CheckDaemon(const DaemonFacts& daemon, int64_t now_ns) {
  Findings found;
  CheckConnections(daemon, &found);
  if (!daemon.connection.ok()) {
    for (const char* check : {"configuration", "releases", "clocks", "peers", "store", "page", "certificates", "limits", "nics", "paths"})
      found.push_back(Unchecked(check, "this needs an answer of r2ccd"));
    return found;
  }
  CheckConfiguration(daemon, &found);
  CheckReleases(daemon, &found);
  CheckClocks(daemon, &found);
  CheckPeers(daemon, &found);
  CheckStore(daemon, &found);
  CheckPage(daemon, &found);
  CheckCertificates(daemon, now_ns, &found);
  CheckProcess(daemon, &found);
  return found;
}

}  // namespace r2cc::client
