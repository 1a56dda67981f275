"""A real r2ccd with many nodes in its view, in a network namespace of the calling process. Its own node has two NICs on veth pairs."""

import ctypes
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time

from testing.lab.loopback import free_port
from tests.page import browser

_CLONE_NEWNET, _CLONE_NEWNS = 0x40000000, 0x00020000


def why_not():
  """Why no stage can be made here; empty: one can."""
  return "needs root: makes a network namespace" if os.geteuid() != 0 else browser.why_not()


def run(*words):
  subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


def enter_namespace():
  """Moves this process, and those that it starts, into a new network namespace with a loopback interface and two veth pairs."""
  libc = ctypes.CDLL(None, use_errno=True)
  if libc.unshare(_CLONE_NEWNET) != 0:
    raise OSError(ctypes.get_errno(), "unshare")
  run("ip", "link", "set", "lo", "up")
  for rail in range(2):
    run("ip", "link", "add", f"own{rail}", "type", "veth", "peer", "name", f"far{rail}")
    run("ip", "address", "add", f"10.99.{rail}.1/24", "dev", f"own{rail}")
    for end in ("own", "far"):
      # Without an IPv6 address, which would come a second later: Chromium ends all requests when an address comes.
      run("ip", "link", "set", f"{end}{rail}", "addrgenmode", "none")
      run("ip", "link", "set", f"{end}{rail}", "up")


def set_policy(policy):
  """Chromium's policy for the browsers that this process starts from now on: in a mount namespace of its own, so nobody else has it."""
  libc = ctypes.CDLL(None, use_errno=True)
  if libc.unshare(_CLONE_NEWNS) != 0:
    raise OSError(ctypes.get_errno(), "unshare")
  run("mount", "--make-rprivate", "/")
  run("mount", "-t", "tmpfs", "tmpfs", "/etc/chromium")
  os.makedirs("/etc/chromium/policies/managed")
  with open("/etc/chromium/policies/managed/r2cc.json", "w", encoding="utf-8") as file:
    json.dump(policy, file)


class Stage:
  """One r2ccd of node "own"; `nodes` others come by its store. `tls`: a directory of its certificate; then its page is at the address of
  its first NIC, and the name "own" has to lead there. Ends with close()."""

  def __init__(self, r2ccd, fleet, nodes, nics=8, extra="", tls=""):
    self.folder = tempfile.mkdtemp(prefix="r2cc-page.")
    self._r2ccd = r2ccd
    self._listen = f"127.0.0.1:{free_port('127.0.0.1')}"
    self.port = free_port("127.0.0.1")
    self.address = "10.99.0.1" if tls else "127.0.0.1"
    self.url = f"https://own:{self.port}/" if tls else f"http://127.0.0.1:{self.port}/"
    trust = f'tls {{ directory: "{tls}" }}' if tls else "insecure: true"
    with open(f"{self.folder}/conf", "w", encoding="utf-8") as conf:
      conf.write(f'node: "own"\nlisten: "{self._listen}"\n'
                 'nics { name: "rail0" interface: "own0" }\nnics { name: "rail1" interface: "own1" }\n'
                 f'store {{ embedded_node: "own" }}\nlimits {{ nodes: 16384 }}\n{trust}\ndrills {{ allow: true }}\n'
                 f'http {{ listen: "{self.address}:{self.port}" }}\n{extra}')
    self._daemon = None
    self._fleet = None
    self.start()
    if nodes > 0:
      self._fleet = subprocess.Popen([fleet, self._listen, str(nodes), str(nics)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
      if self._fleet.stdout.readline() != "ready\n":
        raise RuntimeError("the fleet is not in the store")

  def start(self):
    with open(f"{self.folder}/log", "ab") as log:
      self._daemon = subprocess.Popen([self._r2ccd, "--config", f"{self.folder}/conf", "--run_dir", f"{self.folder}/run", "--state_dir",
                                       f"{self.folder}/kept"], stdout=log, stderr=subprocess.STDOUT)
    until = time.monotonic() + browser.PATIENCE_S
    while time.monotonic() < until:
      try:
        socket.create_connection((self.address, self.port), 1).close()
        return
      except OSError:
        time.sleep(0.02)
    raise TimeoutError("r2ccd does not serve HTTP")

  def stop(self):
    """Ends the daemon as an operator does."""
    self._daemon.terminate()
    self._daemon.wait()

  def kill(self):
    self._daemon.kill()
    self._daemon.wait()

  def set(self, first, last, nic, state, reason):
    """Has the daemons of the nodes `first` to `last` report `state` of their NIC number `nic`; -1: of all."""
    self._command(f"{first} {last} {nic} {state} {reason}")

  def set_again(self):
    """Has all daemons report once more, as they do after a restart of the store."""
    self._command("again")

  def _command(self, line):
    self._fleet.stdin.write(f"{line}\n")
    self._fleet.stdin.flush()
    if self._fleet.stdout.readline() != "done\n":
      raise RuntimeError("the fleet has ended")

  def close(self):
    if self._fleet is not None:
      self._fleet.stdin.close()
      self._fleet.wait()
    if self._daemon.poll() is None:
      self.kill()
    shutil.rmtree(self.folder)
