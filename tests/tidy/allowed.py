"""Exceptions to the rules: (rule, path) -> why. An entry that no file needs any more fails the test."""

GRPC_DEADLINE = "gRPC takes a deadline as a point of the system clock"
POLLED = "NCCL's interface has no event to wait for: its caller polls, and r2cc-perf does what NCCL does"

ALLOWED = {
    ("clocks", "base/abseil_waits.cc"): "abseil says by the time of day when a wait ends",
    ("clocks", "base/log.cc"): "a JSON record has the wall clock's time, as a line of text has it from spdlog",
    ("clocks", "client/core/client.cc"): GRPC_DEADLINE,
    ("clocks", "client/health/health_events.cc"): GRPC_DEADLINE,
    ("clocks", "client/core/remote.cc"): "a certificate is valid until a date",
    ("clocks", "daemon/rpc/channel.cc"): "a certificate is valid until a date",
    ("clocks", "daemon/program/r2ccd_trust_rig.h"): GRPC_DEADLINE + ", and a certificate is valid until a date",
    ("clocks", "daemon/rpc/etcd_store.cc"): GRPC_DEADLINE,
    ("clocks", "daemon/rpc/grpc_peer_transport.cc"): GRPC_DEADLINE,
    ("clocks", "daemon/rpc/grpc_store.cc"): GRPC_DEADLINE,
    ("clocks", "daemon/rpc/servers.cc"): GRPC_DEADLINE,
    ("clocks", "daemon/real_world.cc"): "the daemon's seam to the machine: the wall clock of events, and when the machine booted",
    ("clocks", "health/io/udp_datagram.cc"): "the kernel stamps datagrams with the wall clock, and says in no other way when they came",
    ("clocks", "netplugin/transport/record.cc"): "the line with which a job ends tells a person the time of day",
    ("clocks", "tools/perf/clock.h"): "r2cc-perf measures a plugin from outside, with a clock of its own",
    ("environment", "netplugin/flow/mutant.h"): "for tests alone: nothing of it is in what is shipped",
    ("environment", "netplugin/plugin/process.cc"): "a plugin has no main(): here its environment is read and handed to netplugin/config",
    ("folders", "netplugin/transport/tcp/recv_link_test.cc"): "who looks at a link's sockets is decided by the link and its peer together",
    ("mutexes", "base/log.cc"): "spdlog's sink is a template over std::mutex",
    ("pure_rooms", "netplugin/collnet/mutant.h"): "for tests alone, whose seeds run beside each other",
    ("pure_rooms", "netplugin/flow/mutant.h"): "for tests alone, whose seeds run beside each other",
    ("pure_rooms", "plan/collective/choose_test.cc"): "how long the choice takes is what it measures",
    ("sleeps", "base/abseil_waits_test.cc"): "what a thread waits for in the kernel gives no event: it is asked again",
    ("sleeps", "tests/etcd/attached.cc"): "memory that processes share gives no event: it is asked again",
    ("sleeps", "daemon/program/r2ccd_rig.h"): "another process's state gives no event: it is asked again",
    ("sleeps", "tools/perf/bootstrap.cc"): "a rank that is not started yet gives no event: connecting to it is tried again",
    ("sleeps", "tools/perf/idle.cc"): POLLED,
    ("sleeps", "tools/perf/setup.cc"): POLLED,
    ("sleeps", "tests/bench/pause_witness.cc"): "how late it wakes up is what it measures",
    ("too_new_for_old_glibc", "base/core/old_glibc.cc"): "defines arc4random, so that nothing asks glibc for it",
}
