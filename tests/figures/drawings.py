"""What each chart shows, from the tables of the same subject."""

from typing import Callable, Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tests.figures.charts import colour, legend_next_to, panels
from tests.figures.tables import Table

Tables = Mapping[str, Table]


def bounds(tables: Tables) -> Figure:
  """T over T0 against the number of members, one panel for each loss."""
  table = tables["bounds"]
  losses = list(dict.fromkeys(table.column("loss")))
  figure, axes = panels(len(losses))
  for ax, loss in zip(axes, losses):
    rows = table.where(loss=loss)
    members = rows.numbers("p")
    ax.plot(members, rows.numbers("balance"), color=colour("Balance"), label="Balance")
    ax.plot(members, rows.numbers("r2cc_allreduce"), color=colour("R2CC-AllReduce"), label="R2CC-AllReduce, K to infinity")
    ax.plot(members, rows.numbers("r2cc_allreduce_k64_simulated"), "x", color=colour("R2CC-AllReduce"), label="the same, K = 64, simulated")
    ax.plot(members, rows.numbers("bound"), color=colour("bound"), label="lower bound")
    ax.plot(members, rows.numbers("ours"), "o", markersize=4, color=colour("ours"), label="ours, simulated")
    ax.set(xscale="log", title=f"loss of {loss}", xlabel="members")
    ax.set_xticks(members, [f"{member:g}" for member in members], minor=False)
    ax.minorticks_off()
  axes[0].set_ylabel("time / ring without a fault")
  legend_next_to(axes[-1])
  return figure


def optcc(tables: Tables) -> Figure:
  """Overhead over the fault-free ring against the number of members."""
  table = tables["optcc"]
  losses = ["1/8", "1/2"]
  figure, axes = panels(len(losses), width=4.2)
  for ax, loss in zip(axes, losses):
    rows = table.where(loss=loss)
    members = rows.numbers("p")
    for scheme, column in (("Balance", "balance_percent"), ("R2CC-AllReduce", "r2cc_allreduce_percent"), ("OptCC", "optcc_percent"),
                           ("ours", "ours_percent"), ("bound", "bound_percent")):
      ax.plot(members, rows.numbers(column), color=colour(scheme), label=scheme, marker="" if scheme == "bound" else ".",
              linestyle="--" if scheme == "bound" else "-")
    ax.axhspan(2, 6, color=colour("published"), alpha=0.15, linewidth=0, label="OptCC as published: 2 to 6 %")
    ax.set(xscale="log", yscale="symlog", title=f"loss of {loss}", xlabel="members", ylim=(0, 150))
    ax.set_xticks(members, [f"{member:g}" for member in members])
    ax.set_yticks([0, 1, 2, 6, 20, 57, 100], ["0", "1", "2", "6", "20", "57", "100"])
    ax.minorticks_off()
  axes[0].set_ylabel("over the ring without a fault, %")
  legend_next_to(axes[-1])
  return figure


def optcc_port(tables: Tables) -> Figure:
  """How much short segments matter, with the two published points."""
  table = tables["optcc_port"]
  figure, (ax,) = panels(1, width=5)
  segments = table.numbers("segments")
  ax.plot(segments, table.numbers("paper"), ":", color=colour("OptCC"), label="OptCC, bound x (k+1)/k")
  ax.plot(segments, table.numbers("optcc"), color=colour("OptCC"), label="OptCC, closed form")
  ax.plot(segments, table.numbers("optcc_simulated"), "x", color=colour("OptCC"), label="OptCC, simulated")
  ax.plot(segments, table.numbers("direct"), color=colour("ours"), label="direct owner shares")
  ax.plot(segments, table.numbers("bound"), "--", color=colour("bound"), label="lower bound")
  for ratio, pieces in ((1.279, "512 KiB"), (1.468, "4 MiB")):
    ax.axhline(ratio, color=colour("published"), linestyle=":")
    ax.annotate(f"published, pieces of {pieces}", (1, ratio), xytext=(0, 2), textcoords="offset points", fontsize=8)
  ax.set(xscale="log", xlabel="segments", ylabel="time / ring without a fault", title="5 members, one with half its bandwidth",
         ylim=(1.2, 2.6))
  ax.set_xticks([1, 2, 4, 8, 16, 32, 64], ["1", "2", "4", "8", "16", "32", "64"])
  ax.minorticks_off()
  legend_next_to(ax)
  return figure


