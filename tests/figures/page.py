"""docs/figures/README.md: the tables and charts with what there is to say about them."""

import dataclasses
import textwrap
from typing import Callable, Mapping

from tests.figures.tables import Table, sources

Tables = Mapping[str, Table]

# The charts that are kept next to the page; the command makes the others.
KEPT_CHARTS = ("bounds", "failures", "training")

HEAD = """# Figures

This page recomputes the published figures of papers on AllReduce with lost NICs, with the library in `plan/`. It compares them with this
project's schedules, which it calls `ours`. One command writes everything, the same on every machine:

    ./bazelw run //:figures -- --out DIR

**R2CC on this page is the system of a paper** (Wang et al., arXiv 2512.25059), and R2CC-AllReduce its schedule. This project has the same
name and shares no code with it.

DIR then has the CSV and the chart of each section. This page and three of the charts are also kept here; without `--out` the command
refreshes these.

A column `..._published` has a published value, and `..._difference` the difference of ours; both are empty if nothing was published. Times
that are called simulated are those of step lists run by the flow-level simulator (`plan/simulate`). The others come from closed forms that
are tested against it. The mathematics is in [schedules.md](../internals/schedules.md).

Everything below but the table `stalls` is a model: no GPU, no NIC and no switch took part. The measurements
are in [the results](../results/README.md). The models are calibrated on published figures of runs **without** a fault; a published value of
a run with one is only compared.
"""


@dataclasses.dataclass(frozen=True)
class Section:
  """A heading, its chart (may be none), its tables, and a text that may look up numbers in the tables."""
  title: str
  charts: tuple[str, ...]
  tables: tuple[str, ...]
  text: Callable[[Tables], str]
  only: Mapping[str, Mapping[str, str]] = dataclasses.field(default_factory=dict)  # table -> which of its rows stand on the page


def _worst(table: Table, column: str) -> float:
  return max(number for number in table.numbers(column) if number == number)


def _greatest_difference(table: Table, column: str) -> float:
  return max(abs(number) for number in table.numbers(f"{column}_difference") if number == number)


def _bounds(tables: Tables) -> str:
  table = tables["bounds"]
  in_full = table.where(ours_simulated="in full").column("p")
  r2cc = max(abs(executed / formula - 1) for executed, formula in
             zip(table.numbers("r2cc_allreduce_k64_simulated"), table.numbers("r2cc_allreduce_k64")))
  slack = max(ours / allowed for ours, allowed in zip(table.numbers("ours_over_bound"), table.numbers("ours_allowed_over_bound")))
  beaten = max(ours / min(other, balance) for ours, other, balance in
               zip(table.numbers("ours"), table.numbers("r2cc_allreduce"), table.numbers("balance")))
  return f"""T / T0 for one degraded member, no latency. `ours` is the step list that the planner chose, run by the simulator;
`ours_segments` is its k. `ours_over_bound` is its time over the lower bound, `ours_allowed_over_bound` the goal: 1.02 (k+1)/k. The
largest of ours over the goal is {slack:.3f}, the largest of ours over the better of R2CC-AllReduce (K to infinity) and Balance is
{beaten:.3f}; both must be 1 at most. R2CC-AllReduce's own step list with K = 64 differs from its formula by {r2cc * 100:.2f} % at most.
Up to {in_full[-1]} members every member was simulated, R2CC-AllReduce's always; with 1,024, one of those that do the same stands for all
of ours, which the simulator's tests show to give the same times."""


def _optcc(tables: Tables) -> str:
  table = tables["optcc"]
  large = [row for row in table.rows if int(row[0]) >= 64]
  worst = max(float(row[table.columns.index("optcc_percent")]) for row in large)
  simulated = max(float(row[table.columns.index("optcc_simulated_percent")] or 0) for row in large)
  return f"""The published claim: up to half the bandwidth lost, OptCC stays within 2 to 6 % of the ring without a fault, where the
state of the art is up to 57 % over. With 64 GPUs and more OptCC is here at most {worst:.2f} % over ({simulated:.2f} % as a step list),
and Balance at 100 % with half the bandwidth lost. The 57 % are R2CC-AllReduce's among 8 members one of which lost half: its formula gives
1.5714. The published range was simulated with packets, this table counts bandwidth alone; that may be why it goes below 2 %."""


