"""The true result of some `bazel test`s: `N passed, N failed, N skipped` test cases as the last line, exit status 1 on any failure.

Bazel counts targets, and a skipped test as passed. This counts cases: Bazel's own record of the run (--build_event_json_file)
says which targets there are and how each ended, each target's test.xml which cases it had. What should have run and did not is
a failure: a target that was not built, timed out, crashed after its last case, passed only when it was tried again, or has no case
at all. A pass that was not run but remembered counts, and the line before the last says how many of them there are.

Usage: ci_summary.py NAME EVENTS_JSON BAZEL_EXIT_CODE [NAME EVENTS_JSON BAZEL_EXIT_CODE]...
NAME begins each line about that `bazel test`, which may be the same targets built in another way. ci_times.py judges what they cost.
"""

import collections
import dataclasses
import json
import pathlib
import re
import sys
import urllib.parse
import xml.etree.ElementTree as ElementTree

from bazel import ci_times

# Exit statuses of `bazel test --keep_going` that say no more than the failures found: something did not build, some test failed.
_EXIT_BUILD_FAILED, _EXIT_TESTS_FAILED = 1, 3
# A package that cannot be loaded has no event of its own: Bazel only says so.
_BROKEN_PACKAGE = re.compile(r"package contains errors: (\S+)")
_GOOD_STATUS = "PASSED"
_BUDGETS = pathlib.Path(__file__).with_name("ci_budgets.txt")


@dataclasses.dataclass
class Counts:
  """What a test.xml, or the whole run, amounts to."""
  passed: int = 0
  cached: int = 0  # of those
  failed: list = dataclasses.field(default_factory=list)  # one line each
  skipped: list = dataclasses.field(default_factory=list)
  costs: dict = dataclasses.field(default_factory=dict)  # of targets that ran: label -> ci_times.Cost

  def add(self, other):
    self.passed += other.passed
    self.cached += other.cached
    self.failed += other.failed
    self.skipped += other.skipped


def _message(element):
  """What an element says, as one line of readable length."""
  return " ".join((element.get("message") or element.text or "").split())[:240]


def count_cases(label, xml_text):
  """The cases of one test.xml, as GoogleTest, unittest_main.py or Bazel itself writes it. ValueError if it cannot be read."""
  try:
    root = ElementTree.fromstring(xml_text)
  except ElementTree.ParseError as error:
    raise ValueError(f"broken test.xml: {error}") from error
  counts = Counts()
  for case in root.iter("testcase"):
    name = ".".join(part for part in (case.get("classname"), case.get("name")) if part)
    bad = case.find("failure")
    if bad is None:
      bad = case.find("error")
    skip = case.find("skipped")
    if bad is not None:  # also a skip that R2CC_REQUIRE does not allow: GoogleTest writes both
      counts.failed.append(f"{label} {name}: {_message(bad)}")
    elif skip is not None:
      counts.skipped.append(f"{label} {name}: {_message(skip)}")
    elif case.get("status") == "notrun" or case.get("result") in ("suppressed", "skipped"):
      counts.skipped.append(f"{label} {name}: disabled")
    else:
      counts.passed += 1
  return counts


def _read_local(uri):
  parts = urllib.parse.urlsplit(uri)
  if parts.scheme != "file":
    raise OSError(f"{uri} is not a local file")
  with open(urllib.parse.unquote(parts.path), encoding="utf-8", errors="replace") as file:
    return file.read()


def _was_cached(result):
  """True if Bazel has not run it: from its own memory (local) or the disk cache, which it calls remote."""
  return bool(result.get("cachedLocally") or result.get("executionInfo", {}).get("cachedRemotely"))


def _add_cost(costs, label, result, read):
  """To `costs`, unless it was remembered."""
  if _was_cached(result):
    return
  cpu_s = None
  for output in result.get("testActionOutput", []):
    if output.get("name") == "test.xml" and "uri" in output:
      try:
        cpu_s = ci_times.cpu_seconds(read(output["uri"]))
      except (OSError, ValueError):
        pass
  costs.setdefault(label, ci_times.Cost()).add(int(result.get("testAttemptDurationMillis", 0)) / 1000, cpu_s)


def _count_attempt(label, result, read):
  """The cases of one run of one shard, made to agree with what Bazel says of it."""
  counts = _count_cases_of(label, result, read)
  counts.cached = counts.passed if _was_cached(result) else 0
  return counts


def _count_cases_of(label, result, read):
  status = result.get("status", "NO_STATUS")
  good = status == _GOOD_STATUS
  uris = [output["uri"] for output in result.get("testActionOutput", []) if output.get("name") == "test.xml" and "uri" in output]
  if not uris:
    return Counts(passed=1) if good else Counts(failed=[f"{label}: {status}"])
  try:
    counts = count_cases(label, read(uris[0]))
  except (OSError, ValueError) as error:
    return Counts(failed=[f"{label}: {status}, {error}"])
  if not good and not counts.failed:
    counts.failed.append(f"{label}: {status} although no case failed")
  elif good and not (counts.passed or counts.failed or counts.skipped):
    counts.failed.append(f"{label}: has no test case")
  return counts


