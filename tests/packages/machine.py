"""A bare Debian that is booted: systemd runs in it, by systemd-nspawn."""

import pathlib
import subprocess
import time

from tests.packages import debian_root

# Generous: each wait ends as soon as what it waits for is there.
PATIENCE_S = 120


class Machine:
  """Boots what is below `folder`. Network, processes and mounts are its own."""

  def __init__(self, folder: pathlib.Path):
    self.path = folder
    self._log = open(folder.with_name(folder.name + ".log"), "w+", encoding="utf-8")
    # Not registered: there may be no systemd-machined here. Its unit is whoever started us.
    self._nspawn = subprocess.Popen(["systemd-nspawn", "--quiet", "--directory", folder, "--boot", "--private-network", "--register=no",
                                     "--keep-unit", "--console=pipe"], stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log)

  def close(self) -> None:
    """Ends it at once: what it holds is thrown away."""
    self._nspawn.terminate()
    self._nspawn.wait()
    self._log.close()

  @property
  def log(self) -> str:
    """What its console has shown."""
    self._log.flush()
    return pathlib.Path(self._log.name).read_text(encoding="utf-8", errors="replace")

  def wait_until_up(self) -> None:
    """Until systemd has started what it starts; some of Debian's own units may fail in a container."""
    self.until(lambda: self.run("systemctl", "is-system-running", check=False).stdout.strip() in ("running", "degraded"))

  def run(self, *words: str, check: bool = True) -> subprocess.CompletedProcess:
    """As root inside; what it said is in the error."""
    leader = pathlib.Path(f"/proc/{self._nspawn.pid}/task/{self._nspawn.pid}/children").read_text(encoding="ascii").split()
    enter = ["nsenter", "--target", leader[0] if leader else "0", "--all", "--root", "--wd"]
    done = subprocess.run([*enter, *words], check=False, capture_output=True, text=True, env=debian_root.ENVIRONMENT)
    if check and done.returncode != 0:
      raise AssertionError(f"{' '.join(words)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done

  def until(self, there) -> None:
    """Until `there()` is true."""
    end = time.monotonic() + PATIENCE_S
    while not there():
      if self._nspawn.poll() is not None or time.monotonic() > end:
        raise AssertionError(f"it did not become so; the console:\n{self.log}")
      time.sleep(0.2)