def _optcc_port(tables: Tables) -> str:
  table = tables["optcc_port"]
  segments, ratios = table.numbers("segments"), table.numbers("paper")
  nearest = [min(zip(segments, ratios), key=lambda point: abs(point[1] - published))[0] for published in (1.279, 1.468)]
  return f"""OptCC's port to NCCL ran on 5 emulated nodes, one with half its bandwidth: 1.279 of the healthy ring with pieces of 512
KiB, 1.468 with 4 MiB, the ring 2.009. How much it summed is not published, so the number of segments is not known. By
the paper's own (k+1)/k the two values belong to about {nearest[0]:.0f} and {nearest[1]:.0f} segments: a ratio of
{nearest[0] / nearest[1]:.1f}, where the pieces' sizes say 8. Our patterns of the same stages fill sooner, since only half a segment's work
sticks out at each end; numbers of segments that are no multiple of four leave one of them alone and are slower."""


def _alpha(tables: Tables) -> str:
  table = tables["alpha"]
  wins = {name: table.column("schedule").count(name) for name in sorted(set(table.column("schedule")))}
  result = ", ".join(f"{name} {count}" for name, count in wins.items())
  ratios = [float(simulated) / float(predicted)
            for simulated, predicted in zip(table.column("simulated_ms"), table.column("predicted_ms")) if simulated]
  return f"""400 Gb/s a member and 5 us: `a step` spends them once, however many transfers a member has under way; `a message` keeps the
port busy with each, one after the other. In-cast is not modelled: many flows into one port share it evenly and lose nothing. Which
schedule wins, with how many segments, and how far it is from the bound (which knows no latency). Of {len(table.rows)} cases: {result}.
The step lists of the winners, where all members were simulated, take {min(ratios):.3f} to {max(ratios):.3f} of the prediction. The
page shows the rows for half the bandwidth lost; the file has all."""


def _testbed(tables: Tables) -> str:
  return f"""3 servers with 2 GPUs and 3 rails of 10 Gb/s each; one server loses a rail; AllReduce of 4 GiB. The only number taken over
is the healthy time, 2.03 s. The schemes' step lists run on that fabric, as they are: a ring of 6 GPUs with a channel a rail, pinned to
rails or over pooled ones. The published runs, on real NICs, are matched within {_greatest_difference(tables["testbed"], "ratio"):.3f}
of the healthy time. `ours` sums inside the servers first, so it moves less than the healthy ring of six.

`testbed_traffic`: what came in over a server's rails, in MiB, with headers as in the published healthy count.

`testbed_hit`: the AllReduce during which the rail dies, after this share of its data. Nobody waits in this model. The published run at
0.26 took what the bandwidth explains; the one at 0.677 took longer by its difference, which is what finding out and moving over cost
there."""


def _collectives(_: Tables) -> str:
  return """4 servers of 8 rails, one rail lost, 4 GiB. Published for "other collectives" with R2CC-Balance: 83 to 90 % of the healthy
throughput. A caller of ReduceScatter or AllGather fixes who owns what, so each member must move its part and 7/8 is the ceiling; 90 %
needs a healthy run that was not limited by its rails."""


