"""What a linked file asks of the machine it is loaded on and what it shows to others, read with readelf."""

import dataclasses
import re
import subprocess

# What is loaded into a job's process may need these alone. libdl and libpthread are part of libc since glibc 2.34; older linkers still
# name them.
JOB_NEEDED = frozenset({"libc.so.6", "libm.so.6", "libgcc_s.so.1", "libdl.so.2", "libpthread.so.0", "ld-linux-x86-64.so.2",
                        "ld-linux-aarch64.so.1"})
JOB_GLIBC_NEWEST = (2, 34)


@dataclasses.dataclass(frozen=True)
class Elf:
  """The part of an ELF file's dynamic section and symbol table that matters to whoever loads it."""
  needed: frozenset         # libraries, as "libc.so.6"
  flags: frozenset          # "NODELETE", "NOW", "TEXTREL", ...
  run_paths: frozenset      # RPATH and RUNPATH
  exported: frozenset       # defined dynamic symbols that others can see
  glibc_versions: frozenset  # version names of glibc that it asks for, as "GLIBC_2.34"


def parse(dynamic, symbols, versions):
  """From the output of readelf -dW, --dyn-syms -W and -VW."""
  exported = set()
  for line in symbols.splitlines():
    # Num: Value Size Type Bind Vis Ndx Name
    match = re.match(r"\s*\d+:\s+[0-9a-f]+\s+\S+\s+\S+\s+(\S+)\s+(\S+)\s+(?:\[.*?\]\s+)?(\S+)\s+(\S+)", line)
    if match and match[3] != "UND" and match[1] != "LOCAL" and match[2] in ("DEFAULT", "PROTECTED"):
      exported.add(match[4].split("@")[0])
  flags = set()
  for line in re.findall(r"\((?:FLAGS|FLAGS_1)\)\s+(.*)", dynamic):
    flags.update(line.replace("Flags:", "").split())
  if "(TEXTREL)" in dynamic:
    flags.add("TEXTREL")
  return Elf(
      needed=frozenset(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)),
      flags=frozenset(flags),
      run_paths=frozenset(re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", dynamic)),
      exported=frozenset(exported),
      # Asked for, not offered: "Name: GLIBC_2.34  Flags: none  Version: 5"
      glibc_versions=frozenset(re.findall(r"Name: (GLIBC_\S+)", versions)))


def read(path):
  """The Elf of a file; subprocess.CalledProcessError if it is none."""
  def readelf(*options):
    return subprocess.run(["readelf", *options, path], check=True, stdout=subprocess.PIPE, text=True).stdout
  elf = parse(readelf("-dW"), readelf("--dyn-syms", "-W"), readelf("-VW"))
  if not elf.needed:
    raise ValueError(f"{path} is no dynamically linked ELF file")
  return elf


def glibc_newer_than(elf, newest):
  """The versions of glibc asked for that are newer than `newest`, such as (2, 34), and those that are no release number at all."""
  too_new = set()
  for name in elf.glibc_versions:
    match = re.fullmatch(r"GLIBC_(\d+(?:\.\d+)*)", name)
    if not match or tuple(int(part) for part in match[1].split(".")) > newest:
      too_new.add(name)
  return too_new
