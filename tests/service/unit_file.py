"""A systemd unit as values: what it says, and what a process that is started by it is given."""

import pathlib
import subprocess

# rlimit of prlimit(1) by the unit's name.
_LIMITS = {"LimitNOFILE": "nofile", "LimitMEMLOCK": "memlock", "LimitRTPRIO": "rtprio", "LimitNICE": "nice"}
# rlimits count niceness from 1 (19) to 40 (-20): getrlimit(2).
_NICE_ZERO = 20


def read(path: pathlib.Path) -> dict[str, list[str]]:
  """Every setting of the unit with all its values in order; sections do not matter here, as no name is in two."""
  settings: dict[str, list[str]] = {}
  for line in path.read_text(encoding="utf-8").splitlines():
    if line and not line.startswith(("#", ";", "[")):
      name, equals, value = line.partition("=")
      if not equals:
        raise ValueError(f"{path}: no setting: {line}")
      settings.setdefault(name, []).append(value)
  return settings


def last(settings: dict[str, list[str]], name: str) -> str:
  """The value that counts of a setting that has one."""
  return settings[name][-1]


def limits(settings: dict[str, list[str]]) -> tuple[list[str], list[str]]:
  """The unit's limits as arguments of prlimit(1), and those that this process may not give: raising one takes CAP_SYS_RESOURCE."""
  given, refused = [], []
  for name, limit in _LIMITS.items():
    value = int(last(settings, name))
    argument = f"--{limit}={_NICE_ZERO - value if limit == 'nice' else value}"
    may = subprocess.run(["prlimit", argument, "true"], check=False, capture_output=True).returncode == 0
    (given if may else refused).append(argument)
  return given, refused


def wrapped(settings: dict[str, list[str]], user: str, group: str, command: list[str]) -> list[str]:
  """`command` with the unit's limits, this user and group, and no more privileges than the unit leaves."""
  if last(settings, "CapabilityBoundingSet") or last(settings, "NoNewPrivileges") != "yes":
    raise ValueError("only a unit without any capability is known here")
  given, _ = limits(settings)
  return ["prlimit", *given, "setpriv", "--reuid", user, "--regid", group, "--clear-groups", "--no-new-privs", "--bounding-set", "-all",
          "--inh-caps", "-all", "--", *command]
