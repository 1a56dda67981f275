#include "client/core/causes.h"

namespace r2cc::client {
namespace {

constexpr Explanation kEvidence[] = {
    {"link-up", "the link is up", "FAILED or UNCABLED: PROVING, then HEALTHY", "-"},
    {"link-down", "the link is down", "FAILED; UNCABLED if the port never had a carrier", "the cable and the switch port; `ip link show`"},
    {"rate", "speed of the link", "DEGRADED below 90 % of the configured rate, or of the best rate that was seen",
     "the transceiver, the cable, what the switch port negotiated"},
    {"errors", "error counters of the port", "DEGRADED if a counter exceeds its rule, until 10 s after the last excess",
     "the cable and the transceiver; the detail names the counter"},
    {"carrier-flips", "the carrier came and went", "none: a record", "the cable, if it recurs"},
    {"link-bounces", "the link came and went", "none: a record of ups that lasted less than 20 ms", "the cable and the switch port"},
    {"drain", "drained by an operator", "DRAINED", "`r2ccctl nic undrain`"},
    {"drain-now", "drained at once by an operator", "DRAINED, and in-flight data moves", "`r2ccctl nic undrain`"},
    {"undrain", "drain taken back by an operator", "the state without the drain", "-"},
    {"drain-job", "drained for one job by an operator", "none; the job in the detail does not use the NIC", "`r2ccctl nic undrain --job`"},
    {"undrain-job", "drain for one job taken back by an operator", "none", "-"},
    {"weight", "limit set by an operator", "none; jobs keep to the limit", "`r2ccctl nic weight NODE/NIC 100%`"},
    {"drill-fail", "drill: failed by an operator", "FAILED until the drill ends", "`r2ccctl restore-nic`"},
    {"drill-restore", "drill ended", "PROVING", "-"},
    {"job-fenced", "a job gave up its link", "SUSPECT, for 5 s after the last such report", "the detail has the cause: [causes](#causes)"},
    {"job-link-up", "a job's link carries data", "ends the suspicion against this pair", "-"},
    {"job-slow", "slow for a job", "DEGRADED; the plan weight follows the value",
     "other traffic on the rail, congestion, the rate of the port at both ends"},
    {"job-steady", "no longer slow for a job", "ends the above after 2 s", "-"},
    {"peer-suspects", "a job elsewhere gave up its link to it", "SUSPECT, for 5 s after the last such report",
     "the detail has the cause: [causes](#causes)"},
    {"peer-nic-failed", "the NIC of the other end failed", "none: it explains what jobs here saw", "`r2ccctl nic why` of the other end"},
    {"peer-nic-back", "the NIC of the other end is back", "none", "-"},
    {"rail-silent", "no answer to probes", "FAILED", "the verdict names the place: [verdicts](#verdicts)"},
    {"rail-answers", "probes are answered again", "PROVING", "-"},
    {"path-broken", "no answer on this path alone", "DEGRADED, and the plan forbids the path",
     "the switches, routes and access lists between"},
    {"path-back", "the path answers again", "ends the above", "-"},
    {"rail-doubtful", "no answer, and the end at fault is unknown", "SUSPECT while it lasts", "both ends and their switch ports"},
    {"large-lost", "large packets are lost", "DEGRADED, and the plan forbids the path",
     "the MTU of every switch port, tunnel and interface on the path"},
    {"large-passes", "large packets pass again", "ends the above", "-"},
    {"fabric-gone", "the port left the InfiniBand fabric", "SUSPECT, for 5 s after the last notice",
     "the switch port; the subnet manager's log"},
    {"fabric-back", "the port is back in the InfiniBand fabric", "ends the above", "-"},
    {"rdma-down", "RDMA does not work", "DEGRADED; TCP may go on",
     "`rdma link`, `ibv_devinfo`; the class of the probes: `rdma` in the configuration"},
    {"rdma-up", "RDMA works again", "ends the above", "-"},
    {"rdma-event", "the RDMA device reports", "none: r2ccd reads the link and the rate again", "the detail has the event; `dmesg`"},
};

constexpr Explanation kVerdicts[] = {
    {"none", "nothing is wrong, or nothing that has a place", "-", "-"},
    {"port", "the NIC, its cable or its switch port", "FAILED; lost large packets: DEGRADED",
     "the end that the sentence names: `ip link show`, then the cable, then the switch port's state, VLAN and MTU"},
    {"path", "the paths between two ports that work", "DEGRADED at both ends, and the plan forbids the path",
     "the switches, routes and access lists between the two"},
    {"peers", "the port of the other end", "none here; FAILED if no other peer answers either", "`r2ccctl nic why` of the other end"},
    {"cable", "a direct cable (`cable_to`), or the port at one of its ends", "FAILED, or DEGRADED as a path",
     "the cable, and the link at both ends"},
    {"rail", "the whole rail network: its switch, or several ports", "FAILED", "the switch of this rail network"},
    {"cannot-tell", "inconclusive; the sentence names what is missing", "SUSPECT, or the state that the NIC has",
     "both ends; start r2ccd on the node that the sentence names; `nic drain` keeps traffic off"},
    {"operator", "a drill or a drain", "FAILED or DRAINED", "`r2ccctl restore-nic`, `r2ccctl nic undrain`"},
    {"measured", "the NIC carries less than it should", "DEGRADED", "the cable and the transceiver, and what the switch port negotiated"},
};

}  // namespace

std::span<const Explanation> Evidences() { return kEvidence; }

std::span<const Explanation> Verdicts() { return kVerdicts; }

}  // namespace r2cc::client
