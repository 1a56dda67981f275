"""What the daemons' events say about how soon a fault was on every page, and what was accused wrongly. Pure."""

import dataclasses
from typing import Any, Sequence

BAD_STATES = ("DEGRADED", "SUSPECT", "FAILED")

Event = dict[str, Any]


def of_nic(event: Event, nic: str) -> bool:
  return f"{event.get('node')}/{event.get('nic')}" == nic


@dataclasses.dataclass(frozen=True)
class Found:
  """When one node's daemon knew that a NIC has failed, and when its page said so."""
  verdict_ns: int
  page_ns: int


def found(events: Sequence[Event], nic: str, since_ns: int) -> Found | None:
  """What the daemon that told `events` did about the failed `nic`: the verdict, and the plan that follows it."""
  failed = next((event for event in events if event["kind"] == "nic-state" and of_nic(event, nic) and event.get("to_state") == "FAILED" and
                 int(event["monotonic_ns"]) >= since_ns), None)
  if failed is None:
    return None
  published = next((event for event in events if event["kind"] == "plan-published" and int(event["sequence"]) > int(failed["sequence"])),
                   None)
  return None if published is None else Found(int(failed["monotonic_ns"]), int(published["monotonic_ns"]))


def page_ns(events: Sequence[Event], nic: str, since_ns: int) -> int | None:
  """When the page of one node, whose daemon told `events`, first said that `nic` has failed."""
  seen = found(events, nic, since_ns)
  return None if seen is None else seen.page_ns


def stations_ms(fault_ns: int, kernel_ns: int | None, nodes: Sequence[Found], own: int) -> dict[str, float]:
  """How far the news of a fault had come after how many milliseconds. `kernel`: the kernel's word was out (left out where it says nothing);
  `own_verdict`, `own_page`: of the node that has the NIC, `nodes[own]`; `verdicts`: every daemon knew; `pages`: every page said it."""
  stations = {"own_verdict": nodes[own].verdict_ns, "own_page": nodes[own].page_ns,
              "verdicts": max(node.verdict_ns for node in nodes), "pages": max(node.page_ns for node in nodes)}
  known = {"kernel": kernel_ns} if kernel_ns is not None else {}
  return {name: (when_ns - fault_ns) / 1e6 for name, when_ns in (known | stations).items()}


def state_of(events: Sequence[Event], nic: str) -> str | None:
  """The last that this daemon told of `nic`; None: it never changed, as far as this one knows."""
  return next((event["to_state"] for event in reversed(events) if event["kind"] == "nic-state" and of_nic(event, nic)), None)


@dataclasses.dataclass(frozen=True)
class Broken:
  """A fault that was made: `nic` had one from `from_ns` until, and for what it took to settle, `until_ns`."""
  nic: str
  from_ns: int
  until_ns: int


def false_verdicts(events: Sequence[Event], node: str, faults: Sequence[Broken], since_ns: int = 0) -> list[str]:
  """One line for each time that the daemon of `node` accused a NIC of its own that had no fault."""
  lines = []
  for event in events:
    when_ns = int(event["monotonic_ns"])
    if event["kind"] != "nic-state" or event.get("node") != node or event.get("to_state") not in BAD_STATES or when_ns < since_ns:
      continue
    if not any(of_nic(event, fault.nic) and fault.from_ns <= when_ns <= fault.until_ns for fault in faults):
      lines.append(f"{node}/{event['nic']} {event['to_state']}: {event.get('message', '')}")
  return lines