def summarize(events, bazel_exit_code, read=_read_local):
  """Counts of a whole run. `events` are the dicts of the build event file, `read` gives a test.xml's text for its URI."""
  tests, others, broken = {}, set(), {}
  attempts = collections.defaultdict(dict)  # label -> (run, shard) -> (attempt, result)
  overall = {}
  for event in events:
    event_id = event.get("id", {})
    kind = next(iter(event_id), "")
    label = event_id.get(kind, {}).get("label") if isinstance(event_id.get(kind), dict) else None
    if kind == "targetConfigured" and "configured" in event:
      configured = event["configured"]
      if "testSize" in configured or configured.get("targetKind", "").endswith("_test rule"):
        tests[label] = True
      else:
        others.add(label)
    elif kind == "testResult" and "testResult" in event:
      key = (event_id[kind].get("run", 1), event_id[kind].get("shard", 1))
      attempt = event_id[kind].get("attempt", 1)
      if attempt >= attempts[label].get(key, (0, None))[0]:
        attempts[label][key] = (attempt, event["testResult"])
    elif kind == "testSummary" and "testSummary" in event:
      overall[label] = event["testSummary"].get("overallStatus", "NO_STATUS")
    elif kind == "targetCompleted" and not event.get("completed", {}).get("success"):
      broken.setdefault(label, "did not build")
    elif kind == "progress":
      for package in _BROKEN_PACKAGE.findall(event.get("progress", {}).get("stderr", "")):
        broken.setdefault(f"//{package}", "its BUILD file has errors")
    elif "aborted" in event and kind in ("pattern", "patternSkipped", "unconfiguredLabel", "configuredLabel", "targetConfigured"):
      what = label or " ".join(event_id[kind].get("pattern", [])) or kind
      broken.setdefault(what, f"{event['aborted'].get('reason', 'aborted')}: {event['aborted'].get('description', '').strip()}".strip(": "))

  total = Counts()
  for label in tests:
    if label not in attempts:
      total.failed.append(f"{label}: {broken.get(label) or 'never ran (' + overall.get(label, 'NO_STATUS') + ')'}")
      continue
    counts = Counts()
    for _, result in attempts[label].values():
      counts.add(_count_attempt(label, result, read))
      _add_cost(total.costs, label, result, read)
    if overall.get(label) != _GOOD_STATUS and not counts.failed:
      counts.failed.append(f"{label}: {overall.get(label, 'did not finish')}")
    total.add(counts)
  total.failed += [f"{label}: {why}" for label, why in broken.items() if label not in tests]
  if not tests:
    total.failed.append("bazel found no test")
  explained = bazel_exit_code == 0 or (bazel_exit_code in (_EXIT_BUILD_FAILED, _EXIT_TESTS_FAILED) and total.failed)
  if not explained:
    total.failed.append(f"bazel test ended with exit status {bazel_exit_code}")
  return total


def read_events(path):
  """The build event file's lines; a last line that was cut off when Bazel died is left out."""
  events = []
  with open(path, encoding="utf-8") as file:
    for line in file:
      try:
        events.append(json.loads(line))
      except ValueError:
        break
  return events


def main(arguments):
  runs = [arguments[at:at + 3] for at in range(0, len(arguments), 3)]
  if not runs or any(len(run) != 3 or not run[2].lstrip("-").isdigit() for run in runs):
    print("usage: ci_summary.py NAME EVENTS_JSON BAZEL_EXIT_CODE [NAME EVENTS_JSON BAZEL_EXIT_CODE]...", file=sys.stderr)
    return 2
  total = Counts()
  costs = {}
  for name, path, exit_code in runs:
    try:
      events = read_events(path)
    except OSError as error:
      print(f"ci_summary: Bazel left no record of the run: {error}", file=sys.stderr)
      events = []
    counts = summarize(events, int(exit_code))
    for title, lines in (("skipped", counts.skipped), ("FAILED", counts.failed)):
      for line in lines:
        print(f"{title}: {name}: {line}")
    total.add(counts)
    costs.update({(name, label): cost for label, cost in counts.costs.items()})
  warnings, failures = ci_times.judge(costs, ci_times.parse_budgets(_BUDGETS.read_text(encoding="utf-8")))
  for line in ci_times.slowest(costs) + [f"over budget: {line}" for line in warnings] + [f"FAILED: {line}" for line in failures]:
    print(line)
  total.failed += failures
  print(f"of the cases that passed, {total.cached} were remembered from an earlier run and {total.passed - total.cached} run now")
  print(f"{total.passed} passed, {len(total.failed)} failed, {len(total.skipped)} skipped")
  return 1 if total.failed else 0


if __name__ == "__main__":
  sys.exit(main(sys.argv[1:]))
