"""Reads the source tree that a test of this workspace was built from."""

import os

from tests.tidy import rules

_SKIPPED_FOLDERS = {".git", "__pycache__", "node_modules"}
_TEXT = rules.CODE + (".md", ".yaml", ".yml", ".json", ".txt", ".textproto", ".conf", ".lds", ".service", ".bazelrc")
_TEXT_NAMES = {"WORKSPACE", "bazelw", "long", "run", "LICENSE"}


def workspace_root():
  """The folder of WORKSPACE: a test that runs outside the sandbox sees its own source through a link."""
  folder = os.path.dirname(os.path.realpath(__file__))
  while not os.path.exists(os.path.join(folder, "WORKSPACE")):
    parent = os.path.dirname(folder)
    if parent == folder:
      raise FileNotFoundError(f"no WORKSPACE above {__file__}")
    folder = parent
  return folder


def read_sources(root):
  """All text files of the tree, sorted by path."""
  sources = []
  for folder, subfolders, names in os.walk(root):
    subfolders[:] = [name for name in subfolders if name not in _SKIPPED_FOLDERS and not name.startswith("bazel-")]
    for name in names:
      path = os.path.join(folder, name)
      if (name.endswith(_TEXT) or name in _TEXT_NAMES) and os.path.isfile(path):
        with open(path, encoding="utf-8") as file:
          sources.append(rules.Source(os.path.relpath(path, root).replace(os.sep, "/"), file.read()))
  return sorted(sources, key=lambda source: source.path)
