"""A shared library that is compiled and linked as one: calls across its files cost what calls within a file do."""

def _is_optimized(settings):
    # A sanitized build looks for mistakes, and clang's objects are not gcc's.
    sanitized = [copt for copt in settings["//command_line_option:copt"] if copt.startswith("-fsanitize")]
    return str(settings["//command_line_option:compilation_mode"]) == "opt" and not sanitized

def _transition_impl(settings, _attr):
    compile_with, link_with = (["-flto"], ["-flto=auto", "-O2"]) if _is_optimized(settings) else ([], [])
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
