"""Finds the built binaries: next to this file in Bazel's runfiles, or in bazel-bin of a source tree."""

import pathlib

from testing.lab.cluster import Binaries

_ROOT = pathlib.Path(__file__).absolute().parents[2]


def built_file(label: str) -> pathlib.Path:
  """The file of a label like "daemon/r2ccd"."""
  nearby = _ROOT / label
  return nearby if nearby.is_file() else _ROOT / "bazel-bin" / label


def built_binaries(plugin: pathlib.Path | None = None) -> Binaries:
  return Binaries(daemon=built_file("daemon/r2ccd"), ctl=built_file("client/r2ccctl"), perf=built_file("tools/perf/r2cc-perf"),
                  plugin=plugin or built_file("netplugin/libnccl-net-r2cc.so"))
