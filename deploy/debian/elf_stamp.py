"""Writes release and revision into a built program or library, at the place that base/core/release.cc keeps for them."""

import pathlib
import subprocess
import tempfile

SECTION = ".r2cc_release"
RELEASE_BYTES, REVISION_BYTES = 32, 64


class StampError(Exception):
  """The file cannot be stamped: one line says why."""


def stamp(release: str, revision: str) -> bytes:
  """The section's contents; each text ends with a zero byte."""
  parts = []
  for text, size in ((release, RELEASE_BYTES), (revision, REVISION_BYTES)):
    data = text.encode("ascii")
    if len(data) >= size:
      raise StampError(f"'{text}' is {len(data)} bytes, at most {size - 1} have a place")
    parts.append(data.ljust(size, b"\0"))
  return b"".join(parts)


def stripped_and_stamped(source: pathlib.Path, target: pathlib.Path, release: str, revision: str) -> None:
  """A copy of `source` without symbols that only a debugger reads, with the stamp. The same inputs give the same bytes."""
  with tempfile.TemporaryDirectory() as folder:
    old, new = pathlib.Path(folder, "old"), pathlib.Path(folder, "new")
    subprocess.run(["objcopy", "-O", "binary", f"--only-section={SECTION}", source, old], check=True)
    new.write_bytes(stamp(release, revision))
    if not old.is_file() or old.stat().st_size != new.stat().st_size:
      raise StampError(f"{source} has no section {SECTION} of {new.stat().st_size} bytes: not one of our programs")
    subprocess.run(["objcopy", "--strip-unneeded", "--remove-section=.comment", "--enable-deterministic-archives",
                    f"--update-section={SECTION}={new}", source, target], check=True)
