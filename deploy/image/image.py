"""Writes the container image: image.py --root TAR --image TAR FROM=PATH...

The root file system is a tar, and the image an OCI layout (image-spec 1.0) in a tar, with that one layer. What goes in is the same bytes
wherever and whenever it is written: names in order, no times, no users but root.
"""

import argparse
import gzip
import hashlib
import io
import json
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile

# Of no account of Debian's or of a package (base-passwd): the group and user of a node's own r2ccd, if it has one, are others.
UID = 64750
LIBRARY_FOLDER = "/lib/x86_64-linux-gnu"
# Opened at run time, where a node has RDMA devices.
OPENED_LATER = (f"{LIBRARY_FOLDER}/libibumad.so.3",)
DIRECTORIES = {"dev": 0o755, "etc/r2cc/r2ccd.d": 0o755, "etc/r2cc/tls": 0o755, "opt/r2cc": 0o755, "proc": 0o555, "run/r2cc": 0o755,
               "run/r2cc-control": 0o750, "sys": 0o555, "tmp": 0o1777, "var/lib/r2cc": 0o750}
TEXTS = {
    "etc/passwd": f"root:x:0:0:root:/:/nonexistent\nr2ccd:x:{UID}:{UID}:R2CC daemon:/var/lib/r2cc:/nonexistent\n",
    # Its members may steer; who is let into the pod is one.
    "etc/group": f"root:x:0:\nr2cc:x:{UID}:\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}
CONFIG = {
    "User": f"{UID}:{UID}",
    "Env": ["PATH=/usr/sbin:/usr/bin"],
    "Entrypoint": ["/usr/sbin/r2ccd", "--config", "/etc/r2cc/r2ccd.textproto"],
    "WorkingDir": "/",
}


def stripped(path: pathlib.Path) -> bytes:
  """An executable or library without what only a debugger reads."""
  with tempfile.TemporaryDirectory() as folder:
    out = pathlib.Path(folder) / "out"
    subprocess.run(["strip", "-o", out, path], check=True)
    return out.read_bytes()


def libraries(programs: list[pathlib.Path]) -> dict[str, bytes]:
  """The libraries that `programs` and OPENED_LATER are linked to, the loader among them, by the path under which it looks for them."""
  found: dict[str, bytes] = {}
  for program in [*programs, *(pathlib.Path(path) for path in OPENED_LATER)]:
    for line in subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout.splitlines():
      match = re.match(r"\s*(?:\S+ => )?(/\S+) \(0x", line)
      if match:
        found[match.group(1).lstrip("/")] = pathlib.Path(match.group(1)).read_bytes()
      elif "linux-vdso" not in line and "statically linked" not in line:
        sys.exit(f"image.py: {program}: {line.strip()}: install it")
  return found | {path.lstrip("/"): pathlib.Path(path).read_bytes() for path in OPENED_LATER}


def tar(files: dict[str, tuple[int, bytes]], directories: dict[str, int]) -> bytes:
  """A tar of files (mode, contents) and directories by their paths; parents come by themselves."""
  folders = dict(directories)
  for path in [*files, *directories]:
    for parent in pathlib.PurePosixPath(path).parents:
      if str(parent) != ".":
        folders.setdefault(str(parent), 0o755)
  out = io.BytesIO()
  with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
    for path in sorted([*folders, *files]):
      entry = tarfile.TarInfo(path)
      if path in files:
        entry.mode, contents = files[path]
        entry.size = len(contents)
        archive.addfile(entry, io.BytesIO(contents))
      else:
        entry.type, entry.mode = tarfile.DIRTYPE, folders[path]
        archive.addfile(entry)
  return out.getvalue()


def layout(root: bytes) -> dict[str, tuple[int, bytes]]:
  """The files of an OCI layout with one image, of one layer."""
  blobs: dict[str, tuple[int, bytes]] = {}

  def blob(media_type: str, contents: bytes) -> dict[str, object]:
    digest = hashlib.sha256(contents).hexdigest()
    blobs[f"blobs/sha256/{digest}"] = (0o644, contents)
    return {"mediaType": f"application/vnd.oci.image.{media_type}", "digest": f"sha256:{digest}", "size": len(contents)}

  def text(value: object) -> bytes:
    return json.dumps(value, sort_keys=True).encode()

  layer = blob("layer.v1.tar+gzip", gzip.compress(root, compresslevel=9, mtime=0))
  config = blob("config.v1+json", text({
      "architecture": "amd64", "os": "linux", "config": CONFIG,
      "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(root).hexdigest()}"]}}))
  manifest = blob("manifest.v1+json", text({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config,
                                            "layers": [layer]}))
  manifest["annotations"] = {"org.opencontainers.image.ref.name": "latest"}
  return blobs | {"oci-layout": (0o644, text({"imageLayoutVersion": "1.0.0"})),
                  "index.json": (0o644, text({"schemaVersion": 2, "manifests": [manifest]}))}


def root_files(sources: list[str]) -> dict[str, tuple[int, bytes]]:
  """The files of the root file system; `sources` are FROM=PATH, and what is an ELF file is stripped."""
  files, programs = {}, []
  for source in sources:
    built, _, path = source.partition("=")
    contents = pathlib.Path(built).read_bytes()
    elf = contents.startswith(b"\x7fELF")
    if elf:
      programs.append(pathlib.Path(built).resolve())
      contents = stripped(programs[-1])
    files[path.lstrip("/")] = (0o755 if elf else 0o644, contents)
  files |= {path: (0o755, contents) for path, contents in libraries(programs).items()}
  return files | {path: (0o644, text.encode()) for path, text in TEXTS.items()}


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument("--root", type=pathlib.Path, required=True)
  parser.add_argument("--image", type=pathlib.Path, required=True)
  parser.add_argument("sources", nargs="+", metavar="FROM=PATH")
  options = parser.parse_args()
  root = tar(root_files(options.sources), DIRECTORIES)
  options.root.write_bytes(root)
  options.image.write_bytes(tar(layout(root), {}))


if __name__ == "__main__":
  main()
