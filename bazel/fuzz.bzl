"""Fuzz targets: one source, two programs. See "Fuzz" in CONTRIBUTING.md."""

def r2cc_cc_fuzz_test(name, srcs, corpus, deps = [], runs = 20000, size = "small", **kwargs):
    """A test around LLVMFuzzerTestOneInput().

    In an ordinary build it replays the corpus, then `runs` mutations of it from a fixed seed: short, and the same each time. With
    --config=fuzz it is a libFuzzer program under AddressSanitizer that looks for new inputs.

    Args:
      name: the test target.
      srcs: sources that define LLVMFuzzerTestOneInput().
      corpus: a folder of this package, one input a file.
      deps: what is fuzzed.
      runs: how many mutations an ordinary run tries.
      size: as in every rule.
      **kwargs: as in cc_test.
    """
    inputs = native.glob([corpus + "/*"])
    if not inputs:
        fail("r2cc_cc_fuzz_test %s: there is no input in %s/" % (name, corpus))
    native.cc_test(
        name = name,
        size = size,
        srcs = srcs,
        args = select({
            "//bazel:fuzz": ["-max_total_time=30", "-timeout=10", "-rss_limit_mb=2048", "-print_final_stats=1"],
            "//conditions:default": ["--runs=%d" % runs],
        }) + ["%s/%s" % (native.package_name(), corpus)],
        data = inputs,
        linkopts = select({
            "//bazel:fuzz": ["-fsanitize=fuzzer"],
            "//conditions:default": [],
        }),
        deps = deps + select({
            "//bazel:fuzz": [],
            "//conditions:default": ["//bazel:fuzz_main"],
        }),
        **kwargs
    )
