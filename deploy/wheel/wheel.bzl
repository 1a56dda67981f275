"""A Python wheel of one release: wheel.py makes it."""

load("//bazel:release.bzl", "RELEASE", "RELEASE_EPOCH_S")

def wheel(name, distribution, summary, readme, console = [], libraries = {}, modules = {}, programs = {}, **kwargs):
    """DISTRIBUTION-RELEASE-py3-none-manylinux_2_34_x86_64.whl, with an underscore for each hyphen.

    Args:
      name: the target.
      distribution: what pip lists.
      summary: one line.
      readme: its page for users.
      console: commands that pip makes, as "NAME=MODULE:FUNCTION".
      libraries: path in the wheel -> label, stripped and stamped.
      modules: likewise, as they are.
      programs: likewise, stripped, stamped and executable.
      **kwargs: as in every rule.
    """
    arguments = ["--name %s --summary '%s'" % (distribution, summary)]
    arguments += ["--release %s --epoch %d --status bazel-out/stable-status.txt" % (RELEASE, RELEASE_EPOCH_S)]
    arguments += ["--readme $(location %s)" % readme, "--license $(location //:LICENSE)"]
    arguments += ["--console " + command for command in console]
    labels = [readme, "//:LICENSE"]
    for kind, given in {"library": libraries, "module": modules, "program": programs}.items():
        for path, label in given.items():
            arguments.append("--%s %s=$(location %s)" % (kind, path, label))
            labels.append(label)
    native.genrule(
        name = name,
        srcs = labels,
        outs = ["%s-%s-py3-none-manylinux_2_34_x86_64.whl" % (distribution.replace("-", "_"), RELEASE)],
        cmd = "$(location :make) %s $@" % " ".join(arguments),
        exec_tools = [":make"],
        stamp = True,
        **kwargs
    )
