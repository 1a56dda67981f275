"""Two nodes as network namespaces: a cable between them for control traffic, and one a rail. Real daemons, with certificates."""

from collections.abc import Iterator
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import time

# Generous: each wait ends as soon as what it waits for is there.
PATIENCE_S = 60
PORT = 7460
CABLES = ("ctl0", "rail0", "rail1")


def run(*command: str, check: bool = True, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess:
  return subprocess.run(command, capture_output=True, text=True, check=check, timeout=PATIENCE_S, env=environment)


class TwoNodes:
  """n0 and n1. `one_network`: both rails have addresses of one network, as a plain kernel gets them."""

  def __init__(self, folder: pathlib.Path, r2ccd: pathlib.Path, r2ccctl: pathlib.Path, one_network: bool = False):
    self.folder, self.r2ccd, self.r2ccctl = folder, r2ccd, r2ccctl
    self._networks = ("10.99.0", "10.99.1", "10.99.1" if one_network else "10.99.2")
    self._processes: dict[str, subprocess.Popen] = {}
    self._tag = f"rd{os.getpid()}"

  def __enter__(self) -> "TwoNodes":
    try:
      for node in (0, 1):
        run("ip", "netns", "add", self.netns(node))
        self.ip(node, "link", "set", "lo", "up")
      for cable, name in enumerate(CABLES):
        run("ip", "link", "add", name, "netns", self.netns(0), "type", "veth", "peer", "name", name, "netns", self.netns(1))
        for node in (0, 1):
          self.ip(node, "address", "add", f"{self.address(node, cable)}/24", "dev", name)
          self.ip(node, "link", "set", name, "up")
      run(str(self.r2ccctl), "certs", "init", "--dir", str(self.folder / "ca"))
      for node in (0, 1):
        self.issue(node)
        self.configure(node)
    except BaseException:
      self.__exit__()
      raise
    return self

  def __exit__(self, *_):
    for node in list(self._processes):
      self.stop(node)
    for node in (0, 1):
      run("ip", "netns", "delete", self.netns(node), check=False)

  def netns(self, node: int) -> str:
    return f"{self._tag}n{node}"

  def address(self, node: int, cable: int) -> str:
    """Where two rails share a network each has addresses of its own."""
    return f"{self._networks[cable]}.{1 + node + 10 * cable}"

  def ip(self, node: int, *arguments: str) -> None:
    run("ip", "-n", self.netns(node), *arguments)

  def sysctl(self, node: int, name: str, value: int) -> None:
    run("ip", "netns", "exec", self.netns(node), "sh", "-c", f"echo {value} > /proc/sys/{name.replace('.', '/')}")

  def issue(self, node: int, *flags: str, name: str | None = None) -> None:
    run(str(self.r2ccctl), "certs", "issue", name or f"n{node}", "--dir", str(self.folder / "ca"), "--out", str(self.tls(node)), *flags)

  def tls(self, node: int) -> pathlib.Path:
    return self.folder / f"tls{node}"

  def run_dir(self, node: int) -> pathlib.Path:
    return self.folder / f"run{node}"

  def configure(self, node: int, more: str = "", priority: str = "realtime_priority: 0\nnice: 0\n") -> None:
    rails = "".join(f'nics {{ name: "{rail}" interface: "{rail}" }}\n' for rail in CABLES[1:])
    other = 1 - node
    (self.folder / f"n{node}.textproto").write_text(
        f'node: "n{node}"\nlisten: "{self.address(node, 0)}:{PORT}"\n{rails}tls {{ directory: "{self.tls(node)}" }}\n'
        f'peers {{ node: "n{other}" address: "{self.address(other, 0)}:{PORT}" }}\n{priority}{more}', encoding="utf-8")

  def start(self, node: int, *flags: str, before: tuple[str, ...] = (), name: str | None = None,
            program: pathlib.Path | None = None) -> None:
    """r2ccd of the node, or another `program`. `name`: another daemon there, under this one's configuration. `before`: runs it."""
    key = name or f"n{node}"
    folder = self.folder / (f"run{node}" if name is None else name)
    with open(self.folder / f"{key}.log", "ab") as log:
      self._processes[key] = subprocess.Popen(
          ["ip", "netns", "exec", self.netns(node), *before, str(program or self.r2ccd), "--config", str(self.folder / f"{key}.textproto"),
           "--run_dir", str(folder), "--state_dir", f"{folder}-state", *flags], stdout=log, stderr=log)

  @contextlib.contextmanager
  def process(self, node: int, *command: str) -> Iterator[subprocess.Popen]:
    """Another program of the node, killed at the end."""
    name = pathlib.Path(command[0]).name
    with open(self.folder / f"{name}.log", "ab") as log:
      # Without `ip netns exec` between: what is killed is the program.
      process = subprocess.Popen(["nsenter", f"--net=/run/netns/{self.netns(node)}", *command], stdout=log, stderr=log)
    try:
      yield process
    finally:
      process.kill()
      process.wait()

  def until(self, true) -> bool:
    end = time.monotonic() + PATIENCE_S
    while not true():
      if time.monotonic() > end:
        return False
      time.sleep(0.2)
    return True

  def stop(self, node: int | str) -> None:
    process = self._processes.pop(node if isinstance(node, str) else f"n{node}")
    process.kill()
    process.wait()

  def pause(self, node: int) -> None:
    """Its daemon runs no more, and is still there."""
    self._processes[f"n{node}"].send_signal(signal.SIGSTOP)

  def log(self) -> str:
    return "".join(f"--- {path.name}\n{path.read_text(encoding='utf-8', errors='replace')}" for path in sorted(self.folder.glob("*.log")))

  def doctor(self, *flags: str, node: int = 0, before: tuple[str, ...] = (), environment: dict[str, str] | None = None) -> dict:
    """The report, with `exit`, the exit code, and `lines`: of all that is not ok "FAIL path mtu: text -> fix"."""
    answer = run("ip", "netns", "exec", self.netns(node), *before, str(self.r2ccctl), "--run_dir", str(self.run_dir(node)), "-o", "json",
                 "doctor", *flags, check=False, environment=environment)
    if not answer.stdout:
      raise AssertionError(answer.stderr)
    report = json.loads(answer.stdout)
    report["exit"] = answer.returncode
    report["lines"] = [
        f"{one['level']} {one['check']}: {one['text']} -> {one['fix']}" for one in report["findings"] if one["level"] != "ok"]
    return report

  def await_line(self, wanted, *flags: str, **how) -> dict:
    """The first report for which `wanted` is true, or the last one."""
    end = time.monotonic() + PATIENCE_S
    while True:
      report = self.doctor(*flags, **how)
      if wanted(report) or time.monotonic() > end:
        return report
      time.sleep(0.2)
