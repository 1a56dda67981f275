"""All Debian packages of one release."""

load("//bazel:release.bzl", "RELEASE")
load("//docs:documents.bzl", "DOCUMENTS")
load("//observe/python:sources.bzl", "SOURCES")
load(":debian_package.bzl", "debian_package")

_LIBRARIES = "/usr/lib/x86_64-linux-gnu"
_DRILL = "/usr/share/r2cc-drill"
_DRILL_MODULES = ["arguments", "chart", "comparison", "guest_drill", "main", "record", "report", "runner", "story"]
_TRIAL_MODULES = ["arguments", "machines", "main", "network", "trial"]
_GUEST_FILES = ["guest.py", "init.sh", "kernel.py", "rails.sh", "start.sh", "verbs_lab.py"]
_LAB_MODULES = [
    "all_reduce_times",
    "binaries",
    "cluster",
    "lab",
    "layout",
    "lifetime",
    "loopback",
    "namespaces",
    "netns_socket",
    "processes",
    "stalls",
    "traces",
]

# As in the source tree, so that their links hold.
_DOCUMENTS = {"/usr/share/doc/r2ccd/" + document: "//:" + document for document in [
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "README.md",
]}
_DOCUMENTS.update({"/usr/share/doc/r2ccd/docs/" + document: "//docs:" + document for document in DOCUMENTS})

def _r2ccd(**kwargs):
    files = dict(_DOCUMENTS)
    files.update({
        "/usr/share/doc/r2ccd/deploy/monitoring/r2cc-dashboard.json": "//deploy/monitoring:r2cc-dashboard.json",
        "/usr/share/doc/r2ccd/deploy/monitoring/r2cc.rules.yml": "//deploy/monitoring:r2cc.rules.yml",
        "/etc/r2cc/r2ccd.textproto": "//deploy/config:r2ccd.textproto",
        "/usr/lib/systemd/system-preset/90-r2ccd.preset": "//deploy/systemd:90-r2ccd.preset",
        "/usr/lib/systemd/system/r2ccd.service": "//deploy/systemd:r2ccd.service",
        "/usr/lib/sysusers.d/r2ccd.conf": "//deploy/systemd:r2ccd.sysusers.conf",
        "/usr/lib/tmpfiles.d/r2ccd.conf": "//deploy/systemd:r2ccd.tmpfiles.conf",
        "/usr/share/doc/r2ccd/examples/rdma.conf": "//deploy/systemd:rdma.conf",
        "/usr/share/lintian/overrides/r2ccd": ":r2ccd.overrides",
    })
    debian_package(
        name = "r2ccd",
        directories = ["/etc/r2cc/r2ccd.d"],
        files = files,
        gzips = {
            "/usr/share/doc/r2ccd/libraries.gz": ":libraries",
            "/usr/share/man/man5/r2ccd.textproto.5.gz": "//deploy/man:r2ccd.textproto.5",
            "/usr/share/man/man8/r2ccd.8.gz": "//deploy/man:r2ccd.8",
        },
        programs = {"/usr/sbin/r2ccd": "//daemon:r2ccd"},
        scripts = {script: ":r2ccd." + script for script in ["postinst", "prerm", "postrm"]},
        **kwargs
    )

def _r2ccctl(**kwargs):
    debian_package(
        name = "r2ccctl",
        files = {
            "/usr/share/bash-completion/completions/r2ccctl": "//deploy/completion:r2ccctl.bash",
            "/usr/share/lintian/overrides/r2ccctl": ":r2ccctl.overrides",
            "/usr/share/fish/vendor_completions.d/r2ccctl.fish": "//deploy/completion:r2ccctl.fish",
            "/usr/share/zsh/vendor-completions/_r2ccctl": "//deploy/completion:r2ccctl.zsh",
        },
        gzips = {
            "/usr/share/doc/r2ccctl/libraries.gz": ":libraries",
            "/usr/share/man/man1/r2ccctl.1.gz": "//deploy/man:r2ccctl.1",
        },
        programs = {"/usr/bin/r2ccctl": "//client:r2ccctl"},
        **kwargs
    )

