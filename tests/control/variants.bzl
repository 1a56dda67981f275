"""Variants of the plain plugin."""

def plain_plugin(name, bug = "kNone", **kwargs):
    """A shared library with the plain plugin.

    Args:
      name: file name of the library.
      bug: the planted fault, a value of control::Bug.
      **kwargs: for cc_binary.
    """
    native.cc_binary(
        name = name,
        srcs = [":plain_sources"],
        copts = ["-fvisibility=hidden"],
        linkopts = [
            "-Wl,-z,nodelete",
            "-Wl,--version-script=$(location plain.lds)",
        ],
        linkshared = True,
        local_defines = ["R2CC_CONTROL_BUG=" + bug],
        deps = [
            ":plain.lds",
            ":rails",
            "//netplugin/abi",
        ],
        **kwargs
    )
