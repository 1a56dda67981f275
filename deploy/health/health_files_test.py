"""The rule files say what the health tools read, and decide as they should."""

import json
import pathlib
import re
import tomllib
import types
import unittest

_HERE = pathlib.Path(__file__).resolve().parent
_REPORTER = _HERE.parents[1] / "client/health/health_reporter.h"


def cordons(rules: dict, event: types.SimpleNamespace, labels: dict[str, str]) -> bool:
  """What fault-quarantine makes of an event: one rule set whose expressions are all true. The rules use no more of CEL."""
  node = types.SimpleNamespace(metadata=types.SimpleNamespace(labels=labels))

  def true(match: dict) -> bool:
    python = match["expression"].replace("&&", " and ").replace("!(", "not (")
    return bool(eval(python, {"__builtins__": {}}, {"event": event, "node": node, "true": True}))  # pylint: disable=eval-used

  return any(rule["cordon"]["shouldCordon"] and all(true(match) for match in rule["match"]["all"]) for rule in rules["rule-sets"])


class HealthFiles(unittest.TestCase):

  def test_each_condition_of_the_problem_detector_has_one_permanent_rule(self):
    monitor = json.loads((_HERE / "r2cc-npd.json").read_text(encoding="utf-8"))
    conditions = [condition["type"] for condition in monitor["conditions"]]
    self.assertEqual([rule["condition"] for rule in monitor["rules"]], conditions)
    self.assertEqual({rule["type"] for rule in monitor["rules"]}, {"permanent"})
    self.assertEqual(monitor["pluginConfig"]["max_output_length"], 80)
    for rule in monitor["rules"]:
      self.assertEqual(rule["args"][:2], ["ready", "--npd"])

  def test_a_masked_fault_does_not_drain_its_node(self):
    rules = tomllib.loads((_HERE / "nvsentinel-fault-quarantine.toml").read_text(encoding="utf-8"))
    covered = {"r2cc.io/masks-nic-faults": "true"}
    monitor = types.SimpleNamespace(agent="nic-health-monitor", componentClass="NIC", checkName="InfiniBandStateCheck", isFatal=True)
    self.assertFalse(cordons(rules, monitor, covered))
    self.assertTrue(cordons(rules, monitor, {}))
    self.assertTrue(cordons(rules, monitor, {"r2cc.io/masks-nic-faults": "false"}))
    ours = types.SimpleNamespace(agent="r2cc", componentClass="NIC", checkName="R2CCNic", isFatal=False)
    self.assertFalse(cordons(rules, ours, covered))
    ours = types.SimpleNamespace(agent="r2cc", componentClass="NIC", checkName="R2CCNoRail", isFatal=True)
    self.assertTrue(cordons(rules, ours, covered))

  def test_the_names_are_those_that_are_sent(self):
    text = (_HERE / "nvsentinel-fault-quarantine.toml").read_text(encoding="utf-8")
    names = dict(re.findall(r'k(Agent|NodeCheck)\[\] = "(\w+)"', _REPORTER.read_text(encoding="utf-8")))
    self.assertIn(f"event.agent == '{names['Agent']}' && event.checkName == '{names['NodeCheck']}'", text)
