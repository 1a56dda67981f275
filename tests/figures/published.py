"""What the papers publish, with where it stands. Nothing here is ours, and nothing here goes into the models but the healthy figures,
which tests/figures/*.cc name again where they calibrate.
"""

import dataclasses

R2CC = "Wang et al., R2CC, arXiv 2512.25059"
R2CC_ARTIFACT = "R2CC's artifact, github.com/r2cc-project/R-2CCL, examples/cloudlab_r7525"
R2CC_README = "R2CC's artifact, github.com/r2cc-project/R-2CCL, README"
OPTCC = "Chen et al., OptCC, arXiv 2606.01680"
FORMULA = "the papers' formulas"


@dataclasses.dataclass(frozen=True)
class Value:
  """One published number: as text, so that its digits stay."""
  text: str
  source: str

  @property
  def number(self) -> float:
    return float(self.text)


def overhead_percent(healthy: float, failed: float) -> str:
  """From two published rates of work to what a failure costs in time."""
  return f"{(healthy / failed - 1) * 100:.2f}"


# Table name -> {(key cells of the row..., column): Value}.
PUBLISHED: dict[str, dict[tuple[str, ...], Value]] = {}


def _bounds() -> dict[tuple[str, ...], Value]:
  losses = ("1/8", "1/4", "1/2", "3/4")
  rows = {
      "3": ("1.0435 1.1071 1.1429", "1.0909 1.2500 1.3333", "1.5000 1.7500 2", "3.0000 3.2500 4"),
      "4": ("1.0323 1.0952 1.1429", "1.0667 1.2222 1.3333", "1.3333 1.6667 2", "2.6667 3.0000 4"),
      "5": ("1.0256 1.0893 1.1429", "1.0526 1.2083 1.3333", "1.2500 1.6250 2", "2.5000 2.8750 4"),
      "8": ("1.0159 1.0816 1.1429", "1.0323 1.1905 1.3333", "1.1429 1.5714 2", "2.2857 2.7143 4"),
      "16": ("1.0079 1.0762 1.1429", "1.0159 1.1778 1.3333", "1.0667 1.5333 2", "2.1333 2.6000 4"),
      "64": ("1.0020 1.0726 1.1429", "1.0039 1.1693 1.3333", "1.0159 1.5079 2", "2.0317 2.5238 4"),
      "1024": ("1.0001 1.0715 1.1429", "1.0002 1.1668 1.3333", "1.0010 1.5005 2", "2.0020 2.5015 4"),
  }
  values = {}
  for members, cells in rows.items():
    for loss, cell in zip(losses, cells):
      for column, text in zip(("bound", "r2cc_allreduce", "balance"), cell.split()):
        values[members, loss, column] = Value(text, FORMULA)
  return values


PUBLISHED["bounds"] = _bounds()

# "Within 2 to 6 % of the fault-free ring", the state of the art "up to 57 %": the ends of the ranges, put where they belong.
PUBLISHED["optcc"] = {
    ("64", "1/2", "optcc_percent"): Value("6", OPTCC),
    ("8", "1/2", "r2cc_allreduce_percent"): Value("57", OPTCC),
}

PUBLISHED["testbed"] = {
    ("healthy", "-", "ratio"): Value("1.000", R2CC_ARTIFACT),
    ("migration only", "-", "ratio"): Value("2.005", R2CC_ARTIFACT),  # 4.07 s of 2.03 s, test 08
    ("Balance", "-", "ratio"): Value("1.498", R2CC_ARTIFACT),
    ("R2CC-AllReduce", "1", "ratio"): Value("1.599", R2CC_ARTIFACT),
    ("R2CC-AllReduce", "2", "ratio"): Value("1.458", R2CC_ARTIFACT),
    ("R2CC-AllReduce", "4", "ratio"): Value("1.376", R2CC_ARTIFACT),
    ("R2CC-AllReduce", "8", "ratio"): Value("1.341", R2CC_ARTIFACT),
    ("R2CC-AllReduce", "16", "ratio"): Value("1.329", R2CC_ARTIFACT),
}

PUBLISHED["testbed_traffic"] = {
    ("healthy", "degraded_mib"): Value("7032", R2CC_README),
    ("healthy", "others_mib"): Value("7032", R2CC_README),
    ("Balance", "degraded_mib"): Value("7078", R2CC_README),
    ("Balance", "others_mib"): Value("7078", R2CC_README),
    ("R2CC-AllReduce", "degraded_mib"): Value("6150", R2CC_README),
    ("R2CC-AllReduce", "others_mib"): Value("8224", R2CC_README),  # the mean of 8230 and 8218
}

# A NIC cut in the middle of an AllReduce: the share of its data that it had received by then, and how long that AllReduce took.
PUBLISHED["testbed_hit"] = {
    ("0.260", "migration_s"): Value("3.539", R2CC_ARTIFACT),  # test 01: 601 of 2312 MB
    ("0.677", "migration_s"): Value("2.974", R2CC_ARTIFACT),  # test 02: 1566 of 2312 MB
}


def _training() -> dict[tuple[str, ...], Value]:
  values = {}

  def add(job: str, healthy: float, source: str, rates: dict[str, float], columns: tuple[str, ...] = ("overhead_percent",)) -> None:
    for scheme, rate in rates.items():
      for column in columns:
        values[job, scheme, column] = Value(overhead_percent(healthy, rate), source)

  add("2.7B data parallel 2x8", 314618, R2CC, {
      "AdapCC-like": 289565,
      "migration only": 300151,
      "Balance": 310516,
      "R2CC-AllReduce": 312394,
      "R2CC-AllReduce two failures": 310756,
  }, ("overhead_percent", "fitted_batch_percent"))
  add("2.7B data parallel 4x8", 752405, R2CC_README, {"R2CC-AllReduce": 750627})
  add("13B tensor and pipeline parallel 2x8", 8340, R2CC, {
      "migration only": 8233,
      "Balance": 8309,
      "Balance two failures": 8257,
  })
  return values


PUBLISHED["training"] = _training()

PUBLISHED["failures"] = {
    ("512", "1", "r2cc_percent"): Value("1.5", R2CC),
    ("512", "10", "r2cc_percent"): Value("4.3", R2CC),
    ("512", "1", "ours_percent"): Value("1.5", R2CC),
    ("512", "10", "ours_percent"): Value("4.3", R2CC),
}
