"""Makes one Debian package from built files. The same inputs give the same bytes, whenever and wherever.

    package.py --control r2ccd.control --release 0.1.0 --epoch 1795564800 --program /usr/sbin/r2ccd=bazel-bin/daemon/r2ccd OUT.deb
"""

import argparse
import gzip
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

from deploy.debian import elf_stamp

# One machine's: the release is for x86-64 alone.
ARCHITECTURE = "amd64"
MAINTAINER = "R2CC maintainers <maintainers@r2cc.invalid>"
_CHANGELOG = """\
r2cc ({release}) unstable; urgency=medium

  * Release {release}, revision {revision}.

 -- {maintainer}  {date}
"""
# Debian's compression, by one thread: how many processors there are is not to be seen in a file.
_DPKG_DEB = ["dpkg-deb", "--root-owner-group", "--uniform-compression", "-Zxz", "--threads-max=1"]


class PackageError(Exception):
  """One line says what cannot be packed."""


def parse_arguments(arguments: list[str]) -> argparse.Namespace:
  parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
  parser.add_argument("--control", type=pathlib.Path, required=True, help="the fields that do not follow from the files")
  parser.add_argument("--release", required=True)
  parser.add_argument("--status", type=pathlib.Path, help="Bazel's stable-status.txt, which has the revision")
  parser.add_argument("--revision", default="unknown", help="where there is no --status")
  parser.add_argument("--epoch", type=int, required=True, help="when every file was changed")
  parser.add_argument("--copyright", type=pathlib.Path, required=True)
  for name, text in (("program", "stripped and stamped, for everybody to run"), ("library", "stripped and stamped"),
                     ("executable", "for everybody to run"), ("file", "as it is"), ("gzip", "compressed; the name ends with .gz")):
    parser.add_argument(f"--{name}", action="append", default=[], metavar="PATH=FILE", help=text)
  parser.add_argument("--link", action="append", default=[], metavar="PATH=TARGET")
  parser.add_argument("--directory", action="append", default=[], metavar="PATH")
  parser.add_argument("--release-module", metavar="PATH", help="a Python module with RELEASE and REVISION")
  parser.add_argument("--script", action="append", default=[], metavar="NAME=FILE", help="postinst and its like")
  parser.add_argument("out", type=pathlib.Path)
  return parser.parse_args(arguments)


def revision_of(status: str) -> str:
  """From the lines of bazel/workspace_status.sh."""
  found = re.search(r"^STABLE_R2CC_REVISION (\S+)$", status, re.MULTILINE)
  if not found:
    raise PackageError("the workspace status has no STABLE_R2CC_REVISION; see bazel/workspace_status.sh")
  return found.group(1)


def libraries_needed(files: list[pathlib.Path]) -> str:
  """The packages of the libraries that these programs ask for, as Depends has them."""
  newest = (0,)
  for file in files:
    needed = subprocess.run(["readelf", "-dW", file], check=True, capture_output=True, text=True).stdout
    unknown = set(re.findall(r"\(NEEDED\).*\[(.*?)\]", needed)) - {
        "libc.so.6", "libm.so.6", "libgcc_s.so.1", "libdl.so.2", "libpthread.so.0", "librt.so.1", "ld-linux-x86-64.so.2"}
    if unknown:
      raise PackageError(f"{file} needs {', '.join(sorted(unknown))}: no package is known for that")
    versions = subprocess.run(["readelf", "-VW", file], check=True, capture_output=True, text=True).stdout
    for text in re.findall(r"Name: GLIBC_([\d.]+) ", versions):
      newest = max(newest, tuple(int(part) for part in text.split(".")))
  # libgcc-s1 is of gcc 10 and later; what is asked of it is older than that.
  return f"libc6 (>= {'.'.join(map(str, newest))}), libgcc-s1"


def control(template: str, release: str, needed: str, size_kib: int) -> str:
  """The control file: the template's fields, and those that follow from the files."""
  name, _, rest = template.partition("\n")
  if not name.startswith("Package: "):
    raise PackageError("the control file's first line is Package: NAME")
  follows = [("Source", "r2cc"), ("Version", release), ("Architecture", ARCHITECTURE), ("Maintainer", MAINTAINER),
             ("Installed-Size", size_kib)]
  given = name + "\n" + "".join(f"{field}: {value}\n" for field, value in follows) + rest
  return given.replace("@libraries@", needed).replace("@version@", release)


