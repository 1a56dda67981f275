"""The manifests' containers, run by runc: in the unpacked image, with the users, mounts, capabilities and the profile that they say.

A stand-in for the kubelet (pod.py) reads the rendered objects. Node and job are in a network namespace.
"""

import copy
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

from bazel import unittest_main
from tests.kubernetes import manifests
from tests.kubernetes import pod
from tests.kubernetes import runtime

# Generous: each wait ends as soon as what it waits for is there.
PATIENCE_S = 30
DAEMON_UID = 64750


def wait_until(there) -> bool:
  end = time.monotonic() + PATIENCE_S
  while not there():
    if time.monotonic() > end:
      return False
    time.sleep(0.05)
  return True


class PodsTest(unittest.TestCase):

  @classmethod
  def setUpClass(cls):
    if reason := manifests.missing() or runtime.missing():
      raise unittest.SkipTest(reason)
    if os.geteuid() != 0:
      raise unittest.SkipTest("needs root: makes namespaces, and becomes other users")
    # In /tmp whatever TEST_TMPDIR says: the path of a Unix socket has room for 107 bytes.
    cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="r2cc-pods-", dir="/tmp")))
    archive = pathlib.Path(unittest_main.test_args()[1]).resolve()
    cls.tree = manifests.copy_tree(pathlib.Path(unittest_main.test_args()[0]).parent.parent, cls.folder)
    cls.root = pod.unpack_image(archive, cls.folder)
    cls.netns = f"r2cc-pods-{os.getpid()}"
    pod.network(cls.netns)
    cls.addClassCleanup(subprocess.run, ["ip", "netns", "delete", cls.netns], check=True)

  def node(self, objects, name="gpu-7.example") -> pod.Node:
    folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="r2cc-node-", dir="/tmp")))
    folder.chmod(0o755)
    return pod.Node(self.root, objects, folder, name, self.netns)

  def make_pod(self, node: pod.Node, spec) -> pod.Pod:
    made = pod.Pod(node, spec, f"pod{id(spec)}-{time.monotonic_ns()}")
    self.addCleanup(made.close)
    return made

  def start(self, node: pod.Node, spec) -> tuple[pod.Pod, subprocess.Popen, pathlib.Path]:
    """A pod of r2ccd, once its startup probe is answered."""
    made = self.make_pod(node, spec)
    for done in made.run_init_containers():
      self.assertEqual((done.returncode, done.stderr), (0, ""))
    container, = spec["containers"]
    log = node.folder / f"log-{time.monotonic_ns()}"
    process = made.start(container, log)
    probe = container["startupProbe"]["exec"]["command"]
    serves = wait_until(lambda: process.poll() is not None or made.execute(container, probe).returncode == 0)
    self.assertTrue(serves and process.poll() is None, log.read_text(encoding="utf-8"))
    return made, process, log

  def test_a_node_and_its_job(self):
    objects = manifests.render(self.tree / "base")
    node = self.node(objects)
    spec = manifests.pod_specs(objects)["DaemonSet/r2ccd"]
    daemon, process, log = self.start(node, spec)
    container, = spec["containers"]

    status = dict(line.split(":\t", 1) for line in
                  pathlib.Path(f"/proc/{daemon.pid(container)}/status").read_text(encoding="ascii").splitlines())
    self.assertEqual(status["Uid"].split(), [str(DAEMON_UID)] * 4)
    self.assertEqual([int(status[name], 16) for name in ("CapEff", "CapPrm", "CapBnd")], [0, 0, 0])
    self.assertEqual((status["NoNewPrivs"], status["Seccomp"]), ("1", "2"))
    for path, mode in (("run/r2cc", 0o755), ("run/r2cc-control", 0o750), ("var/lib/r2cc", 0o750)):
      about = (node.host / path).stat()
      self.assertEqual((about.st_uid, about.st_mode & 0o7777), (DAEMON_UID, mode), path)
    self.assertTrue((node.host / "var/lib/r2cc/state").exists(), "what outlives the pod")

    output = daemon.execute(container, ["/usr/bin/r2ccctl", "-o", "json", "nic", "list"])
    nics = [(view["node"], nic["name"]) for view in json.loads(output.stdout)["nodes"] for nic in view["nics"]]
    self.assertEqual(nics, [(node.name, "eth1"), (node.name, "eth2")])
    # No word of a priority that a pod cannot have, nor of a directory that cannot be written.
    text = log.read_text(encoding="utf-8")
    self.assertNotIn(" warning ", text)
    self.assertNotIn("priority", text)

    job_objects = manifests.render(self.tree / "job")
    job_spec = manifests.pod_specs(job_objects)["Job/r2cc-example"]
    job_node = self.node(job_objects)
    job_node.host = node.host
    job = self.make_pod(job_node, job_spec)
    for done in job.run_init_containers():
      self.assertEqual((done.returncode, done.stderr), (0, ""))
    ranks, = job_spec["containers"]
    done = job.execute(ranks, ranks["command"])
    self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
    self.assertIn("# Wrong elements       : 0 OK", done.stdout)
    self.assertNotIn("warn", done.stderr.lower(), "as of a daemon that is not reached")
    events = daemon.execute(container, ["/usr/bin/r2ccctl", "-o", "json", "events"]).stdout
    attached = [json.loads(line)["kind"] for line in events.splitlines()]
    self.assertEqual(attached.count("job-attached"), 2, events)
    # Who is let into the daemon's pod may steer, and a job finds no socket: a link, by which r2ccctl of 0.2.0 finds it, leads to the
    # container's own directory, which is the image's and empty.
    drain = ["/usr/bin/r2ccctl", "nic", "drain", f"{node.name}/eth1"]
    for words in ([], ["--socket", "/run/r2cc/r2ccd.sock"]):
      refused = job.execute(ranks, drain + words)
      self.assertEqual(refused.returncode, 1)
      self.assertIn("not allowed to open /run/r2cc", refused.stderr)
    self.check_that_a_job_has_no_role(node, job_objects, drain)
    self.assertEqual(daemon.execute(container, drain).returncode, 0)
    # All that it has of the node is read-only.
    denied = job.execute(ranks, ["/usr/bin/r2cc-setup", "directories", "--owner", "1000:1000", "/run/r2cc/mine:0755"])
    self.assertIn("Read-only file system", denied.stderr)

    os.kill(daemon.pid(container), signal.SIGTERM)
    self.assertEqual(process.wait(spec["terminationGracePeriodSeconds"]), 0)
    inode = (node.host / "run/r2cc").stat().st_ino
    # An upgrade: another pod on the same node.
    self.start(node, spec)
    self.assertEqual((node.host / "run/r2cc").stat().st_ino, inode, "jobs have it mounted")

  def check_that_a_job_has_no_role(self, node: pod.Node, objects, drain: list[str]) -> None:
    """Root of a container, and one that asks for the operators' group, with the control socket mounted against all advice."""
    for user, group in ((0, 0), (1000, DAEMON_UID)):
      spec = copy.deepcopy(manifests.pod_specs(objects)["Job/r2cc-example"])
      spec["securityContext"] |= {"runAsNonRoot": False, "runAsUser": user, "runAsGroup": group, "fsGroup": group}
      spec["volumes"].append({"name": "control", "hostPath": {"path": "/run/r2cc-control", "type": "Directory"}})
      ranks, = spec["containers"]
      ranks["volumeMounts"].append({"name": "control", "mountPath": "/run/r2cc-control", "readOnly": True})
      ranks["securityContext"]["capabilities"]["add"] = ["DAC_OVERRIDE"] if user == 0 else []
      job_node = self.node(objects)
      job_node.host = node.host
      job = self.make_pod(job_node, spec)
      for command in (drain, ["/usr/bin/r2ccctl", "status"]):
        refused = job.execute(ranks, command)
        self.assertEqual(refused.returncode, 1, (user, command))
        self.assertIn("has no role on node", refused.stderr)
      lock = job.execute(ranks, ["/usr/bin/r2cc-setup", "directories", "--owner", "0:0", "/run/r2cc-control/mine:0755"])
      self.assertIn("Read-only file system", lock.stderr)

  def test_a_node_of_a_package_is_left_alone(self):
    objects = manifests.render(self.tree / "base")
    node = self.node(objects)
    (node.host / "run/r2cc").mkdir(parents=True)
    os.chown(node.host / "run/r2cc", 998, 998)
    made = self.make_pod(node, manifests.pod_specs(objects)["DaemonSet/r2ccd"])
    done = made.run_init_containers()[-1]
    self.assertEqual(done.returncode, 1)
    self.assertIn("/run/r2cc belongs to user 998", done.stderr)

  def test_a_configuration_that_is_wrong_ends_it_with_its_place(self):
    objects = manifests.render(self.tree / "base")
    manifests.find(objects, "ConfigMap", "r2ccd-config")["data"]["20-mine.textproto"] = "\nlisten: 5\n"
    node = self.node(objects)
    spec = manifests.pod_specs(objects)["DaemonSet/r2ccd"]
    made = self.make_pod(node, spec)
    made.run_init_containers()
    container, = spec["containers"]
    done = made.execute(container, container["command"])
    self.assertEqual(done.returncode, 1)
    self.assertIn("/etc/r2cc/r2ccd.d/20-mine.textproto:2: ", done.stderr)
    asked = made.execute(container, container["livenessProbe"]["exec"]["command"])
    self.assertEqual(asked.returncode, 1)

  def test_nodes_find_each_other_by_the_store_and_certificates_as_files(self):
    self.with_store("tls_files")

  def test_nodes_find_each_other_by_the_store_and_certificates_in_a_secret(self):
    self.with_store("tls_secret")

  def with_store(self, tls: str) -> None:
    folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="r2cc-certs-", dir="/tmp")))
    ctl = self.root / "usr/bin/r2ccctl"
    for words in (["init"], *(["issue", name] for name in ("store", "n0", "n1"))):
      subprocess.run([ctl, "certs", *words, "--dir", folder], check=True, capture_output=True)
    cluster = self.tree / "cluster" / "kustomization.yaml"
    text = cluster.read_text(encoding="utf-8")
    self.addCleanup(cluster.write_text, text, encoding="utf-8")
    cluster.write_text(text.replace("../tls_files", f"../{tls}"), encoding="utf-8")
    objects = manifests.render(self.tree / "cluster")
    cluster.write_text(text, encoding="utf-8")
    read = lambda path: path.read_text(encoding="utf-8")  # pylint: disable=unnecessary-lambda-assignment
    objects.append({"kind": "Secret", "metadata": {"name": "r2cc-store-tls"}, "stringData": {
        "tls.crt": read(folder / "store/node.crt"), "tls.key": read(folder / "store/node.key"), "ca.crt": read(folder / "ca.crt")}})
    if tls == "tls_secret":
      objects.append({"kind": "Secret", "metadata": {"name": "r2ccd-tls"}, "stringData": {"ca.crt": read(folder / "ca.crt")} | {
          f"{name}.{end}": read(folder / name / f"node.{end}") for name in ("n0", "n1") for end in ("crt", "key")}})
    # One port for all of a network, which real nodes and pods do not share: each has an address, and the store's name is in /etc/hosts.
    addresses = {"store": "127.9.0.1", "n0": "127.9.0.2", "n1": "127.9.0.3"}
    (self.root / "etc/hosts").write_text(f"{addresses['store']} r2cc-store.r2cc.svc\n", encoding="ascii")
    self.addCleanup((self.root / "etc/hosts").unlink, missing_ok=True)
    specs = manifests.pod_specs(objects)
    store_map = manifests.find(objects, "ConfigMap", "r2cc-store-config")["data"]
    self.assertIn('listen: "0.0.0.0:7460"', store_map["10-store.textproto"])
    store_map["10-store.textproto"] = store_map["10-store.textproto"].replace("0.0.0.0", addresses["store"])
    self.start(self.node(objects, "anywhere"), specs["Deployment/r2cc-store"])
    pods = {}
    for name in ("n0", "n1"):
      mine = [one if one["metadata"]["name"] != "r2ccd-config" else
              one | {"data": one["data"] | {"90-test.textproto": f'listen: "{addresses[name]}:7460"\n'}} for one in objects]
      node = self.node(mine, name)
      if tls == "tls_files":
        kept = node.host / "var/lib/r2cc/tls"
        kept.mkdir(parents=True)
        for file in (folder / name).iterdir():
          (kept / file.name).write_bytes(file.read_bytes())
        os.chown(kept / "node.key", DAEMON_UID, DAEMON_UID)
        (kept / "node.key").chmod(0o600)
      pods[name], _, _ = self.start(node, specs["DaemonSet/r2ccd"])
    container, = specs["DaemonSet/r2ccd"]["containers"]

    def known() -> set[str]:
      output = pods["n0"].execute(container, ["/usr/bin/r2ccctl", "-o", "json", "status"])
      return {node["node"] for node in json.loads(output.stdout)["nodes"]} if output.returncode == 0 else set()
    self.assertTrue(wait_until(lambda: {"n0", "n1", "store"} <= known()), known())
