"""The manifests in the hands of a real API server: it takes them, admits their pods, and refuses what nobody there may do."""

import copy
import json
import pathlib
import shutil
import tempfile
import unittest

from bazel import unittest_main
from testing.lab.processes import Processes, wait_until
from tests.kubernetes import api_server
from tests.kubernetes import manifests

R2CCD = "system:serviceaccount:r2cc:r2ccd"
NODE = "gpu-7"
# Generous: each wait ends as soon as what it waits for is there.
_PATIENCE_S = 60
# Of Kubernetes: what system-node-critical and system-cluster-critical are worth.
NODE_CRITICAL, CLUSTER_CRITICAL = 2_000_001_000, 2_000_000_000


class ApiServerTest(unittest.TestCase):

  @classmethod
  def setUpClass(cls):
    if reason := api_server.missing():
      raise unittest.SkipTest(reason)
    cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="r2cc-api-", dir="/tmp")))
    cls.tree = manifests.copy_tree(pathlib.Path(unittest_main.test_args()[0]).parent.parent, cls.folder)
    cls.server = cls.enterClassContext(api_server.ApiServer(cls.folder))
    # Kubernetes 1.20 does not know policy/v1, which came with 1.21.
    store = cls.tree / "store_r2ccd" / "kustomization.yaml"
    store.write_text(store.read_text(encoding="utf-8").replace("  - pod_disruption_budget.yaml\n", ""), encoding="utf-8")
    for name in ("cluster", "job", "conditions"):
      applied = cls.server.kubectl("apply", "-k", cls.tree / name)
      if applied.returncode != 0:
        raise RuntimeError(applied.stderr)
    cls.make("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}})
    # What controllers do in each namespace: an account, and a token for whoever does not forbid it.
    accounts = "/api/v1/namespaces/r2cc/serviceaccounts"
    account = cls.make(accounts, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"},
                                  "secrets": [{"name": "default-token"}]})
    of = {"kubernetes.io/service-account.name": "default", "kubernetes.io/service-account.uid": account["metadata"]["uid"]}
    cls.make("/api/v1/namespaces/r2cc/secrets", {
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token", "data": {"token": "eA=="},
        "metadata": {"name": "default-token", "annotations": of}})

  @classmethod
  def make(cls, path: str, thing: dict) -> dict:
    status, answer = cls.server.ask("POST", path, thing)
    if status != 201:
      raise RuntimeError(f"{path}: {answer}")
    return answer

  def admit(self, path: str, name: str) -> dict:
    """A pod as the controller of the workload would make it; what the API server makes of it."""
    status, workload = self.server.ask("GET", path)
    self.assertEqual(status, 200, workload)
    template = workload["spec"]["template"]
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": copy.deepcopy(template["spec"]),
           "metadata": {"name": name, "labels": template["metadata"]["labels"]}}
    status, admitted = self.server.ask("POST", "/api/v1/namespaces/r2cc/pods", pod)
    self.assertEqual(status, 201, admitted)
    self.addCleanup(self.server.ask, "DELETE", f"/api/v1/namespaces/r2cc/pods/{name}?gracePeriodSeconds=0")
    return admitted["spec"]

  def test_the_daemon_set_and_its_pod_are_admitted(self):
    status, daemon_set = self.server.ask("GET", "/apis/apps/v1/namespaces/r2cc/daemonsets/r2ccd")
    self.assertEqual(status, 200, daemon_set)
    self.assertEqual(daemon_set["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"], "10%")
    spec = self.admit("/apis/apps/v1/namespaces/r2cc/daemonsets/r2ccd", "r2ccd-of-gpu-7")
    self.assertEqual(spec["priority"], NODE_CRITICAL)
    self.assertEqual({volume["name"] for volume in spec["volumes"]}, {"run", "control", "state", "config", "tls"}, "no token was added")
    rendered = manifests.pod_specs(manifests.render(self.tree / "cluster"))["DaemonSet/r2ccd"]
    both = [one["initContainers"] + one["containers"] for one in (rendered, spec)]
    for mine, admitted in zip(*both, strict=True):
      self.assertEqual(mine["securityContext"], admitted["securityContext"])
      self.assertEqual(mine["volumeMounts"], admitted["volumeMounts"])

  def test_the_pods_of_store_and_job_are_admitted(self):
    self.assertEqual(self.admit("/apis/apps/v1/namespaces/r2cc/deployments/r2cc-store", "store")["priority"], CLUSTER_CRITICAL)
    job = self.admit("/apis/batch/v1/namespaces/r2cc/jobs/r2cc-example", "example")
    self.assertEqual({volume["name"] for volume in job["volumes"]}, {"plugin", "r2ccd", "nccl"}, "no token was added")
    status, service = self.server.ask("GET", "/api/v1/namespaces/r2cc/services/r2cc-store")
    self.assertEqual((status, service["spec"]["clusterIP"]), (200, "None"))

  def test_a_pod_that_does_not_forbid_it_gets_a_token(self):
    # Or the tests above could not fail.
    careless = self.make("/api/v1/namespaces/r2cc/pods", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "careless"},
                                                          "spec": {"containers": [{"name": "c", "image": "i"}]}})
    self.assertEqual([volume["secret"]["secretName"] for volume in careless["spec"]["volumes"]], ["default-token"])

  def test_the_account_of_r2ccd_may_do_nothing(self):
    patch = {"metadata": {"labels": {"touched": "yes"}}}
    condition = {"status": {"conditions": [{"type": "R2CCRailDegraded", "status": "True"}]}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    forbidden = [
        ("GET", "/api/v1/nodes", None), ("PATCH", f"/api/v1/nodes/{NODE}", patch), ("PATCH", f"/api/v1/nodes/{NODE}/status", condition),
        ("GET", "/api/v1/namespaces/r2cc/secrets", None), ("GET", "/api/v1/namespaces/r2cc/configmaps/r2ccd-config", None),
        ("PATCH", "/api/v1/namespaces/r2cc/configmaps/r2ccd-config", patch), ("GET", "/api/v1/namespaces/r2cc/pods", None),
        ("POST", "/api/v1/namespaces/r2cc/pods", pod), ("POST", "/api/v1/namespaces/r2cc/pods/r2ccd-x/exec?command=/bin/sh", None),
        ("PATCH", "/apis/apps/v1/namespaces/r2cc/daemonsets/r2ccd", patch),
        ("POST", "/api/v1/namespaces/r2cc/serviceaccounts/r2ccd/token", {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
                                                                         "spec": {}}),
    ]
    for method, path, body in forbidden:
      status, answer = self.server.ask(method, path, body, user=R2CCD)
      self.assertEqual(status, 403, f"{method} {path}: {answer}")
      self.assertIn(R2CCD, answer["message"])
    # Somebody may, or these refusals would say nothing.
    self.assertEqual(self.server.ask("PATCH", f"/api/v1/nodes/{NODE}", patch)[0], 200)
    self.assertEqual(self.server.ask("PATCH", f"/api/v1/nodes/{NODE}/status", condition)[0], 200)

  def test_the_account_of_conditions_may_do_what_it_does_and_no_more(self):
    account = "system:serviceaccount:r2cc:r2cc-conditions"
    condition = {"status": {"conditions": [{"type": "R2CCRailDegraded", "status": "True", "reason": "RailDegraded", "message": "rail1",
                                            "lastHeartbeatTime": "2026-11-27T10:00:00Z", "lastTransitionTime": "2026-11-27T10:00:00Z"}]}}
    event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "gpu-7.1", "namespace": "default"}, "type": "Warning",
             "involvedObject": {"kind": "Node", "name": NODE, "uid": NODE}, "reason": "R2CCRailDegraded", "message": "rail1"}
    for method, path, body, status in (
        ("GET", f"/api/v1/nodes/{NODE}", None, 200), ("GET", "/api/v1/nodes?limit=16", None, 200),
        ("PATCH", f"/api/v1/nodes/{NODE}/status", condition, 200),
        ("POST", "/api/v1/namespaces/default/events", event, 201), ("POST", "/api/v1/namespaces/r2cc/events", event, 403),
        ("PATCH", f"/api/v1/nodes/{NODE}", {"spec": {"unschedulable": True}}, 403),
        ("GET", "/api/v1/namespaces/r2cc/secrets", None, 403), ("GET", "/api/v1/namespaces/default/events", None, 403)):
      self.assertEqual(self.server.ask(method, path, body, user=account)[0], status, f"{method} {path}")

  def test_r2cc_conditions_writes_the_condition_and_an_event(self):
    """The program itself, with a token of its account, about a node one of whose NICs is not there."""
    _, daemon, ctl = (str(pathlib.Path(argument).resolve()) for argument in unittest_main.test_args())
    status, answer = self.server.ask("POST", "/api/v1/namespaces/r2cc/serviceaccounts/r2cc-conditions/token",
                                     {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})
    self.assertEqual(status, 201, answer)
    # Kubernetes 1.20 keeps the writers of a Node's fields only once it was applied by the server.
    node_file = self.folder / "node.json"
    node_file.write_text(json.dumps({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "gpu-8", "labels": {"rack": "3"}}}),
                         encoding="ascii")
    applied = self.server.kubectl("apply", "--server-side", "-f", node_file)
    self.assertEqual(applied.returncode, 0, applied.stderr)
    account = self.folder / "account"
    account.mkdir()
    (account / "token").write_text(answer["status"]["token"], encoding="ascii")
    shutil.copy(self.server.certificate, account / "ca.crt")
    config = self.folder / "r2ccd.textproto"
    config.write_text('node: "gpu-8" listen: "127.0.0.1:0" http { listen: "127.0.0.1:0" }\n'
                      'nics { name: "rail0" address: "127.7.9.1" } nics { name: "rail1" interface: "nothere0" }\n', encoding="utf-8")
    processes = self.enterContext(Processes(self.folder))
    directories = ["--run_dir", str(self.folder / "run"), "--state_dir", str(self.folder / "state")]
    r2ccd = processes.start("r2ccd", [daemon, "--config", str(config), *directories])
    self.assertTrue(wait_until((self.folder / "run" / "r2ccd.sock").exists, _PATIENCE_S, 0.1), r2ccd.errors())
    conditions = processes.start("conditions", [ctl, *directories[:2], "conditions", "--api-server", self.server.address, "--account",
                                                str(account)])

    def condition() -> dict:
      _, node = self.server.ask("GET", "/api/v1/nodes/gpu-8")
      return next((one for one in node["status"].get("conditions", []) if one["type"] == "R2CCRailDegraded"), {})

    self.assertTrue(wait_until(lambda: condition().get("status") == "True", _PATIENCE_S, 0.2), (condition(), conditions.errors()))
    self.assertEqual(condition()["reason"], "RailDegraded")
    _, node = self.server.ask("GET", "/api/v1/nodes/gpu-8")
    # Outside a pod its account has no file `namespace`.
    writers = {entry["manager"] for entry in node["metadata"]["managedFields"] if "R2CCRailDegraded" in json.dumps(entry["fieldsV1"])}
    self.assertEqual(writers, {"r2cc-conditions"})
    self.assertIn("rail1 FAILED", condition()["message"])

    def reported() -> bool:
      _, listed = self.server.ask("GET", "/api/v1/namespaces/default/events")
      return any((event["source"].get("component"), event["reason"], event["involvedObject"]["name"]) ==
                 ("r2cc-conditions", "R2CCRailDegraded", "gpu-8") for event in listed["items"])

    self.assertTrue(wait_until(reported, _PATIENCE_S, 0.2), conditions.errors())
    self.assertEqual(conditions.errors(), "", "it may do all that it does")
    self.assertTrue(conditions.is_alive())

  def test_an_unknown_field_is_refused_by_its_name(self):
    path = self.folder / "planted.yaml"
    text = (self.tree / "base" / "daemonset.yaml").read_text(encoding="utf-8")
    path.write_text(text.replace("hostNetwork: true", "hostNetwrok: true"), encoding="utf-8")
    refused = self.server.kubectl("apply", "--dry-run=client", "-f", path)
    self.assertNotEqual(refused.returncode, 0)
    self.assertIn("hostNetwrok", refused.stderr)

  def test_an_invalid_manifest_is_not_admitted(self):
    path = self.folder / "wrong.yaml"
    text = (self.tree / "base" / "daemonset.yaml").read_text(encoding="utf-8")
    another = text.replace("name: r2ccd\n  namespace", "name: wrong\n  namespace", 1)
    path.write_text(another.replace("maxUnavailable: 10%", "maxUnavailable: 0"), encoding="utf-8")
    refused = self.server.kubectl("apply", "-f", path)
    self.assertNotEqual(refused.returncode, 0)
    self.assertIn("maxUnavailable", refused.stderr)
