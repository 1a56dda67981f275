"""A real Prometheus scrapes the daemons of a real job: each panel of the dashboard has data, and Prometheus takes each alert rule."""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import textwrap
import urllib.parse

from deploy.monitoring import queries
from testing.lab.lab import RailId
from testing.lab.processes import wait_until
from tests.e2e.cluster_case import PATIENCE_S, ClusterCase

_MONITORING = pathlib.Path(__file__).resolve().parents[2] / "deploy/monitoring"
_PROMETHEUS = "127.0.0.1:9090"
# A program: prints what is at a URL.
_ASK = "import sys, urllib.request; sys.stdout.write(urllib.request.urlopen(sys.argv[1], timeout=10).read().decode())"


class Prometheus(ClusterCase):

  http_everywhere = True

  def setUp(self) -> None:
    for program in ("prometheus", "promtool"):
      if shutil.which(program) is None:
        self.skipTest(f"needs prometheus: {program}")
    super().setUp()
    targets = [f"{self.lab.management_address(node)}:{self.cluster.http_port(node)}" for node in range(self.lab.nodes)]
    shutil.copy(_MONITORING / "r2cc.rules.yml", self.folder)
    config = self.folder / "prometheus.yml"
    config.write_text(textwrap.dedent(f"""\
        global: {{ scrape_interval: 1s, evaluation_interval: 1s }}
        rule_files: [r2cc.rules.yml]
        scrape_configs:
          - job_name: r2ccd
            static_configs: [{{ targets: {json.dumps(targets)} }}]
        """), encoding="utf-8")
    argv = ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={self.folder / 'tsdb'}",
            f"--web.listen-address={_PROMETHEUS}", "--log.level=warn"]
    self.prometheus = self.processes.start("prometheus", self.lab.command(0, argv))

  def get(self, url: str) -> str:
    """From within the network of n0."""
    done = subprocess.run(self.lab.command(0, [sys.executable, "-c", _ASK, url]), capture_output=True, text=True, check=False, timeout=30)
    return done.stdout

  def ask(self, query: str) -> list[dict]:
    text = self.get(f"http://{_PROMETHEUS}/api/v1/query?query={urllib.parse.quote(query)}")
    return json.loads(text)["data"]["result"] if text else []

  def test_each_panel_has_data_and_each_rule_is_taken(self):
    self.assertTrue(wait_until(lambda: len(self.ask("up == 1")) == self.lab.nodes, PATIENCE_S, 0.5), self.prometheus.last_lines())
    self.lab.cut(RailId(1, 1))
    failed = 'r2cc_nic_state{nic="rail1",state="FAILED"} == 1'
    self.assertTrue(wait_until(lambda: bool(self.ask(failed)), PATIENCE_S, 0.5))
    self.assertTrue(wait_until(lambda: bool(self.ask("increase(r2cc_failovers_total[5m]) > 0")), PATIENCE_S, 0.5))
    self.lab.heal(RailId(1, 1))
    self.expect_iterations(3)
    for title, asked in queries.panels((_MONITORING / "r2cc-dashboard.json").read_text(encoding="utf-8")).items():
      for query in asked:
        # A rate takes two scrapes.
        query = query.replace("$job", "r2ccd")
        self.assertTrue(wait_until(lambda q=query: bool(self.ask(q)), 15, 0.5), f"{title}: {query}")
    groups = json.loads(self.get(f"http://{_PROMETHEUS}/api/v1/rules"))["data"]["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    self.assertEqual(len(rules), len(queries.alerts((_MONITORING / "r2cc.rules.yml").read_text(encoding="utf-8"))))
    self.assertEqual({rule["health"] for rule in rules}, {"ok"})
    firing = lambda: {alert["metric"]["alertname"] for alert in self.ask('ALERTS{alertstate=~"pending|firing"}')}
    self.assertTrue(wait_until(lambda: "R2ccInsecure" in firing(), 15, 0.5), "the daemons of this test are insecure")
    self.assertNotIn("R2ccDaemonAbsent", firing())
    longest = self.ask("max_over_time(max(scrape_duration_seconds)[5m:1s])")
    print(f"the longest scrape took {float(longest[0]['value'][1]) * 1000:.1f} ms")
    metrics = self.get(f"http://{self.lab.management_address(0)}:{self.cluster.http_port(0)}/metrics")
    self.assertTrue(re.search(r"^r2cc_node_info\{node=\"n0\"\} 1$", metrics, re.MULTILINE))
    checked = subprocess.run(["promtool", "check", "metrics"], input=metrics, capture_output=True, text=True, check=False, timeout=60)
    self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
    self.cluster.kill_daemon(2)
    self.assertTrue(wait_until(lambda: "R2ccDaemonAbsent" in firing(), PATIENCE_S, 0.5))
