"""Tests whose program runs in one emulated guest with soft-RoCE rails (rails.sh has what stands there)."""

load("//bazel:python.bzl", "r2cc_py_test")

def one_guest_test(
        name,
        program,
        args = [],
        data = [],
        environment = {},
        rails = 2,
        wiring = "pair",
        limit_s = 120,
        size = "medium",
        tags = [],
        **kwargs):
    """Runs `program` as root in a guest: it passes if that exits with 0 and the kernel of the guest has no complaint.

    A program of GoogleTest is asked which tests were skipped. With R2CC_VERBS_FAULTS in its environment (tests/rigs/faulty_libibverbs) a
    run in which no fault was injected fails. Where no guest can run, the test is skipped with "needs one_guest: ...".

    Args:
      name: the test target.
      program: an executable target.
      args: the program's arguments; $(rootpath TARGET) names what stands in data.
      data: what the program reads or starts. It runs in the root of the runfiles.
      environment: of the program. Paths begin at the root of the runfiles.
      rails: between the two nodes.
      wiring: "pair" or "bridge", see rails.sh.
      limit_s: how long the program may take. The guest needs 10 s more, and a multiple on a busy machine.
      size: as in every rule; it bounds all of it.
      tags: besides those of every guest; "manual": by hand alone.
      **kwargs: as in py_test.
    """
    r2cc_py_test(
        name = name,
        size = size,
        srcs = ["//tests/rigs/one_guest:program_test.py"],
        args = [str(rails), wiring, str(limit_s)] + ["%s=%s" % item for item in environment.items()] +
               ["$(rootpath %s)" % program] + args,
        data = [program] + data,
        # The guest sees the host's files as they are; it keeps one processor busy, and one more for its disk and our eyes.
        tags = ["cpu:2", "local", "needs-guest"] + tags,
        deps = ["//tests/rigs/one_guest"],
        **kwargs
    )
