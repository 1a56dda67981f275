"""What the alert rules and the dashboard ask Prometheus."""

import json
import re

_METRIC = re.compile(r"\b(?:r2cc|process)_[a-z0-9_]+\b")
# What Prometheus appends to a histogram's name.
_HISTOGRAM = re.compile(r"_(bucket|sum|count)$")


def metrics_of_page(text: str) -> dict[str, str]:
  """docs/reference/metrics.md's metrics by name: their types."""
  return dict(re.findall(r"^\| `(\w+)` \| (\w+) \|", text, re.MULTILINE))


def names(query: str, metrics: dict[str, str]) -> set[str]:
  """The metrics that a query of PromQL uses, histograms by their own names."""
  found = set()
  for name in _METRIC.findall(query):
    base = _HISTOGRAM.sub("", name)
    found.add(base if metrics.get(base) == "histogram" else name)
  return found


def alerts(rules: str) -> dict[str, str]:
  """Expressions of the rules by the names of their alerts."""
  return dict(re.findall(r"^      - alert: (\w+)\n        expr: (.+)$", rules, re.MULTILINE))


def panels(dashboard: str) -> dict[str, list[str]]:
  """Queries of the dashboard by the titles of their panels."""
  return {panel["title"]: [target["expr"] for target in panel["targets"]] for panel in json.loads(dashboard)["panels"]}
