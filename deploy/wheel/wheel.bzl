"""The Python wheel of one release: wheel.py makes it."""

load("//bazel:release.bzl", "RELEASE", "RELEASE_EPOCH_S")

# As package.py's: by kind, path in the wheel -> label.
_FILES = {
    "library": {
        "r2cc/lib/libnccl-net-r2cc.so": "//netplugin:libnccl-net-r2cc.so",
        "r2cc/lib/libnccl-tuner-r2cc.so": "//netplugin:libnccl-tuner-r2cc.so",
        "r2cc/lib/libr2cc-nccl.so": "//nccl:libr2cc-nccl.so",
    },
    "module": {"r2cc/%s.py" % name: ":r2cc/%s.py" % name for name in ["__main__", "command_line", "environment"]},
    "program": {"r2cc/bin/r2ccctl": "//client:r2ccctl"},
}

def wheel(name, **kwargs):
    """r2cc-RELEASE-py3-none-manylinux_2_34_x86_64.whl.

    Args:
      name: the target.
      **kwargs: as in every rule.
    """
    arguments = ["--release %s --epoch %d --status bazel-out/stable-status.txt" % (RELEASE, RELEASE_EPOCH_S)]
    arguments += ["--readme $(location :README.md)", "--license $(location //:LICENSE)"]
    labels = [":README.md", "//:LICENSE"]
    for kind, given in _FILES.items():
        for path, label in given.items():
            arguments.append("--%s %s=$(location %s)" % (kind, path, label))
            labels.append(label)
    native.genrule(
        name = name,
        srcs = labels,
        outs = ["r2cc-%s-py3-none-manylinux_2_34_x86_64.whl" % RELEASE],
        cmd = "$(location :make) %s $@" % " ".join(arguments),
        exec_tools = [":make"],
        stamp = True,
        **kwargs
    )
