"""The alert rules and the dashboard use metrics that exist, and each alert has its two cases."""

import json
import pathlib
import re
import unittest

from deploy.monitoring import queries

_HERE = pathlib.Path(__file__).parent


class MonitoringTest(unittest.TestCase):

  @classmethod
  def setUpClass(cls):
    cls.metrics = queries.metrics_of_page(pathlib.Path("docs/reference/metrics.md").read_text(encoding="utf-8"))
    cls.rules = (_HERE / "r2cc.rules.yml").read_text(encoding="utf-8")
    cls.tests = "".join((_HERE / name).read_text(encoding="utf-8") for name in ("r2cc.rules.test.yml", "r2cc.rules.days.test.yml"))
    cls.dashboard = (_HERE / "r2cc-dashboard.json").read_text(encoding="utf-8")

  def test_alerts_and_panels_use_metrics_that_exist(self):
    self.assertGreater(len(self.metrics), 40)
    used = {**{f"alert {name}": [query] for name, query in queries.alerts(self.rules).items()}, **queries.panels(self.dashboard)}
    for where, asked in used.items():
      for query in asked:
        found = queries.names(query, self.metrics)
        if not found:
          self.assertIn("up{", query, where)
        self.assertEqual(found - set(self.metrics), set(), where)

  def test_each_alert_has_a_case_that_fires_and_one_that_does_not(self):
    alerts = queries.alerts(self.rules)
    self.assertEqual(len(alerts), self.rules.count("- alert: "))
    self.assertEqual(sorted(alerts), sorted(set(re.findall(r"alertname: (\w+)", self.tests))))
    for name in alerts:
      cases = re.findall(rf"alertname: {name}\n        exp_alerts:( \[\])?$", self.tests, re.MULTILINE)
      self.assertEqual(sorted(cases), ["", " []"], name)

  def test_each_alert_has_advice(self):
    for part in self.rules.split("- alert: ")[1:]:
      name = part.split("\n")[0]
      self.assertRegex(part, r"severity: (page|ticket)\n", name)
      self.assertRegex(part, r"summary: \".+\"\n", name)
      self.assertRegex(part, r"action: \".+\"\n", name)

  def test_the_dashboard_is_one_that_grafana_takes(self):
    dashboard = json.loads(self.dashboard)
    for field in ("title", "uid", "schemaVersion", "panels", "templating", "time"):
      self.assertIn(field, dashboard)
    variables = {variable["name"] for variable in dashboard["templating"]["list"]}
    ids = [panel["id"] for panel in dashboard["panels"]]
    self.assertEqual(len(ids), len(set(ids)))
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in dashboard["panels"]]
    self.assertEqual(len(places), len(set(places)))
    for panel in dashboard["panels"]:
      self.assertTrue(panel["targets"], panel["title"])
      for variable in re.findall(r"\$\{?(\w+)", json.dumps(panel)):
        self.assertIn(variable, variables | {"1"}, panel["title"])

  def test_how_queries_are_read(self):
    metrics = {"r2cc_a_seconds": "histogram", "r2cc_b_count": "gauge"}
    self.assertEqual(queries.names('rate(r2cc_a_seconds_bucket{x="y"}[5m]) + r2cc_b_count', metrics), {"r2cc_a_seconds", "r2cc_b_count"})
    self.assertEqual(queries.names("r2cc_c_total", metrics), {"r2cc_c_total"})
