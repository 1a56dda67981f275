"""The papers' headline claims in one table: what each says, what the same scheme comes to here, and ours."""

from typing import Mapping

from tests.figures.tables import Table


def _cell(table: Table, column: str, **row: str) -> str:
  found = table.where(**row)
  if len(found.rows) != 1:
    raise ValueError(f"table {table.name}: {len(found.rows)} rows where {row}")
  return found.column(column)[0]


def claims(tables: Mapping[str, Table]) -> Table:
  """From tables that are already joined with what is published."""
  training, failures, optcc = tables["training"], tables["failures"], tables["optcc"]

  def overhead(job: str, scheme: str, column: str = "overhead_percent") -> str:
    return _cell(training, column, job=job, scheme=scheme)

  def adapted_over_r2cc(column: str) -> float:
    job = "2.7B data parallel 2x8"
    return float(overhead(job, "AdapCC-like", column)) / float(overhead(job, "R2CC-AllReduce", column))

  request_percent = {
      scheme: max(tables["serving"].where(scheme=scheme).numbers("request_percent")) for scheme in ("Balance", "ours")
  }
  outage = tables["serving_outage"].where(job="405B over two servers")
  dejavu, r2cc, ours = (float(_cell(outage, "hit_request_percent", scheme=scheme))
                        for scheme in ("DejaVu-like; default time-out", "R2CC", "ours"))
  rows = [
      ["4x8 GPUs training, one NIC lost: overhead, %", "below 1.1 (0.24 with 2.7B)", overhead("2.7B data parallel 4x8", "R2CC-AllReduce"),
       overhead("2.7B data parallel 4x8", "ours")],
      ["2x8 GPUs training: overhead of AdapCC over that of R2CC", "12.18",
       f"{adapted_over_r2cc('overhead_percent'):.2f}; {adapted_over_r2cc('fitted_batch_percent'):.2f} with a fitted batch", ""],
      ["serving, one NIC lost: overhead, %", "below 3", f"{request_percent['Balance']:.3f}", f"{request_percent['ours']:.3f}"],
      ["serving, the request that is hit: DejaVu over R2CC", "47", f"{dejavu / r2cc:.0f}", f"{dejavu / ours:.0f} (DejaVu over ours)"],
  ]
  for gpus in ("512", "1024"):
    for lost in ("1", "10"):
      result = {"1": "1.5", "10": "4.3"}[lost] if gpus == "512" else ""
      nics = f"{lost} lost NIC{'s' if lost != '1' else ''}"
      rows.append([f"{gpus} GPUs, {nics}: iteration overhead, %", result] + [
          f"{_cell(failures, f'{scheme}_percent', gpus=gpus, failures=lost)}; at worst "
          f"{_cell(failures, f'{scheme}_worst_percent', gpus=gpus, failures=lost)}" for scheme in ("r2cc", "ours")])
  rows += [
      ["AllReduce of 64 with half the bandwidth lost by one: over the ring, %", "2 to 6 (OptCC)",
       _cell(optcc, "optcc_percent", p="64", loss="1/2"), _cell(optcc, "ours_percent", p="64", loss="1/2")],
      ["AllReduce of 8 with half the bandwidth lost by one: over the ring, %", "up to 57 (state of the art)",
       _cell(optcc, "r2cc_allreduce_percent", p="8", loss="1/2"), _cell(optcc, "ours_percent", p="8", loss="1/2")],
      ["3 servers, R2CC-AllReduce with K = 4: time over healthy", "1.376",
       _cell(tables["testbed"], "ratio", scheme="R2CC-AllReduce", chunks="4"), tables["testbed"].where(scheme="ours").column("ratio")[0]],
      ["ReduceScatter, AllGather after one of 8 NICs: throughput, % of healthy", "83 to 90",
       _cell(tables["collectives"], "percent_of_healthy", collective="ReduceScatter"), ""],
  ]
  return Table("claims", ["claim", "published", "the_same_scheme_here", "ours"], rows)
