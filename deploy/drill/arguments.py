"""The drill's flags. Pure."""

import argparse
import pathlib
from typing import Any, Callable, NoReturn, Sequence

from testing.lab.lab import LabError
from testing.lab.layout import rate_bits_per_s

EXIT_USAGE = 2


class OneLineParser(argparse.ArgumentParser):
  """Says what is wrong in one line, without the whole usage."""

  def error(self, message: str) -> NoReturn:
    self.exit(EXIT_USAGE, f"{self.prog}: {message} (--help lists the flags)\n")


def version_action(version: Callable[[], str]) -> type[argparse.Action]:
  """`version` is asked only when it is wanted: it asks programs."""

  class VersionAction(argparse.Action):
    """Shows it, and ends."""

    def __call__(self, parser, *_):
      print(version())
      parser.exit()

  return VersionAction


def make_parser(version: Callable[[], str]) -> argparse.ArgumentParser:
  parser = OneLineParser(prog="drill", description="//:drill: a cluster of 4 nodes on this machine runs an all_reduce while its rails are "
                         "taken away, and every byte is checked.", allow_abbrev=False)
  parser.add_argument("--version", action=version_action(version), nargs=0,
                      help="show the releases and protocols of the drill's programs, and end")
  parser.add_argument("--plugin", type=pathlib.Path, metavar="PATH", help="the net plugin to drive (default: the one built here)")
  parser.add_argument("--rig", choices=("tcp", "verbs"), default="tcp", help="verbs: 2 nodes of 2 RDMA rails (soft-RoCE) in one emulated "
                      "machine, the plugin alone without r2ccd; needs QEMU and the kernel that R2CC's bazelw unpacks, but no root "
                      "(default: %(default)s)")
  parser.add_argument("--no-root", action="store_true", help="rails are loopback addresses, also where namespaces would be possible")
  parser.add_argument("--root-required", action="store_true", help="fail instead of falling back to loopback addresses")
  parser.add_argument("--rate", default="500mbit", help="of one rail, in namespaces (default: %(default)s)")
  parser.add_argument("--no-daemon", action="store_true", help="no r2ccd: the plugin alone must survive (needs root)")
  parser.add_argument("--link-monitor", type=int, choices=(0, 1), default=1, help="0: the plugin's own link monitor is off")
  parser.add_argument("--quick", action="store_true", help="shorter phases; the figures are rougher")
  parser.add_argument("--json", action="store_true", help="the last line of the output is a JSON object; all else goes to standard error")
  parser.add_argument("--keep-logs", type=pathlib.Path, metavar="DIR", help="leave logs, configs and traces there")
  return parser


def parse_arguments(arguments: Sequence[str], version: Callable[[], str]) -> argparse.Namespace:
  parser = make_parser(version)
  options = parser.parse_args(arguments)
  if options.no_root and options.root_required:
    parser.error("--no-root and --root-required contradict each other")
  if options.no_root and options.no_daemon:
    parser.error("--no-daemon needs links that can be cut, and --no-root has none: faults on loopback come from r2ccd")
  if options.rig == "verbs":
    asked = {"--no-root": options.no_root, "--root-required": options.root_required, "--rate": options.rate != parser.get_default("rate"),
             "--link-monitor": not options.link_monitor}
    for flag in (flag for flag, given in asked.items() if given):
      parser.error(f"{flag} is for TCP rails: those of --rig verbs are in an emulated machine, as root, without a rate and without r2ccd")
    options.no_daemon = True
  if not options.link_monitor and options.no_daemon:
    parser.error("--link-monitor 0 and --no-daemon together leave nobody to see a fault")
  try:
    rate_bits_per_s(options.rate)
  except LabError as error:
    parser.error(str(error))
  return options


def describe(parser: argparse.ArgumentParser) -> dict[str, Any]:
  """The flags as --help_json of the other programs has them."""
  options = []
  for action in parser._actions:  # argparse shows them no other way
    choices = [str(choice) for choice in action.choices or ()]
    takes_value = action.nargs != 0 and bool(action.option_strings)
    options.append({
        "names": list(action.option_strings) or [str(action.metavar)],
        "value": (action.metavar or "|".join(choices) or action.dest.upper()) if takes_value else "",
        "text": (action.help or "") % {"default": action.default},
        # The text has it where it says more than the flags' absence.
        "default": "",
        "choices": choices,
        "positional": not action.option_strings,
        "required": action.required,
    })
  return {"name": parser.prog, "text": parser.description, "options": options, "commands": []}
