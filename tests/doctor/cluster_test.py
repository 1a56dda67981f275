"""`r2ccctl doctor` finds what is wrong between releases, with a limit or with the store: each planted for real."""

import contextlib
import pathlib
import shutil
import socket
import subprocess
import sys

from deploy.debian import elf_stamp
from tests.doctor import doctor_rig
from tests.doctor import etcd_roles
from tests.doctor import two_nodes

OTHER_RELEASE = "0.99.0"
# In a mount namespace of the doctor's own: what `sh` is told first, and then the doctor.
OWN_MOUNTS = ("unshare", "--mount", "sh", "-c")
# A machine with RDMA devices, as far as the doctor looks.
RDMA_DEVICES = 'mount -t tmpfs none /sys/class && mkdir /sys/class/infiniband_verbs && echo 6 > /sys/class/infiniband_verbs/abi_version'


def shell(folder: pathlib.Path, command: str) -> None:
  subprocess.run(["sh", "-ec", command], cwd=folder, check=True, capture_output=True, timeout=two_nodes.PATIENCE_S)


class ClusterTest(doctor_rig.DoctorTestCase):

  def without_tls(self, nodes: two_nodes.TwoNodes, node: int, more: str) -> None:
    """In the clear, as the foreign daemons are."""
    nodes.configure(node, more=f"insecure: true\n{more}")
    path = self.folder / f"n{node}.textproto"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(line for line in lines if not line.startswith("tls ")), encoding="utf-8")

  def test_a_daemon_of_another_release(self):
    nodes = self.rig()
    other = self.folder / "r2ccd"
    elf_stamp.stripped_and_stamped(self.r2ccd, other, OTHER_RELEASE, "other")
    nodes.stop(1)
    nodes.start(1, program=other)
    lines = self.finds(nodes, "warn releases: this node has ")
    self.assertIn(f"n1 has {OTHER_RELEASE} -> install one release of r2ccd on all nodes", str(lines))
    nodes.stop(1)
    nodes.start(1)
    self.clean(nodes)

  def test_a_job_whose_plugin_is_of_another_release(self):
    nodes = self.rig()
    with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)) as job:
      job.connect(str(nodes.run_dir(1) / "attach.sock"))
      # As a plugin of 0.2.0 asked.
      job.send(self.old_request.read_bytes())
      self.finds_only(nodes, "warn releases: processes of jobs with a plugin of another release than r2ccd: 1 on n1")
    self.clean(nodes)

  def test_a_peer_of_another_protocol(self):
    nodes = self.rig(start=False)
    self.without_tls(nodes, 0, "")
    nodes.start(0)
    with nodes.process(1, str(self.foreign_daemon), "serve", f"{nodes.address(1, 0)}:{two_nodes.PORT}", "n1", "99"):
      self.finds(nodes, "warn releases: the daemon of n1 (release 9.9.9) speaks protocol 99")

  def test_a_page_that_is_nearly_full(self):
    nodes = self.rig(start=False)
    store = 'store { embedded_node: "n0" }\nlimits { nodes: 2048 nics_per_node: 64 }\n'
    for node in (0, 1):
      self.without_tls(nodes, node, store)
      nodes.start(node)

    def fill(count: int) -> None:
      with nodes.process(1, str(self.foreign_daemon), "fill", f"{nodes.address(0, 0)}:{two_nodes.PORT}", str(count), "64") as process:
        log = nodes.folder / f"{self.foreign_daemon.name}.log"
        self.assertEqual(process.wait(two_nodes.PATIENCE_S), 0, log.read_text(encoding="utf-8"))

    self.finds_only(nodes, "warn configuration: insecure: true")
    # 76 %, and 83 %: below what it takes of NICs, as broken paths and drains have places of their own.
    fill(780)
    report = nodes.await_line(lambda report: "(76 %)" in str(report["findings"]), "--peers", "1")
    page = [(one["level"], one["text"]) for one in report["findings"] if one["check"] == "page"]
    self.assertEqual(page, [("ok", "49924 of 65536 entries (76 %)")])
    fill(860)
    self.finds(nodes, "warn page: 55044 of 65536 entries (83 %)", flags=("--peers", "1"))

  def test_locked_memory_of_a_job_with_rdma(self):
    nodes = self.rig()

    # Root of a container may not have more than it was given: what is enough is left to the unit tests.
    before = ("prlimit", "--memlock=1048576:1048576", *OWN_MOUNTS, f'{RDMA_DEVICES} && exec "$@"', "sh")
    self.finds_only(nodes, "warn memlock: a process may lock 1 MiB of memory", "--job", environment=self.job(), before=before)

  def test_the_receive_buffer_is_small(self):
    # The machine has one for all its namespaces: what the doctor reads there is put before it, and the machine keeps its own.
    nodes = self.rig()
    value = self.folder / "rmem_default"
    value.write_text("65536\n", encoding="ascii")
    self.finds_only(nodes, "warn receive buffer: net.core.rmem_default is 65536",
                    before=(*OWN_MOUNTS, f'mount --bind {value} /proc/sys/net/core/rmem_default && exec "$@"', "sh"))
    self.clean(nodes)

  def test_the_role_at_etcd_is_not_sufficient(self):
    if shutil.which("etcd") is None:
      self.skipTest("needs etcd: it is not installed")
    nodes = self.rig(start=False)
    here = nodes.address(0, 0)
    key = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
    shell(self.folder, f"openssl req -x509 {key} -days 90 -subj /CN=ca -keyout ca.key -out ca.pem; echo subjectAltName=IP:{here} > ext; "
          "echo extendedKeyUsage=serverAuth,clientAuth >> ext")
    # etcd's gateway takes nobody whose certificate has a common name: who he is he says by a password.
    for name, subject in (("etcd", "/CN=etcd"), ("root", "/O=root"), ("r2cc", "/CN=r2cc")):
      shell(self.folder, f"openssl req {key} -subj {subject} -keyout {name}.key -out {name}.csr; openssl x509 -req -in {name}.csr "
            f"-CA ca.pem -CAkey ca.key -CAcreateserial -days 90 -extfile ext -out {name}.pem")
    etcd = ["etcd", "--data-dir", str(self.folder / "etcd"), "--client-cert-auth", "--cert-file", str(self.folder / "etcd.pem"),
            "--key-file", str(self.folder / "etcd.key"), "--trusted-ca-file", str(self.folder / "ca.pem")]
    for flag, url in (("listen-client-urls", f"https://{here}:2379"), ("advertise-client-urls", f"https://{here}:2379"),
                      ("listen-peer-urls", f"http://{here}:2380"), ("initial-advertise-peer-urls", f"http://{here}:2380"),
                      ("initial-cluster", f"default=http://{here}:2380")):
      etcd += [f"--{flag}", url]
    self.enterContext(nodes.process(0, *etcd))

    def roles(what: str) -> subprocess.CompletedProcess:
      return two_nodes.run("ip", "netns", "exec", nodes.netns(0), sys.executable, etcd_roles.__file__, f"https://{here}:2379",
                           str(self.folder), what, "/r2cc/", check=False)

    self.assertTrue(nodes.until(lambda: not roles("begin").returncode), roles("begin").stderr)
    files = f'certificate_file: "{self.folder}/r2cc.pem" key_file: "{self.folder}/r2cc.key" ca_file: "{self.folder}/ca.pem"'
    for node in (0, 1):
      nodes.configure(node, more=f'store {{ etcd_endpoints: "{here}:2379" etcd_tls {{ {files} }} }}\n')
      nodes.start(node)
    lines = self.finds(nodes, f"FAIL store: connected to etcd at {here}:2379, which does not take this node's entry: ")
    self.assertIn("permission denied -> give the role of this certificate's user readwrite on the prefix", str(lines))
    granted = roles("grant")
    self.assertEqual(granted.returncode, 0, granted.stderr)
    self.clean(nodes)
