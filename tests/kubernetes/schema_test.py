"""The check itself: each kind of mistake is found, by its name and place."""

import copy
import unittest

from tests.kubernetes import schema

POD = {
    "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {"a": "b"}},
    "spec": {"hostNetwork": True, "containers": [{"name": "c", "image": "i", "command": ["x"],
                                                  "ports": [{"containerPort": 1}],
                                                  "resources": {"limits": {"memory": "1Mi"}}}]},
}


class SchemaTest(unittest.TestCase):

  def setUp(self):
    self.pod = copy.deepcopy(POD)
    self.container = self.pod["spec"]["containers"][0]

  def test_a_sound_object_has_no_problem(self):
    self.assertEqual(schema.problems(self.pod), [])

  def test_unknown_fields_at_any_depth(self):
    self.pod["sepc"] = {}
    self.container["securityContext"] = {"readonlyRootFilesystem": True}
    self.assertEqual(schema.problems(self.pod), ["Pod: unknown field sepc",
                                                 "Pod.spec.containers[0].securityContext: unknown field readonlyRootFilesystem"])

  def test_wrong_types(self):
    self.pod["spec"]["hostNetwork"] = "true"
    self.container["ports"][0]["containerPort"] = True
    self.container["command"] = "x"
    self.container["resources"]["limits"]["memory"] = 1
    self.assertEqual(len(schema.problems(self.pod)), 4)

  def test_missing_fields(self):
    del self.container["name"]
    self.assertEqual(schema.problems(self.pod), ["Pod.spec.containers[0]: name is missing"])

  def test_unknown_kinds(self):
    self.assertEqual(schema.problems({"apiVersion": "apps/v1", "kind": "Pod"}), [])
    self.assertEqual(schema.problems({"apiVersion": "apps/v1", "kind": "DeamonSet"}), ["apps/v1 DeamonSet: there is no such kind"])
    self.assertEqual(schema.problems({}), ["None None: there is no such kind"])
