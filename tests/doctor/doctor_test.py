"""Every fault that can be planted between two namespaces is found by `r2ccctl doctor`, and nothing is found where nothing is wrong."""

import shutil
import subprocess
import sys
import time

from tests.doctor import doctor_rig
from tests.doctor import two_nodes
from tests.e2e import tap


class DoctorTest(doctor_rig.DoctorTestCase):

  def test_nothing_is_wrong(self):
    nodes = self.rig()
    report = nodes.doctor("--job", "--wait", "30s", environment=self.job())
    # No NCCL is installed here, which it says.
    self.assertEqual([line for line in report["lines"] if not line.startswith("unchecked NCCL")], [])
    self.assertEqual(report["exit"], 0)
    self.assertGreaterEqual(len(report["findings"]), 25)
    nodes.ip(1, "link", "set", "rail1", "down")
    self.finds(nodes, "FAIL nic state: n0/rail1")
    nodes.ip(1, "link", "set", "rail1", "up")
    report = nodes.doctor("--wait", "60s")
    self.assertEqual((report["exit"], report["failed"]), (0, 0), "--wait waits until nothing fails")

  def test_mtu_differs(self):
    nodes = self.rig()
    nodes.ip(1, "link", "set", "rail1", "mtu", "1400")
    self.finds_only(nodes, "FAIL path mtu: rail1 to n1 (10.99.2.21 to 10.99.2.22) loses packets of 1500 bytes")

  def test_two_rails_in_one_network(self):
    nodes = self.rig(start=False, one_network=True)
    for node in (0, 1):
      nodes.start(node)
    self.finds(nodes, "warn arp: rail0 and rail1 are in one network",
               "warn path route: rail1 to n1 (10.99.1.21 to 10.99.1.22) leaves by rail0")
    nodes.sysctl(0, "net.ipv4.conf.all.rp_filter", 1)
    self.finds(nodes, "FAIL rp_filter: rail1: strict")
    nodes.sysctl(0, "net.ipv4.conf.all.rp_filter", 0)
    for node in (0, 1):
      nodes.sysctl(node, "net.ipv4.conf.all.arp_ignore", 1)
      nodes.ip(node, "rule", "add", "from", nodes.address(node, 2), "table", "102")
      nodes.ip(node, "route", "add", "10.99.1.0/24", "dev", "rail1", "table", "102")
    self.clean(nodes)

  def test_ports_are_closed(self):
    # By what the kernel has without a firewall's modules: rules that swallow answers, and policies that swallow what comes in.
    nodes = self.rig()
    nodes.ip(1, "rule", "add", "pref", "1", "to", nodes.address(0, 2), "ipproto", "tcp", "sport", "32768-60999", "blackhole")
    self.finds_only(nodes, "FAIL job ports: rail1 to n1")
    nodes.ip(1, "rule", "delete", "pref", "1")
    self.clean(nodes)
    ends = ("src", f"{nodes.address(0, 1)}/32", "dst", f"{nodes.address(1, 1)}/32")
    nodes.ip(1, "xfrm", "policy", "add", *ends, "proto", "udp", "dport", str(two_nodes.PORT), "dir", "in", "action", "block")
    self.finds(nodes, "FAIL probe port: rail0 to n1 (10.99.1.11 to 10.99.1.12): r2ccd's probes (UDP) have no answer, pings have")
    nodes.ip(1, "xfrm", "policy", "flush")
    nodes.ip(1, "rule", "add", "pref", "1", "to", nodes.address(0, 0), "ipproto", "tcp", "sport", str(two_nodes.PORT), "blackhole")
    self.finds(nodes, f"warn daemon port: n1 at 10.99.0.2:{two_nodes.PORT}: no answer")

  def test_addresses(self):
    nodes = self.rig()
    nodes.ip(1, "address", "add", "10.99.1.11/32", "dev", "rail0")
    self.finds(nodes, "FAIL address owners: 10.99.1.11 of rail0 has another owner in its network: ")
    nodes.ip(1, "address", "delete", "10.99.1.11/32", "dev", "rail0")
    nodes.ip(0, "address", "flush", "dev", "rail1")
    self.finds(nodes, "FAIL nic address: rail1 (rail1) has no address")
    nodes.ip(0, "address", "add", "169.254.7.1/16", "dev", "rail1")
    self.finds(nodes, "FAIL nic address: rail1 (rail1) has only a link-local address")

  def test_an_address_from_another_node(self):
    nodes = self.rig(start=False)
    nodes.ip(1, "address", "flush", "dev", "rail1")
    nodes.ip(1, "address", "add", f"{nodes.address(0, 1)}/24", "dev", "rail1")
    for node in (0, 1):
      nodes.start(node)
    self.finds(nodes, "FAIL address owners: 10.99.1.11 of rail0 is also the address of n1/rail1")

  def test_a_nic_that_is_slower_than_its_twins(self):
    nodes = self.rig(start=False)
    argv = ["ip", "netns", "exec", nodes.netns(0), sys.executable, tap.__file__, "rail2", "10.99.3.1/24"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
      self.assertEqual(holder.stdout.readline(), "ok\n")
      print("1000", file=holder.stdin, flush=True)
      self.assertEqual(holder.stdout.readline(), "ok\n")
      nodes.configure(0, more='nics { name: "rail2" interface: "rail2" }\n')
      nodes.start(0)
      nodes.start(1)
      self.finds(nodes, "warn nic speed: n0/rail2 runs at 1 Gbit/s, its twin rail0 at 10 Gbit/s")

  def test_a_nic_that_is_drained(self):
    nodes = self.rig()
    two_nodes.run(str(self.r2ccctl), "--run_dir", str(nodes.run_dir(0)), "nic", "drain", "n0/rail1")
    self.finds(nodes, "warn nic state: n0/rail1 is DRAINED: ")

  def test_a_way_that_is_gone(self):
    nodes = self.rig()
    nodes.sysctl(1, "net.ipv4.icmp_echo_ignore_all", 1)
    self.finds(nodes, "unchecked path mtu: rail0 to n1 (10.99.1.11 to 10.99.1.12): pings are not answered, probes are")
    nodes.sysctl(1, "net.ipv4.icmp_echo_ignore_all", 0)
    self.clean(nodes)
    ends = ("src", f"{nodes.address(0, 2)}/32", "dst", f"{nodes.address(1, 2)}/32")
    nodes.ip(1, "xfrm", "policy", "add", *ends, "dir", "in", "action", "block")
    self.finds(nodes, "FAIL path: rail1 to n1 (10.99.2.21 to 10.99.2.22): no answer to a ping, nor to r2ccd's probes")

  def test_a_node_that_is_gone(self):
    nodes = self.rig()
    nodes.stop(1)
    lines = self.finds(nodes, f"warn peers: n1 (10.99.0.2:{two_nodes.PORT}) is not connected: ")
    self.assertFalse([line for line in lines if line.startswith("FAIL")], "it is no fault of this node")
    self.assertEqual(self.ready(nodes, "--min-rails", "2"), (0, "ready: n0 has 2 of 2 rails\n"))

  def ready(self, nodes: two_nodes.TwoNodes, *flags: str) -> tuple[int, str]:
    """Its exit code and its line, which are there within a second, unless this machine is busy each time."""
    times = []
    while len(times) < 5 and not any(took < 1 for took in times):
      begun = time.monotonic()
      done = two_nodes.run("ip", "netns", "exec", nodes.netns(0), str(self.r2ccctl), "--run_dir", str(nodes.run_dir(0)), "ready", *flags,
                           check=False)
      times.append(time.monotonic() - begun)
    self.assertLess(min(times), 1)
    return done.returncode, done.stdout

  def test_ready_needs_no_network_and_less_than_a_second(self):
    nodes = self.rig()
    nodes.ip(0, "link", "set", "ctl0", "down")
    nodes.ip(0, "link", "set", "lo", "down")
    self.assertEqual(self.ready(nodes, "--min-rails", "2"), (0, "ready: n0 has 2 of 2 rails\n"))
    nodes.ip(0, "link", "set", "rail1", "down")
    self.assertTrue(nodes.until(lambda: self.ready(nodes, "--min-rails", "2")[0] == 1))
    self.assertEqual(self.ready(nodes)[0], 0)
    nodes.pause(0)
    code, line = self.ready(nodes)
    self.assertEqual(code, 2, line)
    self.assertIn("cannot tell: ", line)

  def test_two_daemons_of_one_name(self):
    nodes = self.rig()
    text = (self.folder / "n1.textproto").read_text(encoding="utf-8")
    (self.folder / "second.textproto").write_text(
        text.replace(nodes.address(1, 0) + ":7460", nodes.address(1, 1) + ":7460"), encoding="utf-8")
    nodes.start(1, name="second")
    self.finds(nodes, "warn node names: ")

  def test_no_daemon(self):
    nodes = self.rig(start=False)
    lines = self.finds(nodes, "FAIL daemon: r2ccd is not running: there is no ", "FAIL attach socket: jobs cannot attach")
    self.assertIn("unchecked paths: this needs an answer of r2ccd -> ", lines)

  def test_sockets_are_out_of_reach_of_this_user(self):
    nodes = self.rig()
    nodes.run_dir(0).chmod(0o700)
    self.finds(nodes, "FAIL daemon: not allowed to open ", "FAIL attach socket: jobs of this user cannot attach",
               before=("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"))

  def test_a_container_without_the_run_directory(self):
    nodes = self.rig()
    self.finds(nodes, "FAIL daemon: r2ccd is not running: there is no ", "FAIL attach socket: jobs cannot attach",
               before=("unshare", "--mount", "sh", "-c",
                       f'for i in {nodes.run_dir(0)} {nodes.run_dir(0)}-control; do mount -t tmpfs none $i; done; exec "$@"', "sh"))

  def test_clocks_are_apart(self):
    nodes = self.rig(start=False)
    nodes.start(0)
    nodes.start(1, "--wall_clock_offset_s", "60")
    self.finds(nodes, "warn clocks: the clock of n1 is ")

  def test_certificates(self):
    nodes = self.rig()
    nodes.issue(0, "--days", "20")
    self.finds(nodes, "warn certificates: valid for ")
    nodes.issue(0)
    (nodes.tls(0) / "node.key").chmod(0o644)
    self.finds(nodes, "FAIL certificates: ")
    shutil.copy(nodes.tls(1) / "node.key", nodes.tls(0) / "node.key")
    shutil.copy(nodes.tls(1) / "node.crt", nodes.tls(0) / "node.crt")
    (nodes.tls(0) / "node.key").chmod(0o600)
    lines = self.finds(nodes, "FAIL certificates: ")
    self.assertTrue(any("is the certificate of node n1, and this is node n0" in line for line in lines), lines)

  def test_etcd_does_not_answer(self):
    nodes = self.rig(start=False)
    for node in (0, 1):
      nodes.configure(node, more='store { etcd_endpoints: "10.99.0.9:2379" }\n')
      nodes.start(node)
    self.finds(nodes, "FAIL store: lost: etcd at 10.99.0.9:2379")

  def test_two_clusters_on_one_etcd(self):
    if shutil.which("etcd") is None:
      self.skipTest("needs etcd: it is not installed")
    nodes = self.rig(start=False)
    here = f"http://{nodes.address(0, 0)}"
    argv = ["ip", "netns", "exec", nodes.netns(0), "etcd", "--data-dir", str(self.folder / "etcd"), "--listen-client-urls", f"{here}:2379",
            "--advertise-client-urls", f"{here}:2379", "--listen-peer-urls", f"{here}:2380", "--initial-advertise-peer-urls",
            f"{here}:2380", "--initial-cluster", f"default={here}:2380"]
    with open(self.folder / "etcd.log", "wb") as log:
      etcd = subprocess.Popen(argv, stdout=log, stderr=log)
    self.addCleanup(lambda: (etcd.kill(), etcd.wait()))
    store = f'store {{ etcd_endpoints: "{nodes.address(0, 0)}:2379" }}\n'
    for node in (0, 1):
      nodes.configure(node, more=store)
      nodes.start(node)
    self.clean(nodes)
    # A node of the other cluster, with its own authority's certificate.
    for arguments in (("init",), ("issue", "n7", "--out", str(self.folder / "tls7"))):
      two_nodes.run(str(self.r2ccctl), "certs", *arguments, "--dir", str(self.folder / "ca7"))
    (self.folder / "n7.textproto").write_text(
        f'node: "n7"\nlisten: "{nodes.address(1, 1)}:{two_nodes.PORT}"\nnics {{ name: "rail0" interface: "rail0" }}\n'
        f'tls {{ directory: "{self.folder / "tls7"}" }}\nrealtime_priority: 0\nnice: 0\n{store}', encoding="utf-8")
    nodes.start(1, name="n7")
    self.finds(nodes, "warn store: ")
    self.assertIn("two clusters on one etcd need a store.prefix each", str(nodes.doctor()["lines"]))

  def test_limits(self):
    nodes = self.rig(start=False)
    nodes.configure(0, priority="realtime_priority: 1\nnice: -20\n")
    for name in ("run0", "run0-control", "run0-state"):
      (self.folder / name).mkdir()
      shutil.chown(self.folder / name, 65534, 65534)
    for path in nodes.tls(0).iterdir():
      shutil.chown(path, 65534, 65534)
    nodes.start(0, before=("prlimit", "--nofile=512:512", "--rtprio=0:0", "--nice=0:0", "setpriv", "--reuid", "65534", "--regid", "65534",
                           "--clear-groups", "--bounding-set=-all", "--inh-caps=-all"))
    nodes.start(1)
    self.finds(nodes, "warn limits: r2ccd may open 512 files", "warn limits: r2ccd has no real-time priority",
               "warn limits: r2ccd runs at nice 0")

  def test_a_configuration_that_was_refused(self):
    nodes = self.rig()
    nodes.configure(0, more="limits { nodes: 70000 }\n")
    two_nodes.run(str(self.r2ccctl), "--run_dir", str(nodes.run_dir(0)), "config", "reload", check=False)
    lines = self.finds(nodes, "FAIL configuration: refused, the one before is in force: ")
    self.assertIn("n0.textproto:", lines[0])

  def test_a_configuration_that_waits_for_a_restart(self):
    nodes = self.rig()
    nodes.configure(0, priority="realtime_priority: 0\nnice: 3\n")
    two_nodes.run(str(self.r2ccctl), "--run_dir", str(nodes.run_dir(0)), "config", "reload", check=False)
    self.finds(nodes, "warn configuration: not in force yet: nice")

  def test_a_daemon_that_everybody_may_steer(self):
    nodes = self.rig(start=False)
    for node in (0, 1):
      nodes.configure(node, more="insecure: true\n")
      nodes.start(node)
    self.finds(nodes, "warn configuration: insecure: true")

  def test_jobs(self):
    nodes = self.rig()
    here = str(self.plugins)
    broken, copied = self.folder / "broken", self.folder / "copied"
    for folder in (broken, copied):
      folder.mkdir()
    (broken / "libnccl-net-r2cc.so").write_text("no library", encoding="ascii")
    shutil.copy(self.plugin, copied / "libnccl-net-r2cc.so")
    unset = self.job()
    del unset["NCCL_NET_PLUGIN"]
    silent = self.job()
    del silent["NCCL_NET"]
    (self.folder / ".nccl.conf").write_text("# the user's own\nNCCL_NET=IB\n", encoding="ascii")
    for environment, beginning in (
        (unset, "FAIL plugin variable: NCCL_NET_PLUGIN is not set"),
        (self.job(NCCL_NET_PLUGIN="aws-ofi"), "FAIL plugin variable: NCCL_NET_PLUGIN=aws-ofi is another plugin"),
        (self.job(NCCL_NET="Socket"), "FAIL NCCL_NET: NCCL_NET=Socket is another network"),
        (silent, "warn NCCL_NET: not set"),
        ({**silent, "HOME": str(self.folder)}, "FAIL NCCL_NET: NCCL_NET=IB is another network"),
        (self.job(LD_LIBRARY_PATH="/nowhere"), "FAIL plugin: there is no libnccl-net-r2cc.so"),
        (self.job(LD_LIBRARY_PATH=str(broken)), "FAIL plugin: does not load: "),
        (self.job(LD_LIBRARY_PATH=f"{copied}:{here}"), f"warn plugin files: {copied}/libnccl-net-r2cc.so comes before {here}/"),
        (self.job(LD_LIBRARY_PATH=f"{here}:{self.old_nccl.parent}"), "FAIL NCCL: 2.18.5 has no v7 net tables"),
        (self.job(R2CC_RAILS="rail0,rail9"), "FAIL rails: R2CC_RAILS names rail9"),
        (self.job(NCCL_SOCKET_IFNAME="rail"), "warn rails: NCCL_SOCKET_IFNAME=rail puts NCCL's own control traffic on rail0, rail1"),
        (self.job(NCCL_IB_DISABLE="1", R2CC_TRANSPORT="verbs"), "warn rails: NCCL_IB_DISABLE=1 and R2CC_TRANSPORT=verbs"),
        (self.job(R2CC_TCP_CONGESTION="bbr"), "warn congestion: R2CC_TCP_CONGESTION=bbr is BBR"),
        (self.job(R2CC_ATTACH="none"), "warn attach: R2CC_ATTACH=none"),
        (self.job(R2CC_ATTACH="/nowhere/attach.sock"), "FAIL attach: /nowhere/attach.sock"),
    ):
      with self.subTest(beginning):
        self.finds_only(nodes, beginning, "--job", environment=environment)
