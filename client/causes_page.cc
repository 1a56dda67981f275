// The text of docs/reference/causes.md.
#include "absl/strings/str_cat.h"
#include "client/core/causes.h"
#include "plan/page/ring.h"

namespace r2cc::client {
namespace {

constexpr absl::string_view kHead = R"(# Causes, evidence and log messages

This page lists the names that `r2ccctl nic why`, `jobs`, `job report`, events and JSON use, and the lines that the
plugin logs. [Diagnosing](../operate/diagnose.md) starts from a symptom. [The states of a
NIC](../internals/failure-detection.md#the-states-of-a-nic) has what jobs do in each state.

This page is generated from the tables that r2ccctl uses (`client/core/causes.cc`, `plan/page/ring.cc`): `./bazelw run
//client:causes_reference > docs/reference/causes.md`. `//tests/docs:causes_test` compares the names and the log lines
with the daemon and the plugin.

)";

constexpr absl::string_view kVerdictHead = R"(## Verdicts

A plugin that gives up a link names a *cause*. r2ccd keeps it as one piece of *evidence*, next to its own observations.
From all evidence it makes one *verdict* for each NIC, and the *state* of the NIC follows:

```mermaid
flowchart LR
  cause["cause (plugin), e.g. silence"] --> evidence["evidence (r2ccd), e.g. job-fenced"]
  probes["probes, kernel, operator"] --> evidence
  evidence --> verdict["verdict, e.g. cannot-tell"]
  verdict --> nic["state of the NIC, e.g. SUSPECT"]
```

A verdict names the place of a fault. `nic why` prints it as a sentence, and JSON has its name in `verdict`.

| verdict | meaning | effect | what to check |
|---|---|---|---|
)";

constexpr absl::string_view kEvidenceHead = R"(
## Evidence

`nic why` lists the evidence about a NIC, newest first, with its observer. Tables of r2ccctl contain the phrase. JSON and
the web page have the name.

| name | phrase | effect on the NIC | what to do |
|---|---|---|---|
)";

constexpr absl::string_view kCauseHead = R"(
## Causes

A cause is the reason for which a plugin gave up a link, or does not use it. Events, `jobs`, `job report` and the
evidence of jobs contain it.

| name | phrase | what to check |
|---|---|---|
)";

constexpr absl::string_view kFailureHead = R"(
## Failures of a job

A job whose operation failed reports one of these. `r2ccctl jobs --ended` and `job report` show them.

| phrase | what to check |
|---|---|
)";

constexpr absl::string_view kWaitHead = R"(
## What a job waits for

`r2ccctl jobs --bad`, the event `job-hang` and its alarm contain one of these. [A job makes no
progress](../operate/diagnose.md#a-job-makes-no-progress) has the next steps.

| phrase |
|---|
)";

constexpr absl::string_view kLogHead = R"(
## Log lines of the plugin

Lines begin with `R2CC:`. A warning appears by default, and with `NCCL_DEBUG=WARN` or higher in NCCL's log. `R2CC_LOG=info`
adds the info lines, and `R2CC_LOG=debug` all others. A warning that recurs within a short time is logged once.
`libr2cc-nccl.so` writes its lines to standard error with every `R2CC_LOG`: their level is "always".

| level | line contains | meaning for the job | what to do | variable |
|---|---|---|---|---|
)";

struct LogLine {
  absl::string_view level;
  absl::string_view text;  // a part of one string in the source
  absl::string_view meaning;
  absl::string_view advice;
  absl::string_view variable;
};

