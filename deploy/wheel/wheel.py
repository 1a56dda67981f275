"""Makes a Python wheel of built files. The same inputs give the same bytes, whenever and wherever.

    wheel.py --name r2cc --summary "NCCL jobs that ..." --release 0.3.0 --epoch 1795564800 --readme README.md --license LICENSE \
        --library r2cc/lib/libnccl-net-r2cc.so=bazel-bin/... --module r2cc/__main__.py=... OUT.whl
"""

import argparse
import base64
import hashlib
import pathlib
import sys
import tempfile
import time
import zipfile

from deploy.debian import elf_stamp
from deploy.debian.package import revision_of

# glibc 2.34 is what the plugin and the library of tensor taps need (tests/artifact); one build for every Python 3.
TAG = "py3-none-manylinux_2_34_x86_64"
_METADATA = """\
Metadata-Version: 2.1
Name: {name}
Version: {release}
Summary: {summary}
Requires-Python: >=3.9
License: Apache-2.0
Description-Content-Type: text/markdown

"""
_WHEEL = """\
Wheel-Version: 1.0
Generator: r2cc {release} ({revision})
Root-Is-Purelib: false
Tag: {tag}
"""


def file_name(name: str, release: str) -> str:
  return f"{stem(name)}-{release}-{TAG}.whl"


def stem(name: str) -> str:
  """The name as a wheel's files have it: a hyphen separates their parts."""
  return name.replace("-", "_")


def parse_arguments(arguments: list[str]) -> argparse.Namespace:
  parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
  parser.add_argument("--name", required=True, help="as pip lists it")
  parser.add_argument("--summary", required=True, help="one line")
  parser.add_argument("--release", required=True)
  parser.add_argument("--status", type=pathlib.Path, help="Bazel's stable-status.txt, which has the revision")
  parser.add_argument("--revision", default="unknown", help="where there is no --status")
  parser.add_argument("--epoch", type=int, required=True, help="when every file was changed")
  parser.add_argument("--readme", type=pathlib.Path, required=True)
  parser.add_argument("--license", type=pathlib.Path, required=True)
  for name, text in (("program", "stripped and stamped, for everybody to run"), ("library", "stripped and stamped"),
                     ("module", "as it is")):
    parser.add_argument(f"--{name}", action="append", default=[], metavar="PATH=FILE", help=text)
  parser.add_argument("--console", action="append", default=[], metavar="NAME=MODULE:FUNCTION", help="a command that pip makes")
  parser.add_argument("out", type=pathlib.Path)
  return parser.parse_args(arguments)


def _digest(data: bytes) -> str:
  return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


class Wheel:
  """A zip file that lists its own files."""

  def __init__(self, out: pathlib.Path, epoch_s: int) -> None:
    self.archive = zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED)
    self.date = time.gmtime(epoch_s)[:6]
    self.rows: list[str] = []

  def add(self, path: str, data: bytes, executable: bool = False) -> None:
    info = zipfile.ZipInfo(path, self.date)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = (0o100755 if executable else 0o100644) << 16
    self.archive.writestr(info, data)
    self.rows.append(f"{path},{_digest(data)},{len(data)}")

  def close(self, record: str) -> None:
    self.add(record, ("\n".join(self.rows) + f"\n{record},,\n").encode())
    self.archive.close()


def make(asked: argparse.Namespace) -> None:
  """Writes asked.out."""
  revision = revision_of(asked.status.read_text(encoding="utf-8")) if asked.status else asked.revision
  info = f"{stem(asked.name)}-{asked.release}.dist-info"
  wheel = Wheel(asked.out, asked.epoch)
  with tempfile.TemporaryDirectory() as folder:
    for executable, given in ((True, asked.program), (False, asked.library)):
      for path, source in (words.split("=", 1) for words in sorted(given)):
        stamped = pathlib.Path(folder, "stamped")
        elf_stamp.stripped_and_stamped(pathlib.Path(source), stamped, asked.release, revision)
        wheel.add(path, stamped.read_bytes(), executable)
  for path, source in (words.split("=", 1) for words in sorted(asked.module)):
    wheel.add(path, pathlib.Path(source).read_bytes())
  readme = asked.readme.read_bytes()
  wheel.add(f"{info}/METADATA", _METADATA.format(name=asked.name, release=asked.release, summary=asked.summary).encode() + readme)
  wheel.add(f"{info}/WHEEL", _WHEEL.format(release=asked.release, revision=revision, tag=TAG).encode())
  if asked.console:
    wheel.add(f"{info}/entry_points.txt", ("[console_scripts]\n" + "".join(f"{line}\n" for line in sorted(asked.console))).encode())
  wheel.add(f"{info}/licenses/LICENSE", asked.license.read_bytes())
  wheel.close(f"{info}/RECORD")


if __name__ == "__main__":
  make(parse_arguments(sys.argv[1:]))
