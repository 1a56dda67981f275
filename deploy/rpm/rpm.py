"""Makes an RPM of a Debian package: rpm.py [--scripts FILE] [--requires WORDS] --epoch SECONDS PACKAGE.deb OUT.rpm

The files are the same bytes at the places where RHEL 9 and its kin look for them. rpmbuild itself finds the libraries that the programs
need. The same package gives the same bytes, wherever and whenever it is made.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

# Debian's place: RHEL's. A directory's name ends with a slash.
_MOVED = (
    ("usr/lib/x86_64-linux-gnu/", "usr/lib64/"),
    ("usr/share/zsh/vendor-completions/", "usr/share/zsh/site-functions/"),
    ("usr/share/doc/libnccl-net-r2cc/README.Debian", "usr/share/doc/libnccl-net-r2cc/README"),
)
# What only Debian's tools read.
_LEFT_OUT = ("usr/share/lintian",)
# Of these directories the package is the owner; all others are the distribution's.
_OWN_DIRECTORIES = ("etc/r2cc", "usr/share/doc/", "usr/share/r2cc")

_SPEC = """\
Name: {name}
Version: {version}
Release: 1
Summary: {summary}
License: Apache-2.0
URL: https://r2cc.invalid
Requires: {requires}
%description
{description}
{scripts}
%files -f {files}
"""
_MACROS = {
    "_topdir": "{top}",
    "_tmppath": "{top}",  # a sandbox has no other place
    "_buildhost": "r2cc",
    "_build_id_links": "none",
    "__os_install_post": "%{{nil}}",  # the programs are stripped and stamped already
    "debug_package": "%{{nil}}",
    "use_source_date_epoch_as_buildtime": "1",
    "clamp_mtime_to_source_date_epoch": "1",
    "source_date_epoch_from_changelog": "0",
    "_binary_payload": "w19.zstdio",
}


class RpmError(Exception):
  """One line says what cannot be packed."""


def field(deb: pathlib.Path, name: str) -> str:
  return subprocess.run(["dpkg-deb", "-f", deb, name], check=True, capture_output=True, text=True).stdout.strip()


def place(path: str) -> str:
  """Where a file of the Debian package lies, without the leading slash."""
  for debian, rhel in _MOVED:
    if path == debian or (debian.endswith("/") and path.startswith(debian)):
      return rhel + path[len(debian):]
  return path


def arrange(deb_root: pathlib.Path, root: pathlib.Path) -> list[str]:
  """Puts the files where they go; returns the lines of the file list."""
  lines = []
  for path in sorted(deb_root.rglob("*")):
    name = str(path.relative_to(deb_root))
    if any(name == left_out or name.startswith(left_out + "/") for left_out in _LEFT_OUT):
      continue
    to = root / place(name)
    if path.is_dir() and not path.is_symlink():
      if any(name.startswith(own) for own in _OWN_DIRECTORIES):
        to.mkdir(parents=True, exist_ok=True)
        lines.append(f'%dir %attr(0755, root, root) "/{place(name)}"')
      continue
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(path, to, follow_symlinks=False)
    kind = "%config(noreplace) " if name.startswith("etc/") else ""
    mode = "-" if path.is_symlink() else f"{path.stat().st_mode & 0o777:04o}"
    lines.append(f'{kind}%attr({mode}, root, root) "/{place(name)}"')
  return lines


def make(deb: pathlib.Path, scripts: pathlib.Path | None, requires: str, epoch: int, out: pathlib.Path) -> None:
  with tempfile.TemporaryDirectory() as folder:
    top = pathlib.Path(folder)
    unpacked, root = top / "deb", top / "root"
    subprocess.run(["dpkg-deb", "-x", deb, unpacked], check=True)
    root.mkdir()
    (top / "files").write_text("\n".join(arrange(unpacked, root)) + "\n", encoding="utf-8")
    for path in [root, *root.rglob("*")]:
      os.utime(path, (epoch, epoch), follow_symlinks=False)
    summary, _, text = field(deb, "Description").partition("\n")
    spec = top / "package.spec"
    spec.write_text(_SPEC.format(
        name=field(deb, "Package"), version=field(deb, "Version"), summary=summary, requires=requires or "glibc",
        description="\n".join(line.strip() for line in text.splitlines()).replace("README.Debian", "README"), files=top / "files",
        scripts=scripts.read_text(encoding="utf-8") if scripts else ""), encoding="utf-8")
    command = ["rpmbuild", "-bb", "--quiet", "--nodeps", "--target", "x86_64-linux", "--buildroot", root]
    for macro, value in _MACROS.items():
      command += ["--define", f"{macro} {value.format(top=top)}"]
    # Without a section %install rpmbuild keeps what is in the build root.
    built = subprocess.run([*command, spec], check=False, capture_output=True, text=True,
                           env={**os.environ, "SOURCE_DATE_EPOCH": str(epoch), "HOME": folder, "TZ": "UTC"})
    made = list(top.glob("RPMS/*/*.rpm"))
    if built.returncode != 0 or len(made) != 1:
      raise RpmError(f"rpmbuild: {built.stdout}{built.stderr}")
    shutil.copyfile(made[0], out)


def main() -> int:
  parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
  parser.add_argument("--scripts", type=pathlib.Path, help="%%post and its like, as in a spec file")
  parser.add_argument("--requires", default="", help="packages of the distribution that programs call")
  parser.add_argument("--epoch", type=int, required=True, help="when every file was changed")
  parser.add_argument("deb", type=pathlib.Path)
  parser.add_argument("out", type=pathlib.Path)
  options = parser.parse_args()
  if shutil.which("rpmbuild") is None:
    print("rpm.py: there is no rpmbuild: apt-get install rpm", file=sys.stderr)
    return 1
  try:
    make(options.deb, options.scripts, options.requires, options.epoch, options.out)
  except RpmError as error:
    print(f"rpm.py: {error}", file=sys.stderr)
    return 1
  return 0


if __name__ == "__main__":
  sys.exit(main())
