"""The kernel's table of what interfaces carried. Pure."""


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