constexpr LogLine kLines[] = {
    {"info, or warn", " given up (",
     "a link was lost, and its data was replayed over other links. A warning if only the plugin can see the fault",
     "the cause in brackets: [causes](#causes)", "`R2CC_SILENCE_MS`"},
    {"info", " carries data again", "the link is back", "-", "-"},
    {"info, or warn", " is not used (", "the link failed its data check, and is tried again", "the cause in brackets", "-"},
    {"info", " % of what the others do: its share follows", "the rail is slow; it gets less data", "`r2ccctl nic why`", "-"},
    {"info", " is as good as the others again", "the end of the line above", "-", "-"},
    {"info, or warn", " is down: ", "the rail's interface or device is down. A warning if an RDMA port is inactive when the job starts",
     "the cable", "`R2CC_LINK_MONITOR`"},
    {"warn", " s, trying on until R2CC_DEADLINE_MS: tried ", "no rail, or no out-of-band address, reaches the peer",
     "the ports that the line names: [install](../start/install.md#ports)", "`R2CC_DEADLINE_MS`, `R2CC_OOB_IFNAME`"},
    {"warn", " answers on no channel: its process may be stopped or very busy; waiting", "the job waits without limit",
     "the process on that node", "-"},
    {"warn", "R2CC: no rail has reached peer ", "the job gets an error", "`r2ccctl path probe`", "`R2CC_DEADLINE_MS`"},
    {"warn", " is gone: its address refuses connections and no rail reaches it", "the job gets an error: the peer's process ended",
     "the log of that process", "-"},
    {"warn", " cannot be closed: its unacknowledged data is not replayed", "the affected flows fail at the deadline",
     "the RDMA device, `dmesg`", "`R2CC_DEADLINE_MS`"},
    {"warn", " closed the flow with ", "the job gets an error: the other end ended or aborted", "the log of the other end", "-"},
    {"warn", "R2CC: no rail can reach peer ", "rails of the two ends use different transports", "the same setting on all nodes",
     "`R2CC_TRANSPORT`"},
    {"warn", "R2CC: not used: ", "rails share a network, and their packets leave by one of them", "the sysctls that the line names",
     "`R2CC_RAILS`"},
    {"warn", " come in by ", "interfaces answer ARP for each other; a lost NIC may take others with it", "the sysctls that the line names",
     "`R2CC_RAILS`"},
    {"warn", " is not used: another node of its network has it, too (dadfailed)", "a duplicate IPv6 address",
     "take it from one of the nodes", "-"},
    {"warn", "; the job starts without this rail", "a rail of the list is missing", "the NIC, or the list", "`R2CC_RAILS` with `~`"},
    {"warn", "R2CC: no connection can be made or taken: ", "the process has no free descriptor", "the hard limit on open files", "-"},
    {"warn", " use RDMA: messages to and from it in the memory of a GPU are", "GPU memory is copied through the host",
     "RDMA on all rails of both ends", "`R2CC_TRANSPORT`, `NCCL_NET_GDR_LEVEL`"},
    {"warn", " is not a variable of R2CC: ignored", "a misspelt name", "the name that the line suggests", "-"},
    {"warn", "no r2ccd at ", "the job runs without the daemon", "`systemctl status r2ccd`, the mount of `/run/r2cc`", "`R2CC_ATTACH`"},
    {"info", "attached to r2ccd at ", "the daemon's verdicts are used", "-", "`R2CC_ATTACH`"},
    {"warn", " survived", "the last line of rank 0: faults, longest stall, time with fewer rails", "`r2ccctl job report`", "-"},
    {"info", "R2CC: CollNet: from operation ", "the schedule and the parts of a CollNet group changed", "-",
     "`NCCL_COLLNET_ENABLE`, `R2CC_MODE`"},
    {"warn", "; only members that reach all others own parts of the sum", "two members have no path to each other", "`r2ccctl path probe`",
     "-"},
    {"always", "uses NCCL's tree in another order of nodes", "the seat is in use", "-", "`R2CC_SEAT`"},
    {"always", "uses CollNet", "CollNet is in use by agreement", "-", "`R2CC_SEAT`, `NCCL_COLLNET_ENABLE`"},
    {"always", "is NCCL's own again since call ", "neither the seat nor CollNet by agreement is in use", "-", "`R2CC_SEAT`"},
    {"always", " has no libr2cc-nccl.so with R2CC_SEAT=1", "a rank lacks the seat's library or variables: the job runs as NCCL alone",
     "`r2ccctl job env --seat` on all ranks", "`R2CC_SEAT`"},
    {"always", "it was begun neither by ncclCommInitRank nor by a blocking ncclCommSplit outside of a group",
     "that communicator has no seat", "-", "`R2CC_SEAT`"},
    {"always", " has not ended. The job hangs until all ranks take part", "a rank has stopped, or has made fewer AllReduces",
     "`r2ccctl doctor --job`", "`R2CC_SEAT`, `R2CC_SEAT_EVERY`"},
    {"info", " held up ", "the collectives that waited for a lost rail", "`r2ccctl job report`", "`NCCL_PROFILER_PLUGIN`"},
    {"warn", "the profiler records nothing: libnccl-net-r2cc.so of this release is not in this process",
     "the profiler was loaded without the plugin", "`NCCL_NET_PLUGIN=r2cc`", "`NCCL_PROFILER_PLUGIN`"},
};

