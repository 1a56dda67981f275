"""What a drill does, step by step. Pure: the runner does it, the report shows it."""

import dataclasses
import enum

from testing.lab.lab import RailId


class Action(enum.Enum):
  """The verbs of a story."""
  START_JOB = "start-job"
  STOP_JOB = "stop-job"
  CUT = "cut"  # the sharpest fault that the lab has: a link down, or on loopback a fail-nic
  HEAL = "heal"
  SILENCE = "silence"  # where the lab can take a cable away without an event
  END_SILENCE = "end-silence"
  FAIL_NIC = "fail-nic"
  RESTORE_NIC = "restore-nic"
  KILL_DAEMON = "kill-daemon"
  START_DAEMON = "start-daemon"
  STAY = "stay"  # let the job run and measure it
  RECOVER = "recover"  # let the job run until it is as fast as when healthy, or the time is over
  REJOIN = "rejoin"  # let the job run until every rail of the first node carries its traffic; that it does not is a failure
  COMPARE = "compare"  # no job runs: half of a node's rails lost, the ring beside the degraded AllReduce


@dataclasses.dataclass(frozen=True)
class Step:
  """One line of a story."""
  action: Action
  rail: RailId | None = None
  node: int | None = None
  phase: str = ""
  seconds: float = 0.0


@dataclasses.dataclass(frozen=True)
class Pace:
  """How long the job stays in each phase. A stall is looked for in the 2 s after a fault, so no fault phase is shorter."""
  healthy_s: float
  fault_s: float
  measured_s: float
  recover_s_max: float
  short_s: float


FULL = Pace(healthy_s=4.0, fault_s=3.0, measured_s=5.0, recover_s_max=8.0, short_s=2.2)
QUICK = Pace(healthy_s=2.5, fault_s=2.2, measured_s=2.5, recover_s_max=6.0, short_s=2.2)
# A rail comes back within a second or two; an emulated machine on a busy one takes a multiple.
REJOIN_S_MAX = 60.0

# Names of the phases that the report's figures come from.
HEALTHY, DEGRADED, RESTORED = "healthy", "degraded", "restored"


def story_steps(pace: Pace, daemons: bool, loopback: bool) -> list[Step]:
  """The story for 4 nodes of 4 rails."""
  first, second, drilled, dead = RailId(0, 1), RailId(1, 1), RailId(2, 2), RailId(1, 0)
  steps = [
      Step(Action.START_JOB),
      Step(Action.STAY, phase=HEALTHY, seconds=pace.healthy_s),
      Step(Action.CUT, rail=first),
      Step(Action.STAY, phase=DEGRADED, seconds=pace.measured_s),
      Step(Action.CUT, rail=second),
      Step(Action.STAY, phase="same rail of a second node", seconds=pace.fault_s),
      Step(Action.HEAL, rail=second),
      Step(Action.HEAL, rail=first),
      Step(Action.RECOVER, seconds=pace.recover_s_max),
      Step(Action.STAY, phase=RESTORED, seconds=pace.measured_s),
  ]
  if daemons and not loopback:
    steps += [
        Step(Action.FAIL_NIC, rail=drilled),
        Step(Action.STAY, phase="operator's drill", seconds=pace.short_s),
        Step(Action.RESTORE_NIC, rail=drilled),
        Step(Action.RECOVER, seconds=pace.recover_s_max),
    ]
  if daemons:
    steps += [
        Step(Action.KILL_DAEMON, node=3),
        Step(Action.STAY, phase="without r2ccd on n3", seconds=pace.fault_s),
        Step(Action.START_DAEMON, node=3),
        Step(Action.STAY, phase="r2ccd is back", seconds=1.5),
    ]
  steps += [
      Step(Action.STOP_JOB),
      Step(Action.CUT, rail=dead),
      Step(Action.START_JOB),
      Step(Action.STAY, phase="born with a dead NIC", seconds=pace.short_s),
      Step(Action.HEAL, rail=dead),
      Step(Action.STAY, phase="its NIC is repaired", seconds=pace.short_s),
      Step(Action.STOP_JOB),
  ]
  # Where rails have no rate the processors are the limit.
  return steps if loopback else steps + [Step(Action.COMPARE)]


def verbs_story_steps(pace: Pace) -> list[Step]:
  """The story for 2 nodes of 2 RDMA rails, which have no daemons and no rate."""
  near, far = RailId(0, 1), RailId(1, 0)
  return [
      Step(Action.START_JOB),
      Step(Action.STAY, phase=HEALTHY, seconds=pace.healthy_s),
      Step(Action.CUT, rail=near),
      Step(Action.STAY, phase=DEGRADED, seconds=pace.measured_s),
      Step(Action.HEAL, rail=near),
      Step(Action.REJOIN, seconds=REJOIN_S_MAX),
      Step(Action.STAY, phase=RESTORED, seconds=pace.measured_s),
      Step(Action.CUT, rail=far),
      Step(Action.STAY, phase="a cable at the other node", seconds=pace.fault_s),
      Step(Action.HEAL, rail=far),
      Step(Action.REJOIN, seconds=REJOIN_S_MAX),
      Step(Action.SILENCE, rail=near),
      Step(Action.STAY, phase="a silent rail", seconds=pace.fault_s),
      Step(Action.END_SILENCE, rail=near),
      Step(Action.REJOIN, seconds=REJOIN_S_MAX),
      Step(Action.STOP_JOB),
      Step(Action.CUT, rail=near),
      Step(Action.START_JOB),
      Step(Action.STAY, phase="born with a dead port", seconds=pace.short_s),
      Step(Action.HEAL, rail=near),
      Step(Action.STAY, phase="its port is repaired", seconds=pace.short_s),
      Step(Action.STOP_JOB),
  ]
