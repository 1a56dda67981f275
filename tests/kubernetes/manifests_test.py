"""Every kustomization: it is what Kubernetes knows, and says what must stand in it."""

import pathlib
import shutil
import subprocess
import tempfile
import unittest

from bazel import unittest_main
from tests.kubernetes import manifests
from tests.kubernetes import schema

# Together they are all that stands in deploy/kubernetes.
WATCHDOG_S = 10  # of the unit
KUSTOMIZATIONS = ("base", "cluster", "conditions", "job", "rdma", "store_etcd", "store_r2ccd", "tls_files", "tls_secret")


class ManifestsTest(unittest.TestCase):

  def setUp(self):
    if reason := manifests.missing():
      self.skipTest(reason)
    source = pathlib.Path(unittest_main.test_args()[0]).parent.parent
    self.tree = manifests.copy_tree(source, pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())))

  def render(self, name: str):
    return manifests.render(self.tree / name)

  def test_none_is_left_out(self):
    self.assertEqual(tuple(sorted(path.parent.name for path in self.tree.glob("*/kustomization.yaml"))), KUSTOMIZATIONS)

  def test_each_fits_the_models_of_kubernetes(self):
    for name in KUSTOMIZATIONS:
      objects = self.render(name)
      self.assertTrue(objects)
      for one in objects:
        self.assertEqual(schema.problems(one), [], name)

  def test_a_planted_unknown_field_is_found(self):
    path = self.tree / "base" / "daemonset.yaml"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("hostNetwork: true", "hostNetwork: true\n      hostNetwrok: true"), encoding="utf-8")
    found = [problem for one in self.render("cluster") for problem in schema.problems(one)]
    self.assertEqual(found, ["DaemonSet.spec.template.spec: unknown field hostNetwrok"])

  def test_a_newer_kubectl_makes_the_same_of_them(self):
    newer = shutil.which("kubectl")
    if newer is None:
      self.skipTest("needs a newer kubectl in the PATH")
    for name in KUSTOMIZATIONS:
      for old, new in zip(self.render(name), manifests.render(self.tree / name, pathlib.Path(newer)), strict=True):
        # The hash in a name is made otherwise.
        self.assertEqual(old["kind"], new["kind"], name)
        self.assertEqual(old.get("spec") if old["kind"] != "Job" else None, new.get("spec") if new["kind"] != "Job" else None, name)
        self.assertEqual(old.get("data"), new.get("data"), name)

  def test_nobody_gets_a_token_or_a_role(self):
    for name in KUSTOMIZATIONS:
      if name == "conditions":
        continue
      objects = self.render(name)
      self.assertFalse([one["kind"] for one in objects if "Role" in one["kind"]], name)
      for one in objects:
        if one["kind"] == "ServiceAccount":
          self.assertIs(one["automountServiceAccountToken"], False)
      for workload, spec in manifests.pod_specs(objects).items():
        self.assertIs(spec["automountServiceAccountToken"], False, workload)

  def test_conditions_may_write_the_status_of_nodes_and_events_and_no_more(self):
    objects = self.render("conditions")
    rules = {(one["kind"], one["metadata"].get("namespace")): [(rule["resources"], rule["verbs"]) for rule in one["rules"]]
             for one in objects if one["kind"] in ("Role", "ClusterRole")}
    self.assertEqual(rules, {("ClusterRole", None): [(["nodes"], ["get", "list"]), (["nodes/status"], ["patch"])],
                             ("Role", "default"): [(["events"], ["create"])]})
    account = {"kind": "ServiceAccount", "name": "r2cc-conditions", "namespace": "r2cc"}
    for one in objects:
      if one["kind"].endswith("Binding"):
        self.assertEqual(one["subjects"], [account])
    deployment = manifests.find(objects, "Deployment", "r2cc-conditions")["spec"]
    self.assertEqual(deployment["replicas"], 1)
    term, = (deployment["template"]["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
             ["nodeSelectorTerms"])
    self.assertEqual(term["matchExpressions"], [{"key": "nvidia.com/gpu.present", "operator": "DoesNotExist"}], "no token beside a job")
    policy = manifests.find(objects, "NetworkPolicy", "r2cc-store-from-conditions")["spec"]
    store = manifests.find(self.render("store_r2ccd"), "Deployment", "r2cc-store")["spec"]["template"]["metadata"]["labels"]
    self.assertEqual(policy["podSelector"]["matchLabels"], store)
    self.assertEqual(policy["ingress"][0]["from"], [{"podSelector": {"matchLabels": deployment["template"]["metadata"]["labels"]}}])

  def test_no_workload_gets_more_than_it_needs(self):
    for name in KUSTOMIZATIONS:
      for workload, spec in manifests.pod_specs(self.render(name)).items():
        self.assertTrue(spec["securityContext"]["runAsNonRoot"], workload)
        self.assertEqual(spec["securityContext"]["seccompProfile"], {"type": "RuntimeDefault"}, workload)
        for forbidden in ("hostPID", "hostIPC", "shareProcessNamespace"):
          self.assertNotIn(forbidden, spec, workload)
        for container in [*spec.get("initContainers", []), *spec["containers"]]:
          context = container["securityContext"]
          self.assertIs(context["allowPrivilegeEscalation"], False)
          self.assertIs(context["readOnlyRootFilesystem"], True)
          self.assertEqual(context["capabilities"]["drop"], ["ALL"])
          self.assertNotIn("privileged", context)
          hands_over = container["name"] == "directories"
          self.assertEqual(context["capabilities"].get("add", []), ["CHOWN"] if hands_over else [])
          self.assertEqual(context.get("runAsUser"), 0 if hands_over else None)

  def test_the_daemon_is_where_a_node_needs_it(self):
    daemon_set = manifests.find(self.render("base"), "DaemonSet", "r2ccd")["spec"]
    self.assertEqual(daemon_set["updateStrategy"], {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}})
    spec = daemon_set["template"]["spec"]
    self.assertEqual(spec["priorityClassName"], "system-node-critical")
    self.assertEqual(spec["tolerations"], [{"operator": "Exists"}])
    self.assertIs(spec["hostNetwork"], True)
    self.assertEqual(spec["dnsPolicy"], "ClusterFirstWithHostNet")
    self.assertEqual(spec["terminationGracePeriodSeconds"], 5)
    container, = spec["containers"]
    self.assertNotIn("lifecycle", container)
    self.assertNotIn("cpu", container["resources"]["limits"])
    for probe in ("startupProbe", "readinessProbe"):
      self.assertEqual(container[probe]["exec"]["command"], ["/usr/bin/r2ccctl", "health"])
      # It answers within a second.
      self.assertGreater(container[probe]["timeoutSeconds"], 1)
    paths = {volume["hostPath"]["path"]: volume["hostPath"]["type"] for volume in spec["volumes"] if "hostPath" in volume}
    self.assertEqual(paths, {path: "DirectoryOrCreate" for path in ("/run/r2cc", "/run/r2cc-control", "/var/lib/r2cc")})

  def test_the_probes_restart_a_pod_by_the_measure_of_the_watchdog(self):
    for workload, spec in manifests.pod_specs(self.render("cluster")).items():
      container, = spec["containers"]
      probe = container["livenessProbe"]
      self.assertEqual(probe["exec"]["command"], ["/usr/bin/r2ccctl", "health", "--within", str(WATCHDOG_S)], workload)
      self.assertGreater(probe["timeoutSeconds"], WATCHDOG_S, workload)
      self.assertEqual(probe["failureThreshold"], 2, workload)

  def test_only_nodes_reach_the_store(self):
    for name, cidr in (("store_r2ccd", "192.0.2.0/24"), ("cluster", "10.0.0.0/8")):
      objects = self.render(name)
      policy = manifests.find(objects, "NetworkPolicy", "r2cc-store")["spec"]
      labels = manifests.find(objects, "Deployment", "r2cc-store")["spec"]["template"]["metadata"]["labels"]
      self.assertEqual(policy["podSelector"]["matchLabels"], labels, name)
      self.assertEqual(policy["policyTypes"], ["Ingress", "Egress"])
      self.assertEqual(policy["ingress"], [{"from": [{"ipBlock": {"cidr": cidr}}], "ports": [{"port": 7460, "protocol": "TCP"}]}])
      self.assertEqual(policy["egress"], [])
      budget = manifests.find(objects, "PodDisruptionBudget", "r2cc-store")["spec"]
      self.assertEqual((budget["selector"]["matchLabels"], budget["maxUnavailable"]), (labels, 1))

  def test_a_job_reads_and_writes_nothing_of_the_node(self):
    spec = manifests.pod_specs(self.render("job"))["Job/r2cc-example"]
    host = {volume["name"]: volume["hostPath"] for volume in spec["volumes"] if "hostPath" in volume}
    self.assertEqual(host, {"r2ccd": {"path": "/run/r2cc", "type": "Directory"}}, "not the control socket's")
    for container in [*spec["initContainers"], *spec["containers"]]:
      for mount in container["volumeMounts"]:
        self.assertTrue(mount.get("readOnly") or mount["name"] not in host, mount)

  def test_names_that_refer_to_each_other_are_the_same(self):
    for store, tls in (("store_r2ccd", "tls_files"), ("store_etcd", "tls_secret")):
      cluster = self.tree / "cluster" / "kustomization.yaml"
      text = cluster.read_text(encoding="utf-8")
      chosen = text.replace("../store_r2ccd", f"../{store}").replace("../tls_files", f"../{tls}")
      cluster.write_text(chosen if store == "store_r2ccd" else chosen.partition("# Without store_r2ccd")[0], encoding="utf-8")
      objects = self.render("cluster")
      maps = {one["metadata"]["name"] for one in objects if one["kind"] == "ConfigMap"}
      named = set()
      for spec in manifests.pod_specs(objects).values():
        for volume in spec["volumes"]:
          named |= {volume["configMap"]["name"]} if "configMap" in volume else set()
          named |= {source["configMap"]["name"] for source in volume.get("projected", {}).get("sources", [])}
      self.assertEqual(named, maps)
      cluster.write_text(text, encoding="utf-8")

  def test_rdma_asks_for_devices_and_changes_nothing_else(self):
    plain, with_devices = (manifests.pod_specs(self.render(name))["DaemonSet/r2ccd"] for name in ("base", "rdma"))
    limits = with_devices["containers"][0]["resources"]["limits"]
    self.assertEqual(limits.pop("rdma/hca_shared_devices_a"), "1")
    self.assertEqual(plain, with_devices)

  def test_a_kustomization_that_is_wrong_is_refused(self):
    (self.tree / "base" / "kustomization.yaml").write_text("resources: [nowhere.yaml]\n", encoding="utf-8")
    with self.assertRaises(subprocess.CalledProcessError) as refused:
      self.render("base")
    self.assertIn("nowhere.yaml", refused.exception.stderr)
