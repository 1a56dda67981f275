"""What a container is told by its profile: rules for other machines and for capabilities that it lacks are left out."""

import unittest

from tests.kubernetes import runtime

ALLOW, REFUSE = "SCMP_ACT_ALLOW", "SCMP_ACT_ERRNO"


def _rule(name: str, action: str, includes=None, excludes=None) -> dict:
  return {"names": [name], "action": action, "args": None, "comment": "", "includes": includes or {}, "excludes": excludes or {}}


class SeccompTest(unittest.TestCase):

  def names(self, rules: list[dict], capabilities: list[str]) -> list[str]:
    profile = {"defaultAction": REFUSE, "defaultErrnoRet": 38, "syscalls": rules}
    result = runtime.seccomp(profile, capabilities)
    self.assertEqual((result["defaultAction"], result["defaultErrnoRet"]), (REFUSE, 38))
    for rule in result["syscalls"]:
      self.assertEqual(set(rule), {"names", "action"}, "what the runtime does not know")
    return [rule["names"][0] for rule in result["syscalls"]]

  def test_rules_of_other_machines(self):
    rules = [_rule("a", ALLOW), _rule("b", ALLOW, {"arches": ["arm64"]}), _rule("c", ALLOW, {"arches": ["x32", "amd64"]}),
             _rule("d", ALLOW, None, {"arches": ["amd64"]})]
    self.assertEqual(self.names(rules, []), ["a", "c"])

  def test_rules_by_capabilities(self):
    rules = [_rule("with", ALLOW, {"caps": ["CAP_CHOWN"]}), _rule("without", REFUSE, None, {"caps": ["CAP_CHOWN"]})]
    self.assertEqual(self.names(rules, []), ["without"])
    self.assertEqual(self.names(rules, ["CHOWN"]), ["with"])
