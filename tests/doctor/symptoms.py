"""The symptoms of docs/operate/diagnose.md, planted between two nodes: by the heading that the page gives them."""

import os
import pathlib
import re
from typing import Callable

from tests.doctor import two_nodes

# What is another at each run: moments, spans, lives of a daemon, processes, numbers of events and changes, ports that the kernel chose.
# Columns are as wide as what stands in them.
_DIFFERS = (
    (r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d\.?\S*", "TIME"),
    (r"\b\d+(\.\d+)? (ns|us|ms|s|min|h|d)\b( \d+ (s|min|h)\b)?", "SPAN"),
    (r"\b\d+ +\(life [0-9a-f]{16}\)", "LIFE"),
    (r"\bpid \d+", "PID"),
    (r"\(heard from [^)]*\)", "(heard from SOMEWHERE)"),
    (r"(?m)^ *\d+ +TIME", "TIME"),
    (r"[ \t]+", " "),
)

Plant = Callable[[two_nodes.TwoNodes], None]


def _both(nodes: two_nodes.TwoNodes) -> None:
  nodes.start(0)
  nodes.start(1)
  report = nodes.await_line(lambda report: not report["lines"])
  if report["lines"]:
    raise AssertionError(f"{report['lines']}\n{nodes.log()}")


def _cable(nodes: two_nodes.TwoNodes) -> None:
  _both(nodes)
  nodes.ip(0, "link", "set", "rail1", "down")


def _silent(nodes: two_nodes.TwoNodes) -> None:
  _both(nodes)
  rules = "table netdev silent { chain in { type filter hook ingress device \"rail1\" priority 0; drop; }; }"
  two_nodes.run("ip", "netns", "exec", nodes.netns(1), "nft", rules)


def _firewall(nodes: two_nodes.TwoNodes) -> None:
  _both(nodes)
  rules = "table ip firewall { chain in { type filter hook input priority 0; udp dport 7460 drop; }; }"
  two_nodes.run("ip", "netns", "exec", nodes.netns(0), "nft", rules)


def _crossed(nodes: two_nodes.TwoNodes) -> None:
  for cable in (1, 2):
    nodes.ip(0, "link", "delete", two_nodes.CABLES[cable])
  for here, there in (("rail0", "rail1"), ("rail1", "rail0")):
    two_nodes.run("ip", "link", "add", here, "netns", nodes.netns(0), "type", "veth", "peer", "name", there, "netns", nodes.netns(1))
  for node in (0, 1):
    for cable in (1, 2):
      nodes.ip(node, "address", "add", f"{nodes.address(node, cable)}/24", "dev", two_nodes.CABLES[cable])
      nodes.ip(node, "link", "set", two_nodes.CABLES[cable], "up")
    nodes.start(node)


def _drained(nodes: two_nodes.TwoNodes) -> None:
  _both(nodes)
  two_nodes.run(str(nodes.r2ccctl), "--run_dir", str(nodes.run_dir(0)), "nic", "drain", "n0/rail1")


def _bad_file(nodes: two_nodes.TwoNodes) -> None:
  _both(nodes)
  nodes.configure(0, more="limits { nodes: 70000 }\n")


def _other_node(nodes: two_nodes.TwoNodes) -> None:
  _both(nodes)
  nodes.stop(1)


def _mtu(nodes: two_nodes.TwoNodes) -> None:
  _both(nodes)
  nodes.ip(1, "link", "set", "rail1", "mtu", "1400")


def _size(nodes: two_nodes.TwoNodes) -> None:
  _both(nodes)
  rules = "table netdev large { chain in { type filter hook ingress device \"rail1\" priority 0; meta length > 1450 drop; }; }"
  two_nodes.run("ip", "netns", "exec", nodes.netns(1), "nft", rules)


def _certificate(nodes: two_nodes.TwoNodes) -> None:
  _both(nodes)
  nodes.issue(0, name="n1")


def _clock(nodes: two_nodes.TwoNodes) -> None:
  nodes.start(0)
  nodes.start(1, "--wall_clock_offset_s", "60")


def _name(nodes: two_nodes.TwoNodes) -> None:
  _both(nodes)
  text = (nodes.folder / "n1.textproto").read_text(encoding="utf-8")
  (nodes.folder / "second.textproto").write_text(
      text.replace(nodes.address(1, 0) + ":7460", nodes.address(1, 1) + ":7460"), encoding="utf-8")
  nodes.start(1, name="second")


SYMPTOMS: dict[str, Plant] = {
    "Nothing is wrong": _both,
    "A rail carries nothing": _cable,
    "A NIC stays SUSPECT": _silent,
    "Probes have no answer on any rail": _firewall,
    "Two cables are crossed": _crossed,
    "A rail is spared on purpose": _drained,
    "r2ccctl gets no answer": lambda nodes: None,
    "A change of the configuration has no effect": _bad_file,
    "An action is refused": _both,
    "Another node is unreachable": _other_node,
    "Small messages pass and large ones hang": _mtu,
    "Packets over a size are lost on a rail": _size,
    "Other daemons refuse this one": _certificate,
    "Times do not fit": _clock,
    "A node comes and goes, and nothing is wrong with it": _name,
    "A job does not use R2CC": _both,
    "A job cannot begin, or uses fewer rails than it has": _both,
}


# Sections that need a job: `//tests/e2e:hang_test` makes jobs hang and compares what `r2ccctl jobs --bad` prints,
# `//tests/e2e:profiled_job_test` has jobs with the profiler.
TESTED_ELSEWHERE = {"A job makes no progress", "Which collective waited"}


def environment(nodes: two_nodes.TwoNodes) -> dict[str, str]:
  """Of whoever asks: nothing of the test's own."""
  return {"PATH": os.environ["PATH"], "HOME": str(nodes.folder)}


def plain(text: str, folder: pathlib.Path) -> list[str]:
  """Lines without what differs from run to run: paths are those of an installed r2ccd, and times, processes and lives are words."""
  for path, shown in ((f"{folder}/run0", "/run/r2cc"), (f"{folder}/n0.textproto", "/etc/r2cc/r2ccd.textproto"),
                      (f"{folder}/tls0", "/etc/r2cc/tls")):
    text = text.replace(path, shown)
  for pattern, word in _DIFFERS:
    text = re.sub(pattern, word, text)
  return [line.strip() for line in text.splitlines()]
