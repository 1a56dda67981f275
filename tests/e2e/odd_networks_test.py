"""Networks as users report them: link-local NICs, addresses on lo, duplicates, firewalls, few descriptors, pods, ARP flux."""

import json
import re
import subprocess
import unittest

from testing.lab.binaries import built_binaries
from testing.lab.cluster import Cluster
from testing.lab.lab import RailId
from testing.lab.namespaces import NamespaceLab
from testing.lab.processes import ManagedProcess, Processes, wait_until
from tests.e2e.cluster_case import PATIENCE_S, NamespaceCase

FEW = ("-b", "1M", "-e", "1M", "-n", "5")
LONG = ("-b", "1M", "-e", "1M", "--seconds", "600")


class OddNetworks(NamespaceCase):

  def setUp(self) -> None:
    super().setUp()
    self.processes = self.enterContext(Processes(self.folder))
    self.binaries = built_binaries()
    self.jobs = 0

  def make_lab(self, nodes: int = 2, rails: int = 2, fabric: str = "rail") -> None:
    self.lab = self.enterContext(NamespaceLab(nodes=nodes, rails=rails, rate=None, fabric=fabric))

  def on(self, node: int, script: str) -> str:
    argv = self.lab.command(node, ["sh", "-ec", script])
    done = subprocess.run(argv, capture_output=True, text=True, timeout=20, check=False)
    self.assertEqual(done.returncode, 0, f"{script}: {done.stderr}")
    return done.stdout

  def start(self, flags: tuple[str, ...] = FEW, environments: tuple[dict[str, str], ...] = ({}, {}), nodes: tuple[int, ...] = (0, 1),
            before: tuple[tuple[str, ...], ...] = ((), ()), host: str = "") -> list[ManagedProcess]:
    """A rank on each of `nodes`, with `before` in front of its command."""
    self.jobs += 1
    root = f"{host or self.lab.management_address(nodes[0])}:{self.lab.free_port(0)}"
    ranks = []
    for rank, node in enumerate(nodes):
      environment = {"R2CC_RAILS": self.lab.rails_variable(node), "R2CC_NODE": f"n{node}", "R2CC_ATTACH": "none", "R2CC_LOG": "info"}
      environment |= environments[rank]
      argv = [*before[rank], str(self.binaries.perf), "--plugin", str(self.binaries.plugin), *flags, "--rank", str(rank), "--nranks",
              str(len(nodes)), "--root", root, "--json", "--debug", "--timeout", "60"]
      environment = {name: value for name, value in environment.items() if value}
      ranks.append(self.processes.start(f"job{self.jobs}-rank{rank}", self.lab.command(node, argv), environment))
    return ranks

  def expect_end(self, ranks: list[ManagedProcess]) -> None:
    for process in ranks:
      self.assertEqual(process.wait(PATIENCE_S), 0, f"{process.name}: {process.errors()}")
    report = json.loads(ranks[0].output().strip().splitlines()[-1])
    self.assertEqual((report["wrong_elements"], report["pass"]), (0, True))

  def expect_line(self, process: ManagedProcess, wanted: str) -> str:
    """The first line of its standard error that fits."""
    lines = lambda: [line for line in process.errors().splitlines() if re.search(wanted, line)]
    self.assertTrue(wait_until(lambda: bool(lines()), PATIENCE_S, 0.05), f"{process.name} never said {wanted!r}: {process.errors()}")
    return lines()[0]

  def sent_gb(self, process: ManagedProcess) -> dict[str, float]:
    """What each rail carried, by the plugin's own account."""
    return {rail: float(sent) for rail, sent in re.findall(r"R2CC: rail [^/ ]+/(\S+) sent ([0-9.]+) GB", process.errors())}

  def test_a_link_local_nic_is_left_alone(self):
    self.make_lab()
    fabric = ["ip", "-n", self.lab.namespace(0).removesuffix("n0") + "fabric"]
    for node in (0, 1):
      # The BMC's NIC comes before the management's.
      subprocess.run([*fabric, "link", "del", f"m{node}"], check=True, timeout=20)
      self.on(node, "ip link add usb0 type veth peer name bmc0; ip addr add 169.254.3.1/24 dev usb0; "
                    "ip link set usb0 up; ip link set bmc0 up")
      subprocess.run([*fabric, "link", "add", f"m{node}", "type", "veth", "peer", "name", "mgmt0", "netns", self.lab.namespace(node)],
                     check=True, timeout=20)
      subprocess.run([*fabric, "link", "set", f"m{node}", "master", "mgmt", "up"], check=True, timeout=20)
      self.on(node, f"ip addr add {self.lab.management_address(node)}/24 dev mgmt0; ip link set mgmt0 up")
      indices = json.loads(self.on(node, "ip -j link show"))
      order = [link["ifname"] for link in sorted(indices, key=lambda link: link["ifindex"])]
      self.assertLess(order.index("usb0"), order.index("mgmt0"))
    self.expect_end(self.start())
    ranks = self.start(environments=({"R2CC_RAILS": ""}, {"R2CC_RAILS": ""}))
    self.expect_end(ranks)
    self.assertNotIn("usb0", self.expect_line(ranks[0], "R2CC: rails "))

  def test_an_address_on_lo_and_other_names(self):
    self.make_lab(rails=3)
    for node in (0, 1):
      own, other = node + 1, 2 - node
      self.on(node, f"ip addr add 10.99.0.{own}/32 dev lo; ip route add 10.99.0.{other}/32 src 10.99.0.{own} "
                    f"nexthop via 10.10.0.{other} dev rail0 nexthop via 10.10.1.{other} dev rail1; "
                    "ip link property add dev rail2 altname enp3s0")
    own = tuple({"R2CC_RAILS": f"10.99.0.{node + 1}"} for node in (0, 1))
    ranks = self.start(environments=own)
    self.expect_end(ranks)
    self.assertGreater(self.sent_gb(ranks[0])["10.99.0.1"], 0.001)

    ranks = self.start(environments=tuple(rank | {"R2CC_RAILS": rank["R2CC_RAILS"] + ",enp3s0"} for rank in own))
    self.expect_end(ranks)
    self.assertGreater(self.sent_gb(ranks[0])["enp3s0"], 0.001)

    with self.subTest("an address that is taken away there takes the rail away"):
      ranks = self.start(LONG, tuple(rank | {"R2CC_RAILS": rank["R2CC_RAILS"] + ",rail2"} for rank in own))
      self.expect_line(ranks[0], "R2CC: rails ")
      self.on(0, "ip addr del 10.99.0.1/32 dev lo")
      self.expect_line(ranks[0], "R2CC: rail 10.99.0.1 is down: address removed")

  def test_a_duplicate_ipv6_address_is_not_used(self):
    self.make_lab(nodes=3, rails=1)
    for node in range(3):
      self.on(node, "echo 0 > /proc/sys/net/ipv6/conf/rail0/disable_ipv6; ip -4 addr flush dev rail0")
    for node, last in ((1, 2), (2, 9)):
      self.on(node, f"ip addr add fd00::{last}/64 dev rail0 nodad")
    # The kernel names the one that came last first.
    self.on(0, "ip addr add fd00::1/64 dev rail0; ip addr add fd00::9/64 dev rail0")

    def settled() -> bool:
      addresses = json.loads(self.on(0, "ip -6 -j addr show dev rail0"))[0]["addr_info"]
      states = {address["local"]: address for address in addresses}
      return "dadfailed" in states["fd00::9"] and "tentative" not in states["fd00::1"]

    self.assertTrue(wait_until(settled, PATIENCE_S, 0.1))
    ranks = self.start()
    self.expect_end(ranks)
    self.assertIn("rail rail0 uses fd00::1", self.expect_line(ranks[0], "WARN R2CC: fd00::9 of rail0 is not used: another node"))
    self.assertGreater(self.sent_gb(ranks[0])["rail0"], 0.001)

  def test_a_lack_of_descriptors_is_logged_at_once(self):
    self.make_lab()
    many = {"R2CC_SOCKETS_PER_RAIL": "16", "R2CC_DEADLINE_MS": "4000"}
    with self.subTest("the soft limit is no limit"):
      self.expect_end(self.start(environments=(many, many), before=((), ("prlimit", "--nofile=32:4096"))))
    ranks = self.start(environments=(many, many), before=((), ("prlimit", "--nofile=32:32")))
    self.expect_line(ranks[1], "WARN R2CC: no connection can be made or taken: this process has all 32 descriptors open that it may")
    self.assertIsNone(ranks[1].returncode, "it was said while the job still tried")

  def test_unlike_families_are_logged_when_they_are_known(self):
    self.make_lab()
    self.on(1, "for i in 0 1; do echo 0 > /proc/sys/net/ipv6/conf/rail$i/disable_ipv6; ip -4 addr flush dev rail$i; "
               "ip addr add fd0$i::2/64 dev rail$i nodad; done")
    ranks = self.start(environments=({"R2CC_DEADLINE_MS": "20000"},) * 2)
    output = self.expect_line(ranks[0], "WARN R2CC: no rail can reach peer n1: ")
    self.assertIn("rail0 is IPv4 (10.10.0.1) and rail0 there IPv6 (fd00::2)", output)
    self.assertIn("R2CC_RAILS", output)
    self.assertIsNone(ranks[0].returncode)

  def drop(self, node: int, what: str) -> None:
    """Who connects from elsewhere hears nothing."""
    rule = f"{what} tcp flags & (syn | ack) == syn drop"
    self.on(node, "nft -f - <<'END'\ntable inet firewall {\nchain in {\ntype filter hook input priority 0; policy accept;\n"
                  f"{rule}\n}}\n}}\nEND")

  def test_a_firewall_is_named_with_ports_and_sysctl(self):
    self.make_lab()
    for node in (0, 1):
      self.on(node, "echo 40000 40900 > /proc/sys/net/ipv4/ip_local_port_range")
    cluster = Cluster(self.lab, self.binaries, self.folder, self.processes)
    cluster.start_daemons()

    with self.subTest("the rails"):
      self.drop(1, 'iifname "rail*" tcp dport 40000-40900')
      self.drop(0, 'iifname "rail*" tcp dport 40000-40900')
      ranks = self.start(environments=({"R2CC_DEADLINE_MS": "6000"},) * 2)
      early = self.expect_line(ranks[0], "WARN R2CC: no rail reaches n1 for 3 s")
      self.assertRegex(early, r"rail0 10\.10\.0\.1 to 10\.10\.0\.2:40\d\d\d")
      self.assertIn("net.ipv4.ip_local_port_range (here 40000 to 40900)", early)
      self.assertIsNone(ranks[0].returncode)
      # Of its two sessions with the peer either may be the first to end.
      last = self.expect_line(ranks[0], "gave up on n1 ")
      self.assertRegex(last, r"; tried (out-of-band 10\.200\.0\.1 to 10\.200\.0\.2:40\d\d\d, rail0 10\.10\.0\.1 to 10\.10\.0\.2:40\d\d\d|"
                             r"by it: rail0 10\.10\.0\.2 to 10\.10\.0\.1:40\d\d\d)")
      self.assertIn("net.ipv4.ip_local_port_range (here 40000 to 40900)", last)

    with self.subTest("the management network"):
      for node in (0, 1):
        self.on(node, "nft flush ruleset")
        self.drop(node, 'iifname "mgmt0" tcp dport 40000-40900')
      ranks = self.start(environments=({"R2CC_DEADLINE_MS": "6000"},) * 2)
      early = self.expect_line(ranks[0], "WARN R2CC: no answer from 10.200.0.2 for 3 s")
      self.assertIn("net.ipv4.ip_local_port_range (here 40000 to 40900)", early)
      command = re.search(r"r2ccctl (path probe \S+ [^\s;]+)", self.expect_line(ranks[0], "gave up on 10.200.0.2 "))
      self.assertEqual(command[1], "path probe n0 10.200.0.2")
      for node in (0, 1):
        self.on(node, "nft flush ruleset")
      self.assertEqual(cluster.ctl_json(0, *command[1].split())["peer"], "n1")

  def test_a_pods_rails_are_not_the_hosts(self):
    self.make_lab(nodes=3)  # n2 is a pod that attaches to the daemon of n1
    cluster = Cluster(self.lab, self.binaries, self.folder, self.processes)
    for node in (0, 1):
      cluster.start_daemon(node)
    for node in (0, 1):
      cluster.wait_ready(node)
    attach = lambda node: {"R2CC_ATTACH": str(cluster.attach_socket(node)), "R2CC_NODE": ""}
    ranks = self.start(LONG, (attach(0), attach(1)), nodes=(0, 2))
    for node in (0, 1):
      self.assertTrue(wait_until(lambda node=node: cluster.attached_processes(node) == 1, PATIENCE_S, 0.1))
    cluster.fail_nic(RailId(1, 0))
    state = lambda: {nic["name"]: nic["state"] for node in cluster.ctl_json(0, "nic", "list")["nodes"] if node["node"] == "n1"
                     for nic in node["nics"]}
    self.assertTrue(wait_until(lambda: state().get("rail0") == "FAILED", PATIENCE_S, 0.1))
    before = self.lab.counters(0)["rail0"].sent_bytes
    grown = lambda: self.lab.counters(0)["rail0"].sent_bytes > before + (64 << 20)
    self.assertTrue(wait_until(grown, PATIENCE_S, 0.1), "the rail to the pod carries nothing any more")
    for process in ranks:
      self.assertNotIn("r2ccd took it out of use", process.errors())

  def unset_flux_protection(self, node: int) -> None:
    self.on(node, "for i in all rail0 rail1 rail2; do for s in arp_ignore arp_announce; do "
                  "echo 0 > /proc/sys/net/ipv4/conf/$i/$s; done; done")

  def test_arp_flux_uses_the_same_rails_at_each_start(self):
    self.make_lab(rails=3, fabric="full")
    for node in (0, 1):
      self.unset_flux_protection(node)
    with self.subTest("each rail has a routing table: all are used, whichever NIC answers"):
      for _ in range(2):
        ranks = self.start()
        self.expect_end(ranks)
        for process in ranks:
          self.assertEqual([rail for rail, sent in sorted(self.sent_gb(process).items()) if sent > 0], ["rail0", "rail1", "rail2"])

    for node in (0, 1):
      self.on(node, "for i in 0 1 2; do ip rule del lookup 10$i; done")
    with self.subTest("all leaves by the first"):
      for _ in range(3):
        ranks = self.start()
        self.expect_end(ranks)
        for process in ranks:
          output = self.expect_line(process, "WARN R2CC: not used: rail1, rail2, in one network")
          for sysctl in ("net.ipv4.conf.all.arp_ignore=1", "net.ipv4.conf.all.arp_announce=2", "rp_filter"):
            self.assertIn(sysctl, output)
          self.assertEqual(process.errors().count("not used: "), 1)
          self.assertEqual([rail for rail, sent in self.sent_gb(process).items() if sent > 0], ["rail0"])

  def test_packets_that_come_in_by_another_nic(self):
    self.make_lab(fabric="full")
    for node in (0, 1):
      for rail in (0, 1):
        self.on(node, f"ip addr flush dev rail{rail}; ip rule del lookup 10{rail}; ip addr add 10.10.{rail}.{node + 1}/24 dev rail{rail}")
    mac = json.loads(self.on(1, "ip -j link show dev rail0"))[0]["address"]
    # As if rail0 had been the first to answer for the address of rail1.
    self.on(0, f"ip neigh replace 10.10.1.2 lladdr {mac} dev rail1 nud permanent")
    # What n1 began before it knew is tried again after a second.
    ranks = self.start(("-b", "1M", "-e", "1M", "--seconds", "4"))
    self.expect_end(ranks)
    output = self.expect_line(ranks[1], "WARN R2CC: connections to 10.10.1.2 of rail1 come in by rail0: ")
    self.assertIn("net.ipv4.conf.all.arp_ignore=1", output)
    self.assertEqual(ranks[1].errors().count("come in by"), 1)
    for process in ranks:
      self.assertEqual([rail for rail, sent in sorted(self.sent_gb(process).items()) if sent > 0], ["rail0", "rail1"])

  def test_a_root_that_is_loopback_at_home(self):
    self.make_lab()
    hosts = []
    for node, address in ((0, "127.0.1.1"), (1, self.lab.management_address(0))):
      hosts.append(self.folder / f"hosts{node}")
      hosts[node].write_text(f"127.0.0.1 localhost\n{address} node0\n", encoding="utf-8")
    # `ip netns exec` has given the command a mount namespace of its own.
    before = tuple(("sh", "-ec", f'mount --bind {path} /etc/hosts; exec "$@"', "sh") for path in hosts)
    ranks = self.start(before=before, host="node0")
    self.expect_end(ranks)
    self.assertIn("--root", self.expect_line(ranks[0], "r2cc-perf: node0 is 127.0.1.1 on this machine"))
