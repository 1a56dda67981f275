"""The simulation's libraries, once over the peers as they are shipped and once over those in which mutants can be switched on."""

def sim_libraries(suffix, peers, verbs):
    """The simulated processes and the world.

    Args:
      suffix: of the targets' names.
      peers: labels of the libraries that hold the production peers.
      verbs: labels of those that hold the production verbs transport.
    """
    native.cc_library(
        name = "process" + suffix,
        testonly = True,
        srcs = [
            "ending.cc",
            "process.cc",
            "sim_oob.cc",
            "sim_probes.cc",
            "sim_recv_link.cc",
            "sim_send_link.cc",
            "sim_transport.cc",
            "stream.cc",
        ],
        hdrs = [
            "ending.h",
            "io.h",
            "process.h",
            "rail_faults.h",
            "ready_set.h",
            "sim_oob.h",
            "sim_probes.h",
            "sim_recv_link.h",
            "sim_send_link.h",
            "sim_transport.h",
            "stream.h",
            "tap.h",
        ],
        deps = [
            ":network",
            "//base/core",
        ] + peers,
    )
    native.cc_library(
        name = "verbs_rails" + suffix,
        testonly = True,
        srcs = [
            "tapped_transport.cc",
            "tapped_transport.h",
            "verbs_rails.cc",
        ],
        hdrs = ["verbs_rails.h"],
        deps = [
            ":network",
            ":process" + suffix,
            "//netplugin/gpu:fake_gpu",
            "//netplugin/transport/verbs:fake_control_thread",
        ] + peers + verbs,
    )
    native.cc_library(
        name = "world" + suffix,
        testonly = True,
        srcs = [
            "checkers.cc",
            "coverage.cc",
            "faults.cc",
            "job.cc",
            "scenario.cc",
            "world.cc",
        ],
        hdrs = [
            "checkers.h",
            "coverage.h",
            "faults.h",
            "job.h",
            "scenario.h",
            "world.h",
        ],
        deps = [
            ":network",
            ":process" + suffix,
            ":verbs_rails" + suffix,
        ] + peers,
    )
