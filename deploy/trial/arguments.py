"""The command line of r2cc-try. Pure."""

import argparse
import pathlib
import shlex
from typing import Callable, Sequence

from deploy.drill.arguments import OneLineParser, version_action

PORT = 17460


def make_parser(version: Callable[[], str]) -> argparse.ArgumentParser:
  parser = OneLineParser(prog="r2cc-try", description="Runs an all_reduce between this machine and another one over two or more ports of "
                         "each, asks for a cable to be pulled, and shows how the job fared. It needs R2CC's packages on both machines, and "
                         "ssh to the other one. Nothing is configured, and nothing is left behind.", allow_abbrev=False)
  parser.add_argument("--version", action=version_action(version), nargs=0, help="show the releases and protocols of the programs, and end")
  parser.add_argument("ports", metavar="PORTS", help="this machine's ports, comma separated: eth1,eth2")
  parser.add_argument("--peer", required=True, metavar="HOST", help="the other machine, as ssh takes it")
  parser.add_argument("--peer-ports", metavar="PORTS", help="the other machine's ports, each cabled to the one at the same place here "
                      "(default: the same names)")
  parser.add_argument("--ssh", default="ssh", metavar="COMMAND", help="what leads to the other machine, with its options "
                      "(default: %(default)s)")
  parser.add_argument("--fault", choices=("pull", "drill"), default="pull", help="drill: no cable is to be pulled; r2ccd treats a port as "
                      "dead for a while (default: %(default)s)")
  parser.add_argument("--wait", type=float, default=180, metavar="SECONDS", help="how long to wait for a person, each time "
                      "(default: %(default)s)")
  parser.add_argument("--phase", type=float, default=6, metavar="SECONDS", help="how long the job runs before, during and after the fault "
                      "(default: %(default)s)")
  parser.add_argument("--size", default="64M", help="of each all_reduce (default: %(default)s)")
  parser.add_argument("--port", type=int, default=PORT, help="TCP and UDP port of the trial's r2ccd on both machines; the next one is the "
                      "job's (default: %(default)s)")
  parser.add_argument("--keep-logs", type=pathlib.Path, metavar="DIR", help="leave logs and configurations there")
  return parser


def parse_arguments(arguments: Sequence[str], version: Callable[[], str]) -> argparse.Namespace:
  """With `pairs`, the ports of both machines that are cabled to each other."""
  parser = make_parser(version)
  options = parser.parse_args(arguments)
  here = options.ports.split(",")
  there = (options.peer_ports or options.ports).split(",")
  for ports in (here, there):
    if "" in ports or len(set(ports)) != len(ports):
      parser.error(f"'{','.join(ports)}': want interfaces, comma separated, each once")
  if len(here) < 2:
    parser.error(f"'{options.ports}' is one port: a cable can be survived where there is another")
  if len(here) != len(there):
    parser.error(f"{len(here)} ports here and {len(there)} at {options.peer}: each needs one at the other end")
  if not 1024 <= options.port < 65535:
    parser.error(f"--port is 1024 to 65534, not {options.port}")
  if options.peer.startswith("-"):
    parser.error(f"--peer is a host, not '{options.peer}'")
  try:
    options.ssh_command = shlex.split(options.ssh)
  except ValueError as error:
    parser.error(f"--ssh '{options.ssh}': {error}")
  if not options.ssh_command:
    parser.error("--ssh is empty")
  options.pairs = list(zip(here, there))
  return options