def alpha(tables: Tables) -> Figure:
  """Distance from the bound against the message's size, half the bandwidth lost, where each message costs."""
  table = tables["alpha"].where(loss="1/2", alpha="a message")
  members = ["5", "16", "64", "1024"]
  figure, axes = panels(len(members), sharey=True)
  for ax, count in zip(axes, members):
    rows = table.where(p=count)
    sizes = rows.numbers("size_mib")
    for scheme, column in (("Balance", "balance_ratio_to_bound"), ("R2CC-AllReduce", "r2cc_allreduce_ratio_to_bound"),
                           ("OptCC", "optcc_ratio_to_bound"), ("direct", "direct_ratio_to_bound")):
      ax.plot(sizes, rows.numbers(column), marker=".", color=colour(scheme), label=scheme)
    ax.plot(sizes, rows.numbers("ratio_to_bound"), "o", fillstyle="none", markersize=9, color=colour("ours"), label="chosen")
    ax.set(xscale="log", yscale="log", title=f"{count} members", xlabel="message, MiB")
    ax.set_xticks(sizes, [f"{size:g}" for size in sizes])
    ax.set_yticks([1, 1.5, 2, 4, 8, 16, 32], ["1", "1.5", "2", "4", "8", "16", "32"])
    ax.minorticks_off()
  axes[0].set_ylabel("time / lower bound")
  legend_next_to(axes[-1])
  return figure


def _bars(ax: Axes, title: str, labels: list[str], values: list[float], published: list[float], unit: str) -> None:
  at = range(len(labels))
  ax.barh([y + 0.2 for y in at], values, 0.4, color=colour("ours"), label="this model")
  ax.barh([y - 0.2 for y in at], published, 0.4, color=colour("published"), label="published")
  for y, value in zip(at, values):
    ax.annotate(f"{value:.2f}", (max(value, 0), y + 0.2), xytext=(2, 0), textcoords="offset points", va="center", fontsize=7)
  for y, value in zip(at, published):
    if value == value:
      ax.annotate(f"{value:.2f}", (value, y - 0.2), xytext=(2, 0), textcoords="offset points", va="center", fontsize=7)
  ax.set_yticks(list(at), labels)
  ax.invert_yaxis()
  ax.set(xlabel=unit, title=title)
  ax.margins(x=0.12)


def testbed(tables: Tables) -> Figure:
  """The published testbed: time of an AllReduce, and of the one that was hit."""
  table = tables["testbed"]
  figure, axes = panels(1, width=6, height=3.4)
  labels = [scheme if chunks == "-" or scheme == "ours" else f"{scheme}, K = {chunks}"
            for scheme, chunks in zip(table.column("scheme"), table.column("chunks"))]
  _bars(axes[0], "3 servers, 2 GPUs and 3 rails each, one rail lost, 4 GiB", labels, table.numbers("ratio"),
        table.numbers("ratio_published"), "time / healthy")
  legend_next_to(axes[0])
  return figure


def training(tables: Tables) -> Figure:
  """What a fault costs an iteration, by scheme."""
  jobs = list(dict.fromkeys(tables["training"].column("job")))
  drawn = [(job, column) for job in jobs for column in ("overhead_percent", "fitted_batch_percent")
           if any(tables["training"].where(job=job).column(column))]
  figure, axes = panels(len(drawn), width=4.2, height=3.4)
  for ax, (job, column) in zip(axes, drawn):
    table = tables["training"].where(job=job)
    rows = [row for row in table.rows if "fault" not in row[1]]
    table = Table(table.name, table.columns, rows)
    title = job.replace("tensor and pipeline parallel", "tensor + pipeline") + ("; fitted batch" if column.startswith("fitted") else "")
    _bars(ax, title, table.column("scheme"), table.numbers(column), table.numbers(f"{column}_published"),
          "overhead, % of a healthy iteration")
  legend_next_to(axes[-1])
  return figure