def _plugin(**kwargs):
    debian_package(
        name = "libnccl-net-r2cc",
        files = {
            "/usr/share/doc/libnccl-net-r2cc/README.Debian": ":libnccl-net-r2cc.README.Debian",
            "/usr/share/doc/libnccl-net-r2cc/nccl.conf.example": ":nccl.conf.example",
            "/usr/share/lintian/overrides/libnccl-net-r2cc": ":libnccl-net-r2cc.overrides",
        },
        gzips = {"/usr/share/man/man7/libnccl-net-r2cc.7.gz": "//deploy/man:libnccl-net-r2cc.7"},
        libraries = {
            _LIBRARIES + "/libnccl-net-r2cc.so": "//netplugin:libnccl-net-r2cc.so",
            _LIBRARIES + "/libnccl-profiler-r2cc.so": "//nccl/profiler:libnccl-profiler-r2cc.so",
            _LIBRARIES + "/libnccl-tuner-r2cc.so": "//netplugin:libnccl-tuner-r2cc.so",
            _LIBRARIES + "/libr2cc-nccl.so": "//nccl:libr2cc-nccl.so",
        },
        # RCCL looks for its net plugin by this name (untested).
        links = {_LIBRARIES + "/librccl-net-r2cc.so": "libnccl-net-r2cc.so"},
        **kwargs
    )

def _perf(**kwargs):
    debian_package(
        name = "r2cc-perf",
        gzips = {
            "/usr/share/doc/r2cc-perf/libraries.gz": ":libraries",
            "/usr/share/man/man1/r2cc-perf.1.gz": "//deploy/man:r2cc-perf.1",
        },
        programs = {"/usr/bin/r2cc-perf": "//tools/perf:r2cc-perf"},
        **kwargs
    )

def _observe(**kwargs):
    files = {"/usr/lib/python3/dist-packages/" + source: "//observe/python:" + source for source in SOURCES}
    files.update({
        "/usr/include/r2cc/observe.h": "//observe/capi:observe.h",
        "/usr/share/doc/r2cc-observe/examples/first.py": "//observe/examples:first.py",
    })
    debian_package(
        name = "r2cc-observe",
        executables = {"/usr/bin/r2cc-observe": "//observe/tool:main.py"},
        files = files,
        gzips = {"/usr/share/man/man1/r2cc-observe.1.gz": "//deploy/man:r2cc-observe.1"},
        # It is never linked to: Python and others open it by its path.
        libraries = {"/usr/lib/r2cc/libr2cc-observe.so": "//observe/capi:libr2cc-observe.so"},
        scripts = {script: ":r2cc-observe." + script for script in ["postinst", "prerm"]},
        **kwargs
    )

def _drill(**kwargs):
    modules = {"%s/deploy/drill/%s.py" % (_DRILL, module): "//deploy/drill:%s.py" % module for module in _DRILL_MODULES}
    for module in _TRIAL_MODULES:
        modules["%s/deploy/trial/%s.py" % (_DRILL, module)] = "//deploy/trial:%s.py" % module
    for file in _GUEST_FILES:
        modules["%s/testing/guest/%s" % (_DRILL, file)] = "//testing/guest:" + file
    for module in _LAB_MODULES:
        modules["%s/testing/lab/%s.py" % (_DRILL, module)] = "//testing/lab:%s.py" % module
    debian_package(
        name = "r2cc-drill",
        executables = {
            "/usr/bin/r2cc-drill": ":r2cc-drill",
            "/usr/bin/r2cc-try": ":r2cc-try",
        },
        files = modules,
        gzips = {
            "/usr/share/man/man1/r2cc-drill.1.gz": "//deploy/man:r2cc-drill.1",
            "/usr/share/man/man1/r2cc-try.1.gz": "//deploy/man:r2cc-try.1",
        },
        # Where the drill of a source tree looks for what was built.
        links = {
            _DRILL + "/client/r2ccctl": "../../../bin/r2ccctl",
            _DRILL + "/daemon/r2ccd": "../../../sbin/r2ccd",
            _DRILL + "/netplugin/libnccl-net-r2cc.so": "../../../lib/x86_64-linux-gnu/libnccl-net-r2cc.so",
            _DRILL + "/tools/perf/r2cc-perf": "../../../../bin/r2cc-perf",
        },
        release_module = _DRILL + "/deploy/drill/release.py",
        **kwargs
    )

def debian_packages(name, release = RELEASE, revision = None, testonly = False):
    """The six packages, and NAME for all of them."""
    made = {"release": release, "revision": revision, "testonly": testonly}
    for make in [_r2ccd, _r2ccctl, _plugin, _perf, _drill, _observe]:
        make(**made)
    native.filegroup(
        name = name,
        testonly = testonly,
        srcs = [
            ":%s_%s_amd64.deb" % (package, release)
            for package in ["libnccl-net-r2cc", "r2cc-drill", "r2cc-observe", "r2cc-perf", "r2ccctl", "r2ccd"]
        ],
    )