def _training(tables: Tables) -> str:
  def at(job: str, scheme: str, column: str) -> float:
    return tables["training"].where(job=job, scheme=scheme).numbers(column)[0]

  small = "2.7B data parallel 2x8"
  return f"""One NIC of one server lost for good (two failures: one of each of two servers). Calibrated on the published healthy tokens/s of
each job and on nothing else. Assumed: gradients travel when the backward pass is over, as 4-byte numbers; each NIC moves 50 GB/s.

**The batch is not published**, and what share of an iteration is communication depends on it. The table uses GPT-3's own batches (1 Mi and
2 Mi tokens). With 4x8 GPUs that gives R2CC-AllReduce {at("2.7B data parallel 4x8", "R2CC-AllReduce", "overhead_percent"):.2f} % where
0.24 % are published. With 2x8 GPUs it gives less than is published for every scheme. What does not depend on the batch is
`overhead_over_balance`: R2CC-AllReduce costs {at(small, "R2CC-AllReduce", "overhead_over_balance"):.2f} of what Balance costs, as published
(0.71 % of 1.32 %). `fitted_batch_percent`, beside `overhead_percent`, is the same job with the batch at which Balance costs what is
published of it. That one number is fitted, on a run with a fault; the others follow: R2CC-AllReduce
{at(small, "R2CC-AllReduce", "fitted_batch_percent"):.2f} % (published 0.71 %), AdapCC-like
{at(small, "AdapCC-like", "fitted_batch_percent"):.2f} % (8.65 %), two failures
{at(small, "R2CC-AllReduce two failures", "fitted_batch_percent"):.2f} % (1.24 %).

`overhead_percent` is against the same scheme without a fault, `overhead_to_nccl_percent` against NCCL's healthy ring. Ours sums inside the
servers and over the rails at the same time; with 2 and 4 servers NVLink, not the rails, sets the pace of that, so one NIC less costs
nothing or next to nothing.

Not reached: *migration only* doubles the busiest rail's load here, as it did on the testbed above (2.005); the published 4.82 % against
Balance's 1.32 % would mean a factor of 1.52, and no public text says why. *13B*: 8,340 tokens/s on 16 H100 are a tenth of what the 2.7B
job computes on as many, so the published job did something that nobody describes; in this model only activations and the embedding's
gradients cross the network, and they are too small a part of such an iteration to cost what is published. AdapCC-like
has no row there: a tensor parallel group cannot spare one of its GPUs."""


def _batch(tables: Tables) -> str:
  table = tables["batch"]
  published = 1.32
  nearest = min(table.rows, key=lambda row: abs(float(row[table.columns.index("balance_percent")]) - published))
  return f"""The 2.7B job on 2x8 GPUs again, for other batches. Near {int(nearest[0]):,} tokens Balance, R2CC-AllReduce and AdapCC-like
all meet their published values at once, so that is what the published run may have used."""


def _failures(tables: Tables) -> str:
  table = tables["failures"]
  at = {(row[0], row[1]): row[table.columns.index("ours_worst_percent")] for row in table.rows}
  mean = {(row[0], row[1]): row[table.columns.index("r2cc_percent")] for row in table.rows}
  checked = [float(cell) for cell in table.column("ours_simulated_over_predicted") if cell]
  limits = tables["share_limit"]
  return f"""GPT 13B, tensor parallel inside the servers, data parallel across them, GPT-3's batch of 2 Mi tokens, nothing overlapped;
compute scaled from the published 2.7B run; 1 us a step and 0.1 us a message. So many NICs are drawn at random, 100 times. Published
for 512 simulated GPUs: 1.5 % with one lost NIC, 4.3 % with ten. Ours costs {at["512", "1"]} % and {at["512", "10"]} % at worst; with
1,024 GPUs, where more of an iteration is communication, {at["1024", "1"]} % and {at["1024", "10"]} %. R2CC-AllReduce comes to
{mean["512", "1"]} % and {mean["512", "10"]} % in the same model, on average: with ten less than published. What the published
simulation counts besides bandwidth is not described.

The step lists behind the first draws of 1 and of 10 failures were simulated, all members: {min(checked):.4f} to {max(checked):.4f} of
the prediction.

`overlap`: one lost NIC where that share of the backward pass hides gradients. What stays visible is what the loss makes longer, so the
overhead falls late.

`share_limit`: the simulated job of the paper is not described, so this is how much of an iteration AllReduce could be before ours costs
what is published: {min(limits.numbers("share_limit_percent")):.0f} % at least."""


def _weeks(tables: Tables) -> str:
  stalls = tables["stalls"]
  longest = _worst(stalls, "worst_ms")
  at = stalls.numbers("worst_ms").index(longest)
  return f"""54 days of the same jobs, with failures at random times at the rate of network faults that Meta saw with Llama 3 (35
interruptions by switches and cables in 54 days of 16,384 GPUs), ten times and a hundred times that; a NIC is repaired after a day;
means of 100 draws. Taken over: stock NCCL's time-out of 58.5 s and 68 minutes of median recovery (R2CC's paper), R2CC's longest
published hit of 1.5 s; ours has the longest stall of `stalls`, {longest:g} ms ({stalls.column("case")[at]}), whichever way the NIC was
lost. Assumed in favour of the others: a restart finds a spare server, AdapCC-like rebuilds at no cost.

`stalls`: what stock NCCL's jobs over the plugin were held up by a fault, the newest measurement of each case. It is the one table that is
measured; `kit/run` (CONTRIBUTING, "On GPUs") writes its source, `./bazelw run //tests/figures:stalls` keeps it."""