class Tree:
  """The files of one package, below a folder."""

  def __init__(self, root: pathlib.Path, epoch: int):
    self.root = root
    self.epoch = epoch

  def path(self, name: str) -> pathlib.Path:
    if not name.startswith("/") or ".." in name.split("/"):
      raise PackageError(f"'{name}' is no absolute path")
    path = self.root / name[1:]
    if os.path.lexists(path):
      raise PackageError(f"{name} is given twice")
    path.parent.mkdir(parents=True, exist_ok=True)
    return path

  def add(self, name: str, data: bytes, mode: int = 0o644) -> None:
    path = self.path(name)
    path.write_bytes(data)
    path.chmod(mode)

  def add_gzip(self, name: str, data: bytes) -> None:
    # Neither name nor time inside: gzip -n.
    self.add(name, gzip.compress(data, compresslevel=9, mtime=0))

  def settle(self) -> None:
    """Modes and times that do not tell of whoever made it."""
    for path in [self.root, *self.root.rglob("*")]:
      if path.is_dir() and not path.is_symlink():
        path.chmod(0o755)
      os.utime(path, (self.epoch, self.epoch), follow_symlinks=False)

  def files(self) -> list[pathlib.Path]:
    return sorted(path for path in self.root.rglob("*") if path.is_file() and not path.is_symlink() and "DEBIAN" not in path.parts)

  def size_kib(self) -> int:
    """As dpkg-gencontrol counts: files by whole KiB, anything else as one."""
    return sum(-(-path.lstat().st_size // 1024) if path.is_file() and not path.is_symlink() else 1 for path in self.root.rglob("*"))


def split(argument: str) -> tuple[str, str]:
  name, equals, value = argument.partition("=")
  if not equals:
    raise PackageError(f"'{argument}' is no PATH=FILE")
  return name, value


def fill(tree: Tree, options: argparse.Namespace, revision: str, package: str) -> list[pathlib.Path]:
  """Puts everything in; returns the programs and libraries."""
  elves = []
  for kind, mode in (("program", 0o755), ("library", 0o644)):
    for name, source in map(split, getattr(options, kind)):
      path = tree.path(name)
      elf_stamp.stripped_and_stamped(pathlib.Path(source), path, options.release, revision)
      path.chmod(mode)
      elves.append(path)
  for kind, mode in (("executable", 0o755), ("file", 0o644)):
    for name, source in map(split, getattr(options, kind)):
      tree.add(name, pathlib.Path(source).read_bytes(), mode)
  for name, source in map(split, options.gzip):
    tree.add_gzip(name, pathlib.Path(source).read_bytes())
  for name, target in map(split, options.link):
    tree.path(name).symlink_to(target)
  for name in options.directory:
    tree.path(name).mkdir()
  if options.release_module:
    tree.add(options.release_module, f'RELEASE = "{options.release}"\nREVISION = "{revision}"\n'.encode())
  documents = f"/usr/share/doc/{package}"
  date = time.strftime("%a, %d %b %Y %H:%M:%S +0000", time.gmtime(options.epoch))
  tree.add(f"{documents}/copyright", options.copyright.read_bytes())
  tree.add_gzip(f"{documents}/changelog.gz", _CHANGELOG.format(release=options.release, revision=revision, maintainer=MAINTAINER,
                                                               date=date).encode())
  return elves


def make(options: argparse.Namespace) -> None:
  """The whole package at options.out."""
  template = options.control.read_text(encoding="utf-8")
  package = template.partition("\n")[0].removeprefix("Package: ")
  revision = revision_of(options.status.read_text(encoding="utf-8")) if options.status else options.revision
  with tempfile.TemporaryDirectory() as folder:
    tree = Tree(pathlib.Path(folder) / "tree", options.epoch)
    tree.root.mkdir()
    elves = fill(tree, options, revision, package)
    files, size_kib = tree.files(), tree.size_kib()
    sums = "".join(f"{hashlib.md5(path.read_bytes()).hexdigest()}  {path.relative_to(tree.root)}\n" for path in files)
    conffiles = "".join(f"/{path.relative_to(tree.root)}\n" for path in files if path.relative_to(tree.root).parts[0] == "etc")
    needed = libraries_needed(elves) if elves else ""
    tree.add("/DEBIAN/control", control(template, options.release, needed, size_kib).encode())
    tree.add("/DEBIAN/md5sums", sums.encode())
    if conffiles:
      tree.add("/DEBIAN/conffiles", conffiles.encode())
    for name, source in map(split, options.script):
      tree.add(f"/DEBIAN/{name}", pathlib.Path(source).read_bytes(), 0o755)
    tree.settle()
    subprocess.run([*_DPKG_DEB, "--build", tree.root, options.out], check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, "SOURCE_DATE_EPOCH": str(options.epoch)})


def main() -> int:
  if shutil.which("dpkg-deb") is None:
    print("package.py: there is no dpkg-deb: packages are made on Debian or Ubuntu", file=sys.stderr)
    return 1
  try:
    make(parse_arguments(sys.argv[1:]))
  except (PackageError, elf_stamp.StampError) as error:
    print(f"package.py: {error}", file=sys.stderr)
    return 1
  return 0


if __name__ == "__main__":
  sys.exit(main())
