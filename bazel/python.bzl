"""Python tests that report as GoogleTest's do: one XML case a test, skips said, and R2CC_REQUIRE honoured."""

_MAIN = "//bazel:unittest_main.py"

def r2cc_py_test(name, srcs, deps = [], data = [], tags = [], args = [], size = "small", **kwargs):
    """A py_test whose `*_test.py` sources are unittest modules; they need no `if __name__ == "__main__"`.

    A test that cannot run here calls `self.skipTest("needs root: ...")`: where R2CC_REQUIRE names root, that is a failure.
    Modules are imported by their path from the workspace root: `from testing.lab import layout`.

    Args:
      name: the test target.
      srcs: the test modules (`*_test.py`) and helpers of this test alone.
      deps: py_library targets.
      data: what the test reads or starts, found through the runfiles.
      tags: as in every rule; whole-system tests are ["exclusive", "local"].
      args: handed to the tests as unittest_main.test_args().
      size: as in every rule.
      **kwargs: as in py_test.
    """
    modules = []
    for src in srcs:
        path = src.split(":")[-1]
        package = src[len("//"):].split(":")[0] if src.startswith("//") else native.package_name()
        if path.endswith("_test.py"):
            modules.append(".".join([part for part in package.split("/") if part] + path[:-len(".py")].split("/")))
    if not modules:
        fail("r2cc_py_test %s: no source is named *_test.py" % name)
    native.py_test(
        name = name,
        size = size,
        srcs = srcs + [_MAIN],
        args = modules + ["--"] + args,
        data = data,
        main = _MAIN,
        tags = tags,
        deps = deps,
        **kwargs
    )
