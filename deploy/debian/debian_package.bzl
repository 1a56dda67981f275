"""A Debian package of built files: package.py makes it."""

load("//bazel:release.bzl", "RELEASE", "RELEASE_EPOCH_S")

# Where the files lie on the machine, by the kind of each: see package.py.
_KINDS = {
    "executable": "executables",
    "file": "files",
    "gzip": "gzips",
    "library": "libraries",
    "program": "programs",
}

def debian_package(
        name,
        release = RELEASE,
        revision = None,
        links = {},
        directories = [],
        scripts = {},
        release_module = None,
        testonly = False,
        **kwargs):
    """NAME_RELEASE_amd64.deb, of NAME.control.

    Args:
      name: the package.
      release: its version.
      revision: the revision that it claims; None: that of the source tree, which it then is made anew for.
      links: path -> target.
      directories: empty ones.
      scripts: "postinst" and its like -> file.
      release_module: where a Python module with release and revision goes.
      testonly: as in every rule.
      **kwargs: executables, files, gzips, libraries and programs of package.py: path -> label.
    """
    arguments = ["--control $(location :%s.control)" % name, "--copyright $(location :copyright)"]
    arguments += ["--release %s --epoch %d" % (release, RELEASE_EPOCH_S)]
    arguments += ["--status bazel-out/stable-status.txt" if revision == None else "--revision " + revision]
    labels = [":%s.control" % name, ":copyright"]
    for kind, given in _KINDS.items():
        for path, label in kwargs.pop(given, {}).items():
            arguments.append("--%s %s=$(location %s)" % (kind, path, label))
            labels.append(label)
    if kwargs:
        fail("debian_package %s: what is %s?" % (name, ", ".join(kwargs.keys())))
    for path, target in links.items():
        arguments.append("--link %s=%s" % (path, target))
    for path in directories:
        arguments.append("--directory %s" % path)
    if release_module:
        arguments.append("--release-module %s" % release_module)
    for script, label in scripts.items():
        arguments.append("--script %s=$(location %s)" % (script, label))
        labels.append(label)
    unique = {label: None for label in labels}
    native.genrule(
        name = "%s_%s_deb" % (name, release),
        testonly = testonly,
        srcs = unique.keys(),
        outs = ["%s_%s_amd64.deb" % (name, release)],
        cmd = "$(location :package) %s $@" % " ".join(arguments),
        exec_tools = [":package"],
        stamp = revision == None,
    )
