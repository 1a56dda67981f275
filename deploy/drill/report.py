"""The drill as a person sees it: a time line while it runs, then faults, a chart of the goodput, and the verdict."""

from typing import Sequence

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.status import Status
from rich.table import Table
from rich.text import Text

from deploy.drill import comparison
from deploy.drill.chart import Chart, draw
from deploy.drill.comparison import Comparison
from deploy.drill.record import Fault, Mark, Phase, Record
from testing.lab import stalls
from testing.lab.stalls import Window

BAR_S = 0.5
BAR_COLUMNS = 40
# What an emulated machine moves.
MEGABITS_BELOW_GBPS = 0.2


class LiveReport:
  """Prints each event when it happens; on a terminal also the goodput of this moment."""

  def __init__(self, console: Console, record: Record):
    self._console, self._record = console, record
    self._status: Status | None = None

  def headline(self, text: str) -> None:
    self._console.print(f"[bold]{escape(text)}[/bold]", highlight=False, soft_wrap=True)

  def mark(self, mark: Mark) -> None:
    self._line(mark.time_ns, f"[bold cyan]{mark.letter}[/bold cyan] {escape(mark.text)}")

  def detail(self, text: str) -> None:
    self._console.print(f"             [dim]{escape(text)}[/dim]", highlight=False, soft_wrap=True)

  def fault_measured(self, fault: Fault) -> None:
    parts = [] if fault.stall_ms is None else [f"stall {fault.stall_ms:.0f} ms"]
    if fault.replayed_bytes is not None:
      parts.append(f"{mebibytes(fault.replayed_bytes)} replayed in {fault.failovers} failovers")
    parts.append(f"goodput {' -> '.join(rate_text(gbps) for gbps in (fault.before_gbps, fault.during_gbps, fault.after_gbps))} a node")
    self.detail(f"{fault.rail}: " + ", ".join(parts))

  def phase_measured(self, phase: Phase, goodput_gbps: float) -> None:
    self.detail(f"{phase.name}: {rate_text(goodput_gbps)} a node for {phase.window.seconds:.1f} s{rail_shares(phase)}")

  def tick(self, phase: str, goodput_gbps: float) -> None:
    if not self._console.is_terminal:
      return
    text = f"{escape(phase)}  {rate_text(goodput_gbps)} a node"
    if self._status is None:
      self._status = self._console.status(text)
      self._status.start()
    self._status.update(text)

  def stop(self) -> None:
    if self._status is not None:
      self._status.stop()
      self._status = None

  def _line(self, time_ns: int, markup: str) -> None:
    self._console.print(f"[dim]{(time_ns - self._record.begin_ns) / 1e9:6.1f} s[/dim]  {markup}", highlight=False, soft_wrap=True)


def mebibytes(size: int) -> str:
  return f"{size / (1 << 20):.1f} MiB"


def rate_text(gbps: float) -> str:
  return f"{gbps:.2f} Gb/s" if gbps >= MEGABITS_BELOW_GBPS else f"{1000 * gbps:.1f} Mb/s"


def rail_shares(phase: Phase) -> str:
  total = sum(phase.rail_bytes.values())
  if total == 0:
    return ""
  return "; n0 sent over " + ", ".join(f"{rail} {100 * size / total:.0f} %" for rail, size in sorted(phase.rail_bytes.items()))


def fault_table(record: Record) -> Table:
  table = Table(title="Rails lost under the running job", title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
  for heading in ("rail", "fault", "stall", "replayed", "before", "at first", "after"):
    table.add_column(heading, justify="left" if heading in ("rail", "fault") else "right")
  for fault in record.faults:
    table.add_row(str(fault.rail), fault.kind, "?" if fault.stall_ms is None else f"{fault.stall_ms:.0f} ms",
                  "not reported" if fault.replayed_bytes is None else mebibytes(fault.replayed_bytes),
                  *(rate_text(gbps) for gbps in (fault.before_gbps, fault.during_gbps, fault.after_gbps)))
  return table


def comparison_table(compared: Comparison) -> Table:
  title = f"{compared.lost} of n0's {compared.rails} rails lost, rails of {comparison.RATE}: an all_reduce of {comparison.SIZE}"
  table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
  for heading, justify in (("", "left"), ("time", "right"), ("of the bound", "right"), ("", "left")):
    table.add_column(heading, justify=justify)
  longest = max(compared.seconds.values())
  for name, seconds, style in [("lower bound of any schedule", compared.bound_s, "dim")] + [
      (way, seconds, "green" if way == comparison.DEGRADED else "yellow") for way, seconds in compared.seconds.items()]:
    table.add_row(name, f"{1000 * seconds:.0f} ms", f"{seconds / compared.bound_s:.2f}",
                  Text("█" * round(BAR_COLUMNS * seconds / longest), style=style))
  return table


def goodput_chart(record: Record, width: int) -> Text:
  """Goodput of a node over the whole drill, with the letters of the time line below."""
  rows = record.all_rows()
  times = [row.time_ns for row in rows]
  if not times:
    return Text("no traffic was seen", style="dim")
  window = Window(record.begin_ns, max(max(times), record.end_ns) + 1)
  # A bar covers an all_reduce and the check after it.
  columns = max(20, min(width - 12, int(window.seconds / BAR_S)))
  bins = stalls.goodput_bins_gbps(rows, window, columns)
  span_ns = window.end_ns - window.begin_ns
  marks = [(min(columns - 1, int((mark.time_ns - window.begin_ns) * columns / span_ns)), mark.letter) for mark in record.marks]
  if record.rate_gbps is None and max(bins) < MEGABITS_BELOW_GBPS:
    return draw(Chart(values=[1000 * value for value in bins], marks=marks, seconds=window.seconds, line=None, unit="Mb/s"))
  return draw(Chart(values=bins, marks=marks, seconds=window.seconds, line=record.rate_gbps, unit="Gb/s"))


def print_end(console: Console, record: Record, reasons: Sequence[str]) -> None:
  console.print()
  if record.faults:
    console.print(fault_table(record))
  console.print(Text("Goodput of a node, while an all_reduce runs", style="bold"))
  console.print(goodput_chart(record, console.width), soft_wrap=True)
  if record.comparison is not None:
    console.print()
    console.print(comparison_table(record.comparison))
  console.print()
  for reason in reasons[1:]:
    console.print(f"also: {escape(reason)}", highlight=False, soft_wrap=True)
  verdict = f"[bold red]FAIL[/bold red]  {escape(reasons[0])}" if reasons else f"[bold green]PASS[/bold green]  {escape(praise(record))}"
  console.print(verdict, highlight=False, soft_wrap=True)


def praise(record: Record) -> str:
  known = [fault.stall_ms for fault in record.faults if fault.stall_ms is not None]
  worst = f", the longest stall {max(known):.0f} ms" if known else ""
  return (f"{record.iterations()} all_reduces of {len(record.reports)} jobs through {len(record.faults)} lost rails: "
          f"every element right, no late write{worst}")
