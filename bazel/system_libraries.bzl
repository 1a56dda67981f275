"""Libraries of the distribution as cc_library targets in @system, found with pkg-config.

The large ones are linked statically, so that one r2ccd runs on any distribution with a new enough glibc.
"""

# Target: (pkg-config packages, linked statically).
_LIBRARIES = {
    "abseil": ([
        "absl_flat_hash_map",
        "absl_span",
        "absl_status",
        "absl_statusor",
        "absl_str_format",
        "absl_strings",
        "absl_synchronization",
        "absl_time",
    ], True),
    "archive": (["libarchive"], True),
    "crypto": (["libcrypto"], True),
    "grpc": (["grpc++", "protobuf", "absl_synchronization"], True),
    "protobuf": (["protobuf"], True),
    "gtest": (["gtest", "gmock"], True),
    "hwloc": (["hwloc"], True),
}

# Used from their headers alone: nothing to link.
_HEADER_LIBRARIES = {
    "beast": ["BOOST_ERROR_CODE_HEADER_ONLY"],
    "cli11": [],
    "spdlog": ["FMT_HEADER_ONLY"],
}

# Part of glibc: never linked statically beside a shared glibc.
_GLIBC = ["-lpthread", "-ldl", "-lrt", "-lm"]

_LEFT_OUT = [
    # Has no static form; health/io/no_udev.cc stands in for it.
    "-ludev",
    # What libarchive has for formats that nobody here reads or writes: tar and gzip alone take none of them.
    "-lacl",
    "-lbz2",
    "-llz4",
    "-llzma",
    "-lnettle",
    "-lxml2",
    "-lzstd",
]

def _pkg_config(ctx, arguments):
    result = ctx.execute(["pkg-config"] + arguments)
    if result.return_code != 0:
        fail("pkg-config %s failed: %s (./bazelw installs the packages that are missing)" % (" ".join(arguments), result.stderr))
    return [word for word in result.stdout.strip().replace("\n", " ").split(" ") if word]

def _system_libraries(ctx):
    text = ['package(default_visibility = ["//visibility:public"])\n']
    for name, (packages, static) in _LIBRARIES.items():
        words = _pkg_config(ctx, (["--static"] if static else []) + ["--libs"] + packages)
        links = [word for word in words if word not in _GLIBC + _LEFT_OUT and word != "-pthread"]
        if static:
            links = ["-Wl,-Bstatic", "-Wl,--start-group"] + links + ["-Wl,--end-group", "-Wl,-Bdynamic"]
        defines = [word[2:] for word in _pkg_config(ctx, ["--cflags"] + packages) if word.startswith("-D")]
        text.append("cc_library(\n    name = %r,\n    defines = %r,\n    linkopts = %r,\n)\n" % (
            name,
            defines,
            links + ["-lpthread", "-ldl", "-lrt", "-lm"],
        ))
    for name, defines in _HEADER_LIBRARIES.items():
        text.append("cc_library(\n    name = %r,\n    defines = %r,\n)\n" % (name, defines))
    ctx.file("BUILD.bazel", "\n".join(text))

system_libraries = repository_rule(
    implementation = _system_libraries,
    environ = ["PKG_CONFIG_PATH"],
    local = True,
)