// The place where an operator looks for a cause.
absl::string_view CauseAdvice(plan::EvidenceCause cause) {
  switch (cause) {
    case plan::EvidenceCause::kNone: return "-";
    case plan::EvidenceCause::kLinkDown: return "the cable and the switch port";
    case plan::EvidenceCause::kSocketError: return "the peer's process; a firewall that resets connections; an RDMA device in error";
    case plan::EvidenceCause::kPageNotice: return "`r2ccctl nic why`";
    case plan::EvidenceCause::kPeerFenced: return "`r2ccctl nic why` of the other end";
    case plan::EvidenceCause::kSilence: return "`r2ccctl nic why` of both ends: the switch between them";
    case plan::EvidenceCause::kFlowClosed: return "nothing: the job aborted";
    case plan::EvidenceCause::kGarbled: return "the releases of both plugins; a NIC that damages data (`R2CC_CHECKSUM=1`)";
    case plan::EvidenceCause::kSimulated: return "nothing: `R2CC_FAIL_RAILS` asked for it";
    case plan::EvidenceCause::kRetired: return "nothing: the rails have their own links again";
    case plan::EvidenceCause::kStalled: return "one member of a LAG or ECMP group; an RDMA device's firmware";
    case plan::EvidenceCause::kLargeLost: return "the MTU of every switch port on the path";
  }
  return "-";
}

absl::string_view FailureAdvice(plan::Failure failure) {
  switch (failure) {
    case plan::Failure::kUnknown: return "-";
    case plan::Failure::kPeerGone: return "the log of that process: it ended or was killed";
    case plan::Failure::kPeerClosed: return "the log of that process: it aborted";
    case plan::Failure::kDeadline: return "`r2ccctl jobs --ended`: which rails, and why";
    case plan::Failure::kBuffer: return "the program: a receive is smaller than its send";
  }
  return "-";
}

}  // namespace

std::string CausesReference() {
  std::string text(kHead);
  absl::StrAppend(&text, kVerdictHead);
  for (const Explanation& one : Verdicts())
    absl::StrAppend(&text, "| `", one.name, "` | ", one.text, " | ", one.effect, " | ", one.advice, " |\n");
  absl::StrAppend(&text, kEvidenceHead);
  for (const Explanation& one : Evidences())
    absl::StrAppend(&text, "| `", one.name, "` | ", one.text, " | ", one.effect, " | ", one.advice, " |\n");
  absl::StrAppend(&text, kCauseHead);
  for (uint32_t i = 0; i <= static_cast<uint32_t>(plan::kEvidenceCauseNewest); ++i) {
    const auto cause = static_cast<plan::EvidenceCause>(i);
    absl::StrAppend(&text, "| `", plan::CauseName(cause), "` | ", plan::CauseText(cause, 0), " | ", CauseAdvice(cause), " |\n");
  }
  absl::StrAppend(&text, kFailureHead);
  for (uint64_t i = 0; i <= static_cast<uint64_t>(plan::Failure::kBuffer); ++i)
    absl::StrAppend(&text, "| ", plan::FailureText(i), " | ", FailureAdvice(static_cast<plan::Failure>(i)), " |\n");
  absl::StrAppend(&text, kWaitHead);
  for (uint64_t i = 0; i <= static_cast<uint64_t>(plan::kWaitForNewest); ++i)
    if (static_cast<plan::WaitFor>(i) != plan::WaitFor::kRails) absl::StrAppend(&text, "| ", plan::WaitText(i), " |\n");
  absl::StrAppend(&text, kLogHead);
  for (const LogLine& line : kLines)
    absl::StrAppend(&text, "| ", line.level, " | `", line.text, "` | ", line.meaning, " | ", line.advice, " | ", line.variable, " |\n");
  return text;
}

}  // namespace r2cc::client
