"""Tensor taps without a GPU, CUDA, PyTorch or NumPy: a toy model of the standard library is tapped and read back; then a small ring is
overrun on purpose, and the gap shows."""

import array
import os

from r2cc import observe


class Module:
  """As much of torch.nn.Module as taps need: names and hooks."""

  def __init__(self, **children):
    self.children, self._before, self._after = children, [], []

  def named_modules(self, prefix=""):
    yield prefix, self
    for name, child in self.children.items():
      yield from child.named_modules(f"{prefix}.{name}" if prefix else name)

  class _Handle:
    def __init__(self, hooks, hook):
      self._hooks, self._hook = hooks, hook
      hooks.append(hook)

    def remove(self):
      self._hooks.remove(self._hook)

  def register_forward_pre_hook(self, hook):
    return self._Handle(self._before, hook)

  def register_forward_hook(self, hook):
    return self._Handle(self._after, hook)

  def __call__(self, *arguments):
    for hook in self._before:
      hook(self, arguments)
    output = self.forward(*arguments)
    for hook in self._after:
      hook(self, arguments, output)
    return output

  def forward(self, value):
    for child in self.children.values():
      value = child(value)
    return value


class Scale(Module):
  """Multiplies each element."""

  def __init__(self, by):
    super().__init__()
    self._by = by

  def forward(self, value):
    return observe.point("scaled", array.array("f", [self._by * x for x in value]))


def main():
  model = Module(first=Scale(2.0), second=Scale(-0.5))
  run = f"first-{os.getpid()}"

  print("What it costs:")
  print(observe.plan(model, ["*", "second:stats"], array.array("f", [0, 0, 0, 0])))

  print("\nThree steps of a run, each with the ids of its requests:")
  ids = array.array("q", [0])
  with observe.attach(model, ["*", "second:stats", "scaled:hash"], run=run, tags={"request": ids}) as taps:
    reader = observe.read(run)
    for number in range(3):
      ids[0] = 100 + number
      model(array.array("f", [number, 1, 2, 3]))
    print("  the producer:", taps.counters())
  for item in reader:
    print(f"  step {item.number}, request {item.tags['request'].tolist()}: second = {item['second'].tolist()}, "
          f"{item['second:stats'].numbers()[0]}")
  print("  the reader:  ", reader.counts())
  reader.close()

  print("\nA ring of 8 KiB, and a reader that reads nothing until the end:")
  small = observe.Policy(host_mib=8 / 1024)
  with observe.attach(model, ["second"], run=run, policy=small) as taps:
    reader = observe.read(run)
    for number in range(100):
      model(array.array("f", [number] * 64))
    produced = taps.counters()
  steps, gaps = [], []
  for item in reader:
    (steps if isinstance(item, observe.Step) else gaps).append(item)
  for item in steps[:2] + gaps:
    print("  ", item if isinstance(item, observe.Gap) else f"step {item.number}, whole")
  read = reader.counts()
  reader.close()
  print(f"   {len(steps)} of {produced['steps']} steps are whole, {sum(gap.lost for gap in gaps)} are known to be absent")
  causes = ("steps", "records", "dropped_device", "dropped_host", "unwanted")
  assert [read[cause] for cause in causes] == [produced[cause] for cause in causes], "the two sides must agree"
  assert gaps and len(steps) + sum(gap.steps for gap in gaps) == 100
  print("   producer and reader agree on every count")


if __name__ == "__main__":
  main()
