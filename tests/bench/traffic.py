"""The kernel's tables of what a namespace has sent. Pure."""


def sent_bytes(text: str) -> dict[str, int]:
  """By interface, of /proc/PID/net/dev."""
  sent = {}
  for line in text.splitlines()[2:]:
    name, _, numbers = line.partition(":")
    sent[name.strip()] = int(numbers.split()[8])
  return sent


def busiest(before: dict[str, int], after: dict[str, int], names: list[str]) -> str:
  """Which of `names` sent most in between."""
  return max(names, key=lambda name: after[name] - before[name])


def tcp_timeouts(text: str) -> int:
  """How often a connection waited in vain for an acknowledgement until it sent anew, of /proc/PID/net/netstat; attempts to connect too."""
  lines = [line.split() for line in text.splitlines() if line.startswith("TcpExt:")]
  return int(dict(zip(*lines))["TCPTimeouts"])