def _serving(tables: Tables) -> str:
  table = tables["serving"]
  worst = _worst(table.where(scheme="ours"), "request_percent")
  outage = tables["serving_outage"]
  over = [row.numbers("over_r2cc")[0] for row in (outage.where(scheme="DejaVu-like; default time-out"),
                                                  outage.where(scheme="DejaVu-like; shortest time-out"))]
  return f"""Two ways to serve: 405B with its stages on two servers, and 70B whose prompts' caches go from one server to another.
Published: less than 3 % overhead with one NIC of 8 lost, and 47 times less failure-induced overhead than DejaVu. Here a request takes
{worst:.3f} % longer at most, and the activations and caches that cross the network are so small that even migration alone is far below
3 %. No paper gives healthy figures in numbers or its model's set-up, so nothing could be calibrated: the rows follow from the models'
and the GPU's data sheets.

`serving_outage`: the request that is running when the NIC dies. DejaVu-like waits for a time-out, NCCL's default or the shortest that
NICs allow, and brings the cache back from its copy: {over[0]:.0f} and {over[1]:.1f} times what R2CC's longest published hit of 1.5 s
costs. The published 47 is of that size; which time-out it had is not said."""


def _claims(_: Tables) -> str:
  return """Each row is explained below, with what went into it and what keeps it from the published value. `the same scheme here` is what
the published scheme comes to in these models, `ours` what the planner's choice does."""


SECTIONS = (
    Section("The papers' claims", (), ("claims",), _claims),
    Section("The lower bound, and what reaches it", ("bounds",), ("bounds",), _bounds),
    Section("OptCC's claim", ("optcc",), ("optcc",), _optcc, {"optcc": {"loss": "1/2"}}),
    Section("OptCC's port: short segments decide", ("optcc_port",), ("optcc_port",), _optcc_port),
    Section("With latency: message sizes", ("alpha",), ("alpha",), _alpha, {"alpha": {"loss": "1/2"}}),
    Section("R2CC's testbed", ("testbed",), ("testbed", "testbed_traffic", "testbed_hit"), _testbed),
    Section("Other collectives", (), ("collectives",), _collectives),
    Section("Training", ("training",), ("training",), _training),
    Section("Training: what the batch decides", ("batch",), ("batch",), _batch),
    Section("512 and 1,024 GPUs, 1 to 10 lost NICs", ("failures",), ("failures", "overlap", "share_limit"), _failures),
    Section("Weeks with failures", ("weeks",), ("weeks", "stalls"), _weeks),
    Section("Serving", ("serving",), ("serving", "serving_outage"), _serving),
)


def markdown(table: Table) -> str:
  """The table as GitHub draws it."""
  lines = [[column.replace("_", " ") for column in table.columns], ["---"] * len(table.columns), *table.rows]
  return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def _wrapped(text: str) -> str:
  """The same text in lines of even length: what is looked up has changed them. Links and the like stay whole."""
  return "\n\n".join(textwrap.fill(paragraph, 138, break_long_words=False, break_on_hyphens=False) for paragraph in text.split("\n\n"))


def page(tables: Tables) -> str:
  """The whole page."""
  parts = [HEAD]
  for section in SECTIONS:
    parts.append(f"## {section.title}\n\n{_wrapped(section.text(tables))}\n")
    parts += [f"![{section.title}]({chart}.svg)\n" if chart in KEPT_CHARTS else f"Chart: `{chart}.svg`\n" for chart in section.charts]
    for name in section.tables:
      table = tables[name].where(**section.only.get(name, {}))
      parts.append(f"{markdown(table)}\n\nTable: `{name}.csv`\n")
  parts.append("## Sources\n\n" + "\n".join(f"- {source}" for source in sources(tables.values())) + "\n")
  return "\n".join(parts)
