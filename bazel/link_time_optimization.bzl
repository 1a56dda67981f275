"""A shared library as it is shipped: compiled and linked as one, so that calls across its files cost what calls within a file do.

Its sources see R2CC_SHIPPED, which leaves out the bugs that tests can switch on (netplugin/flow/mutant.h).
"""

def _transition_impl(settings, _attr):
    # A sanitized build looks for mistakes and is not shipped: the tests' objects do. And clang's are not gcc's.
    sanitized = [copt for copt in settings["//command_line_option:copt"] if copt.startswith("-fsanitize")]
    optimized = str(settings["//command_line_option:compilation_mode"]) == "opt" and not sanitized
    compile_with = ([] if sanitized else ["-DR2CC_SHIPPED"]) + (["-flto"] if optimized else [])
    link_with = ["-flto=auto", "-O2"] if optimized else []
    return {
        "//command_line_option:copt": settings["//command_line_option:copt"] + compile_with,
        "//command_line_option:linkopt": settings["//command_line_option:linkopt"] + link_with,
    }

_transition = transition(
    implementation = _transition_impl,
    inputs = [
        "//command_line_option:compilation_mode",
        "//command_line_option:copt",
        "//command_line_option:linkopt",
    ],
    outputs = [
        "//command_line_option:copt",
        "//command_line_option:linkopt",
    ],
)

def _impl(ctx):
    library = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.symlink(output = library, target_file = ctx.file.library)
    return [DefaultInfo(files = depset([library]), runfiles = ctx.runfiles([library]))]

# The name is the file's.
optimized_shared_library = rule(
    implementation = _impl,
    attrs = {
        "library": attr.label(
            allow_single_file = True,
            cfg = _transition,
            doc = "A cc_binary with linkshared.",
            mandatory = True,
        ),
        "_allowlist_function_transition": attr.label(default = "@bazel_tools//tools/allowlists/function_transition_allowlist"),
    },
)
