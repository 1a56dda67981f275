"""The rule files say what the health tools read, and decide as they should."""

import json
import pathlib
import re
import tomllib
import types
import unittest

_HERE = pathlib.Path(__file__).resolve().parent
_REPORTER = _HERE.parents[1] / "client/health/health_reporter.h"


# The configuration of node-problem-detector's custom plugin monitor, as published: fields by their JSON names, with their types. Go ignores
# a field that it does not know, and takes the default instead.
_MONITOR = {"plugin": str, "pluginConfig": dict, "source": str, "conditions": list, "rules": list, "metricsReporting": bool}
_PLUGIN_CONFIG = {"invoke_interval": str, "timeout": str, "max_output_length": int, "concurrency": int,
                  "enable_message_change_based_condition_update": bool, "skip_initial_status": bool}
_CONDITION = {"type": str, "reason": str, "message": str}
_RULE = {"type": str, "condition": str, "reason": str, "path": str, "args": list, "timeout": str, "invoke_interval": str}


def seconds(text: str) -> float:
  """A duration of Go, of one unit."""
  number, unit = re.fullmatch(r"([0-9.]+)(ms|s|m|h)", text).groups()
  return float(number) * {"ms": 0.001, "s": 1, "m": 60, "h": 3600}[unit]


def problems_of_monitor(monitor: dict) -> list[str]:
  """Why node-problem-detector would not run a file, or would ignore a part of it."""
  problems = []

  def check(thing: dict, fields: dict[str, type], where: str) -> None:
    for name, value in thing.items():
      if name not in fields:
        problems.append(f"{where}: no field {name}")
      elif type(value) is not fields[name]:
        problems.append(f"{where}: {name} is no {fields[name].__name__}")

  check(monitor, _MONITOR, "file")
  check(monitor["pluginConfig"], _PLUGIN_CONFIG, "pluginConfig")
  for kind, fields in (("conditions", _CONDITION), ("rules", _RULE)):
    for one in monitor[kind]:
      check(one, fields, kind)
  if monitor["plugin"] != "custom":
    problems.append("it is not for the custom plugin monitor")
  conditions = [condition["type"] for condition in monitor["conditions"]]
  for rule in monitor["rules"]:
    if rule["type"] not in ("permanent", "temporary"):
      problems.append(f"rules: type {rule['type']}")
    if rule["type"] == "permanent" and rule["condition"] not in conditions:
      problems.append(f"rules: {rule['condition']} has no default condition")
    if seconds(rule["timeout"]) > seconds(monitor["pluginConfig"]["timeout"]):
      problems.append(f"rules: {rule['timeout']} is more than the timeout of all")
    if not all(type(argument) is str for argument in rule["args"]):
      problems.append("rules: an argument is no text")
  return problems


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

  def test_the_problem_detector_knows_each_field(self):
    text = (_HERE / "r2cc-npd.json").read_text(encoding="utf-8")
    monitor = json.loads(text)
    self.assertEqual(problems_of_monitor(monitor), [])
    # All rules run one after another before the next begin.
    self.assertLess(sum(seconds(rule["timeout"]) for rule in monitor["rules"]), seconds(monitor["pluginConfig"]["invoke_interval"]))
    # Otherwise a condition that stays true keeps the message of its first fault.
    self.assertIs(monitor["pluginConfig"]["enable_message_change_based_condition_update"], True)
    for planted in (('"timeout": "3s"', '"timeout": "6s"'), ('"custom"', '"journald"'), ('"concurrency"', '"parallel"'), ("80", '"80"'),
                    ('"condition": "R2CCNoRail"', '"condition": "Other"'), ('"permanent"', '"lasting"')):
      self.assertNotEqual(problems_of_monitor(json.loads(text.replace(*planted))), [], planted)

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
