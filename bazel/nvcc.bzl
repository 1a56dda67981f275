"""CUDA's compiler, if the machine has one: NVCC in @nvcc//:nvcc.bzl is its path, or empty.

R2CC_NVCC (--repo_env) names another; empty, it stands for none.
"""

def _nvcc(ctx):
    named = ctx.os.environ.get("R2CC_NVCC")
    found = ctx.which("nvcc") or ctx.path("/usr/local/cuda/bin/nvcc")
    path = str(found) if found.exists else ""
    ctx.file("BUILD.bazel", "")
    ctx.file("nvcc.bzl", "NVCC = %r\n" % (path if named == None else named))

nvcc = repository_rule(
    implementation = _nvcc,
    environ = [
        "PATH",
        "R2CC_NVCC",
    ],
    local = True,
)
