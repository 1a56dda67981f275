"""The tab key in bash, zsh and fish: the shells run, with what `r2ccctl completion SHELL` prints, and a daemon that knows names."""

import os
import pathlib
import pty
import re
import select
import subprocess
import tempfile
import time
import unittest

from bazel import unittest_main

# Generous: the wait ends as soon as what it waits for is there.
PATIENCE_S = 30
PROMPT = "ready>"


class Terminal:
  """An interactive shell on a terminal of its own."""

  def __init__(self, command: list[str], environment: dict[str, str]):
    self.pid, self.fd = pty.fork()
    if self.pid == 0:
      os.execvpe(command[0], command, environment)
    self.seen = ""

  def close(self) -> None:
    os.close(self.fd)  # hangs up on it
    os.waitpid(self.pid, 0)

  def send(self, keys: str) -> None:
    os.write(self.fd, keys.encode())

  def until(self, pattern: str) -> str:
    """What was shown since the last call, up to and with `pattern`."""
    end = time.monotonic() + PATIENCE_S
    while not (found := re.search(pattern, self.seen)):
      left = end - time.monotonic()
      if left <= 0 or not select.select([self.fd], [], [], left)[0]:
        raise AssertionError(f"no {pattern!r} in {self.seen!r}")
      text = os.read(self.fd, 4096).decode(errors="replace")
      self.seen += re.sub(r"\x1b\[[\d;?]*[a-zA-Z]|\x1b[=>]|\x07", "", text)
    shown, self.seen = self.seen[:found.end()], self.seen[found.end():]
    return shown


class ShellsTest(unittest.TestCase):

  @classmethod
  def setUpClass(cls):
    cls.r2ccctl, cls.r2ccd = [pathlib.Path(path).resolve() for path in unittest_main.test_args()]

  def setUp(self):
    # In /tmp whatever TEST_TMPDIR says: the path of a Unix socket has room for 107 bytes.
    self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="r2cc-shells-", dir="/tmp")))
    (self.folder / "bin").mkdir()
    (self.folder / "bin/r2ccctl").symlink_to(self.r2ccctl)
    self.environment = {"PATH": f"{self.folder}/bin:/usr/bin:/bin", "HOME": str(self.folder), "TERM": "dumb", "LC_ALL": "C.UTF-8"}
    for shell in ("bash", "zsh", "fish"):
      script = subprocess.run([self.r2ccctl, "completion", shell], check=True, capture_output=True, text=True).stdout
      (self.folder / f"script.{shell}").write_text(script, encoding="utf-8")

  def start_daemon(self) -> str:
    """Its run directory, once names can be asked for."""
    config = self.folder / "r2ccd.textproto"
    config.write_text('node: "n0"\nlisten: "127.0.0.1:0"\nnics { name: "left" address: "127.9.0.1" }\n'
                      'nics { name: "right" address: "127.9.0.2" }\n', encoding="utf-8")
    run_dir = str(self.folder / "run")
    daemon = subprocess.Popen([self.r2ccd, "--config", config, "--run_dir", run_dir, "--state_dir", self.folder / "state"],
                              stderr=subprocess.DEVNULL)
    self.addCleanup(daemon.wait)
    self.addCleanup(daemon.terminate)
    end = time.monotonic() + PATIENCE_S
    while "n0/left" not in self.words("--run_dir", run_dir, "nic", "drain", ""):
      self.assertLess(time.monotonic(), end, "no names from the daemon")
    return run_dir

  def words(self, *typed: str) -> list[str]:
    """What the shells are told."""
    lines = subprocess.run([self.r2ccctl, "completion", "words", *typed], check=True, capture_output=True, text=True).stdout.splitlines()
    return [line.split("\t")[0] for line in lines]

  def shell(self, *command: str) -> Terminal:
    terminal = Terminal(list(command), self.environment)
    self.addCleanup(terminal.close)
    return terminal

  def bash(self) -> Terminal:
    terminal = self.shell("bash", "--norc", "--noprofile")
    terminal.send(f"bind 'set enable-bracketed-paste off'; source {self.folder}/script.bash; PS1='{PROMPT[:-1]}''>'\n")
    terminal.until(PROMPT)
    return terminal

  def zsh(self) -> Terminal:
    terminal = self.shell("zsh", "-f")
    terminal.send(f"autoload -Uz compinit && compinit -u -D; unsetopt zle_bracketed_paste; source {self.folder}/script.zsh; "
                  f"PS1='{PROMPT[:-1]}''>'\n")
    terminal.until(PROMPT)
    return terminal

  def fish(self, typed: str) -> list[str]:
    """fish tells what it would offer; its own command for that."""
    shown = subprocess.run(["fish", "--no-config", "-c", f"source {self.folder}/script.fish; complete -C '{typed}'"], check=True,
                           capture_output=True, text=True, env=self.environment).stdout
    return [line.split("\t")[0] for line in shown.splitlines()]

  def check_terminal(self, terminal: Terminal):
    terminal.send("r2ccctl stat\t")
    terminal.until("r2ccctl status ")
    terminal.send("--ba\t")
    terminal.until("--bad ")
    terminal.send("-o js\t")
    terminal.until("-o json ")
    terminal.send("\x15r2ccctl nic undr\t")
    terminal.until("r2ccctl nic undrain ")
    run_dir = self.start_daemon()
    terminal.send(f"\x15r2ccctl --run_dir {run_dir} nic drain n0/le\t")
    terminal.until("nic drain n0/left ")
    terminal.send(f"\x15r2ccctl --certs {self.folder}/script.b\t")
    terminal.until(f"--certs {self.folder}/script.bash ")

  def test_bash(self):
    self.check_terminal(self.bash())

  def test_zsh(self):
    self.check_terminal(self.zsh())

  def test_fish(self):
    self.assertEqual(self.fish("r2ccctl stat"), ["status"])
    self.assertEqual(self.fish("r2ccctl status --ba"), ["--bad"])
    self.assertEqual(self.fish("r2ccctl status -o js"), ["json"])
    self.assertIn("drain", self.fish("r2ccctl nic "))
    run_dir = self.start_daemon()
    self.assertEqual(self.fish(f"r2ccctl --run_dir {run_dir} nic drain n0/le"), ["n0/left"])
    self.assertIn(f"{self.folder}/script.bash", self.fish(f"r2ccctl --certs {self.folder}/script.b"))

  def test_a_daemon_that_is_stopped_does_not_hold_the_shell(self):
    self.assertEqual(self.words("nic", "drain", "--run_dir", str(self.folder), ""), [], "there is none")

  def test_bash_script_is_sound(self):
    judged = subprocess.run(["shellcheck", "--shell=bash", self.folder / "script.bash"], check=False, capture_output=True, text=True)
    self.assertEqual(judged.stdout, "")