def batch(tables: Tables) -> Figure:
  """Overhead of the 2.7B job on 2x8 GPUs against its batch."""
  table = tables["batch"]
  figure, (ax,) = panels(1, width=6, height=3.4)
  tokens = table.numbers("batch_tokens")
  rows = tables["training"].where(job="2.7B data parallel 2x8")
  for scheme, column in (("AdapCC-like", "adapcc_percent"), ("migration only", "migration_percent"), ("Balance", "balance_percent"),
                         ("R2CC-AllReduce", "r2cc_allreduce_percent"), ("ours", "ours_percent")):
    ax.plot(tokens, table.numbers(column), marker=".", color=colour(scheme), label=scheme)
    published = rows.where(scheme=scheme).numbers("overhead_percent_published")[0]
    if published == published:
      ax.axhline(published, color=colour(scheme), linestyle=":", linewidth=1)
  ax.set(xscale="log", yscale="symlog", xlabel="tokens of an iteration", ylabel="overhead, %", ylim=(-0.05, 30),
         title="2.7B on 2x8 GPUs; dotted: published")
  ax.set_xticks([1 << 16, 1 << 17, 1 << 18, 1 << 19, 1 << 20, 1 << 21], ["64 Ki", "128 Ki", "256 Ki", "512 Ki", "1 Mi", "2 Mi"])
  ax.set_yticks([0, 0.5, 1, 2, 5, 10, 20], ["0", "0.5", "1", "2", "5", "10", "20"])
  ax.minorticks_off()
  legend_next_to(ax)
  return figure


def failures(tables: Tables) -> Figure:
  """Iteration overhead against the number of lost NICs."""
  figure, axes = panels(2, width=4.2, sharey=True)
  for ax, gpus in zip(axes, ("512", "1024")):
    rows = tables["failures"].where(gpus=gpus)
    lost = rows.numbers("failures")
    for scheme, column in (("Balance", "balance_percent"), ("R2CC-AllReduce", "r2cc_percent"), ("ours", "ours_percent")):
      ax.plot(lost, rows.numbers(column), marker=".", color=colour(scheme), label=f"{scheme}, mean of the draws")
    ax.plot(lost, rows.numbers("ours_worst_percent"), ":", color=colour("ours"), label="ours, worst draw")
    published = rows.numbers("ours_percent_published")
    ax.plot(lost, published, "*", color=colour("published"), markersize=9, label="R2CC as published (512 GPUs)")
    ax.set(title=f"{gpus} GPUs", xlabel="lost NICs")
  axes[0].set_ylabel("iteration overhead, %")
  legend_next_to(axes[-1])
  return figure


def weeks(tables: Tables) -> Figure:
  """What 54 days lose to NICs that fail."""
  figure, axes = panels(2, width=4.6)
  for ax, gpus in zip(axes, ("512", "1024")):
    rows = tables["weeks"].where(gpus=gpus)
    for at, scheme in enumerate(dict.fromkeys(rows.column("scheme"))):
      one = rows.where(scheme=scheme)
      ax.plot(one.numbers("times_rate"), one.numbers("lost_percent"), marker=".", color=colour(scheme, at), label=scheme)
    ax.set(xscale="log", yscale="log", title=f"{gpus} GPUs", xlabel="failure rate, times Llama 3's")
    ax.set_xticks([1, 10, 100], ["1", "10", "100"])
  axes[0].set_ylabel("work lost, %")
  legend_next_to(axes[-1])
  return figure


def serving(tables: Tables) -> Figure:
  """What a lost NIC costs a request, while it stays lost and at the moment of the loss."""
  figure, axes = panels(2, width=4.6)

  def bars(ax: Axes, table: Table, column: str) -> None:
    for at, job in enumerate(dict.fromkeys(table.column("job"))):
      rows = table.where(job=job)
      places = [place + 0.2 - 0.4 * at for place in range(len(rows.rows))]
      ax.barh(places, rows.numbers(column), 0.4, color=colour("", at), label=job)
      ax.set_yticks(range(len(rows.rows)), rows.column("scheme"))
    ax.set_xlabel("longer by, %")
    ax.invert_yaxis()

  lost = tables["serving"]
  bars(axes[0], Table(lost.name, lost.columns, [row for row in lost.rows if row[1] != "no fault"]), "request_percent")
  bars(axes[1], tables["serving_outage"], "hit_request_percent")
  axes[0].set_title("a request while a NIC is lost")
  axes[1].set(title="a request that the loss hits", xscale="log")
  legend_next_to(axes[-1])
  return figure


DRAWINGS: dict[str, Callable[[Tables], Figure]] = {
    "bounds": bounds,
    "optcc": optcc,
    "optcc_port": optcc_port,
    "alpha": alpha,
    "testbed": testbed,
    "training": training,
    "batch": batch,
    "failures": failures,
    "weeks": weeks,
    "serving": serving,
}
