"""The simulation's libraries, once over the sessions as they are shipped and once over those in which bugs can be planted."""

def sim_libraries(suffix, sessions):
    """The simulated processes and the world.

    Args:
      suffix: of the targets' names.
      sessions: labels of the libraries that hold the production sessions.
    """
    native.cc_library(
        name = "process" + suffix,
        testonly = True,
        srcs = [
            "process.cc",
            "recv_end.cc",
            "send_bulk.cc",
            "send_end.cc",
            "stream.cc",
        ],
        hdrs = [
            "io.h",
            "peer_probe.h",
            "process.h",
            "recv_end.h",
            "send_end.h",
            "stream.h",
            "tap.h",
        ],
        deps = [
            ":network",
            "//base/core:hash",
        ] + sessions,
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
        ] + sessions,
    )
