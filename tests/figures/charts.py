"""Charts as SVG: the same bytes from the same tables and the same matplotlib."""

import io
from typing import Sequence

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

RENDERER = f"matplotlib {matplotlib.__version__}"

# One colour for one scheme, in every chart; they stay apart for those who see no red and green.
COLOURS = {
    "bound": "#000000",
    "ours": "#0072b2",
    "R2CC-AllReduce": "#e69f00",
    "Balance": "#cc79a7",
    "migration only": "#d55e00",
    "OptCC": "#009e73",
    "direct": "#8c564b",
    "AdapCC-like": "#56b4e9",
    "stock NCCL with restart": "#7f7f7f",
    "published": "#444444",
}
OTHERS = ("#56b4e9", "#e69f00", "#8c564b", "#7f7f7f", "#bcbd22")

STYLE = {
    "svg.hashsalt": "r2cc",
    "svg.fonttype": "none",
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "grid.linewidth": 0.5,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "axes.titlesize": 9,
    "figure.constrained_layout.use": True,
}


def colour(scheme: str, position: int = 0) -> str:
  """The scheme's own colour, or the `position`-th of those that belong to no scheme."""
  return COLOURS.get(scheme, OTHERS[position % len(OTHERS)])


def panels(count: int, width: float = 3.2, height: float = 2.8, **kwargs: object) -> tuple[Figure, Sequence[Axes]]:
  """`count` charts side by side."""
  with pyplot.rc_context(STYLE):
    figure, axes = pyplot.subplots(1, count, figsize=(width * count, height), squeeze=False, **kwargs)
  return figure, axes[0]


def legend_next_to(axes: Axes) -> None:
  """The legend to the right of the last panel, where it covers nothing."""
  axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))


def svg(figure: Figure) -> str:
  """The chart's file; the figure is closed."""
  text = io.StringIO()
  with pyplot.rc_context(STYLE):
    figure.savefig(text, format="svg", metadata={"Date": None, "Creator": RENDERER})
  pyplot.close(figure)
  # matplotlib ends some lines with a space.
  return "\n".join(line.rstrip() for line in text.getvalue().splitlines()) + "\n"
