"""What every source file of the tree keeps to. Each rule is a function from one file to its violations, as (line number, message).

A new rule: a function here, decorated with @rule, and a specimen in rules_test.py that breaks it. Exceptions stand in allowed.py.
"""

import dataclasses
import re

from tests.tidy.folder_table import MAY_INCLUDE, NEED_ROWS, may_include, within

COLUMNS_MAX = 140
FILE_LINES_MAX = 400
TUNING = "netplugin/flow/tuning.h"

CPP = (".cc", ".h", ".cu", ".cuh")
CODE = CPP + (".css", ".html", ".js", ".mjs", ".py", ".sh", ".bzl", ".bazel", ".proto")


@dataclasses.dataclass(frozen=True)
class Source:
  """One file: its path from the workspace root, with forward slashes, and its text."""
  path: str
  text: str

  @property
  def lines(self):
    return self.text.split("\n")

  def is_code(self):
    return self.path.endswith(CODE) or self.path in ("bazelw", ".ci/long", ".ci/run")

  def is_cpp(self):
    return self.path.endswith(CPP)

  def is_test(self):
    return self.path.startswith("tests/") or re.search(r"_test\.(cc|h|py)$", self.path) is not None

  def is_program(self):
    """Holds a main(): the place where the outside world is read."""
    return self.is_cpp() and re.search(r"^int main\(", self.text, re.MULTILINE) is not None

  def code_lines(self):
    """C++ lines by number, without comments and the inside of string literals."""
    in_comment = False
    for number, line in enumerate(self.lines, 1):
      line = re.sub(r'"(?:[^"\\]|\\.)*"', '""', line) if not line.lstrip().startswith("#include") else line
      if in_comment:
        end = line.find("*/")
        if end < 0:
          continue
        line, in_comment = line[end + 2:], False
      line = re.sub(r"/\*.*?\*/", "", line.split("//")[0])
      if "/*" in line:
        line, in_comment = line.split("/*")[0], True
      yield number, line


RULES = {}


def rule(function):
  """Registers `function` under its name."""
  RULES[function.__name__] = function
  return function


def _matches(source, pattern, message):
  for number, line in source.code_lines():
    found = re.search(pattern, line)
    if found:
      yield number, message.format(found.group(0).rstrip("( "))


@rule
def sleeps(source):
  """Whoever sleeps cannot be stopped and hides a missing event."""
  if source.is_cpp():
    calls = r"\b(sleep_for|sleep_until|usleep|nanosleep|clock_nanosleep|absl::SleepFor)\b|(?<![\w.>:])(::|std::)?sleep\("
    yield from _matches(source, calls, "{} waits for time, not for an event")


@rule
def environment(source):
  """The environment is read in one place per program, so that everything else takes values."""
  if source.is_cpp() and not source.is_program() and not source.path.startswith("netplugin/config/") and not source.is_test():
    yield from _matches(source, r"\b(secure_)?getenv\b|\benviron\b", "{} outside netplugin/config and a main file")


@rule
def clocks(source):
  """Time is an argument; base/core/clock.cc is where it comes from."""
  if source.is_cpp() and source.path != "base/core/clock.cc" and not source.is_program() and not source.is_test():
    calls = r"\b(clock_gettime|gettimeofday|\w+_clock::now|absl::Now|absl::GetCurrentTimeNanos|gpr_now)\b|(?<![\w.>])time\(nullptr\)"
    yield from _matches(source, calls, "{} outside base/core/clock.cc: take the time as an argument or a Clock")


@rule
def marks_of_unfinished_work(source):
  """A thing to do is an issue, not a comment."""
  for number, line in enumerate(source.lines, 1):
    found = re.search(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b", line)
    if found:
      yield number, f"{found.group(0)}: finish it or open an issue"


@rule
def outside_references(source):
  """The project speaks of itself alone."""
  for number, line in enumerate(source.lines, 1):
    if re.search(r"\.\./sha" + r"red|/wo" + r"rk/|\bDESIGN" + r"\.md\b", line):
      yield number, "refers to something outside the project"


@rule
def long_lines(source):
  """140 columns."""
  if source.is_code():
    for number, line in enumerate(source.lines, 1):
      if len(line) > COLUMNS_MAX:
        yield number, f"{len(line)} columns, at most {COLUMNS_MAX}"


@rule
def long_files(source):
  """A long file holds policy and I/O together: part them."""
  if source.is_code() and source.text.count("\n") > FILE_LINES_MAX:
    yield source.text.count("\n"), f"{source.text.count(chr(10))} lines, at most {FILE_LINES_MAX}: part policy from I/O"


@rule
def blanks(source):
  """No tabs or blanks at a line's end, one newline at the file's."""
  if source.is_code():
    for number, line in enumerate(source.lines, 1):
      if line != line.rstrip():
        yield number, "blanks at the end of the line"
      if "\t" in line:
        yield number, "a tab"
    if source.text and (not source.text.endswith("\n") or source.text.endswith("\n\n")):
      yield len(source.lines), "the file does not end with one newline"


@rule
def include_guards(source):
  """R2CC_PATH_TO_FILE_H_, so that no two collide."""
  if source.path.endswith(".h"):
    guard = "R2CC_" + re.sub(r"\W", "_", source.path).upper() + "_"
    for line in (f"#ifndef {guard}", f"#define {guard}", f"#endif  // {guard}"):
      if line not in source.lines:
        yield 1, f"lacks `{line}`"


OUR_FOLDERS = ("base/", "bazel/", "client/", "daemon/", "deploy/", "health/", "nccl/", "netplugin/", "observe/", "plan/", "proto/",
               "testing/", "tests/", "tools/")
# These run inside somebody else's process: nothing that may be there in another version.
PLAIN_FOLDERS = ("base/core/", "nccl/", "netplugin/", "observe/", "plan/", "tools/")
LIBRARIES = r"^(absl|grpc|grpcpp|google|spdlog|fmt|CLI)/"
# r2cc-perf is a program of its own: it may parse its flags with CLI11.
PERF_LIBRARIES = r"^(absl|grpc|grpcpp|google|spdlog|fmt)/"


# Policy: facts in, actions out. Nothing in these folders can touch the machine, wait, or be called by two threads at a time.
PURE_FOLDERS = ("health/view/", "netplugin/collnet/", "netplugin/flow/", "netplugin/link/", "netplugin/tuner/",
                "observe/admission/", "observe/gather/", "observe/record/", "plan/")
# The page and the ring are shared memory: what touches it stands beside what is in it.
NOT_PURE_FOLDERS = ("plan/page/",)
# Headers by name, not those to keep out: the system has more than anybody would list.
PURE_HEADERS = set("""
    algorithm array bit cctype charconv cmath compare concepts cpuid.h cstddef cstdint cstdio cstdlib cstring deque functional
    initializer_list iterator limits map memory numeric optional queue random set span string string_view tuple type_traits unordered_map
    utility variant vector gmock/gmock.h gtest/gtest.h immintrin.h xmmintrin.h""".split())
SHARED_STATE = (r"\bstd::(atomic\w*|condition_variable\w*|future|jthread|lock_guard|mutex|once_flag|scoped_lock|shared_lock|shared_mutex|"
                r"this_thread|thread|unique_lock)\b|\bthread_local\b|\b(CondVar|Mutex|MutexLock|SteadyClock)\b")


@rule
def folders(source):
  """Who may include whom: the street has one way."""
  if not source.is_cpp() or source.path.startswith("tests/"):
    return
  bound = max((folder for folder in MAY_INCLUDE if within(source.path, folder)), key=len, default=None)
  if bound in NEED_ROWS and source.path.rpartition("/")[0] != bound:
    yield 1, f"{source.path.rpartition('/')[0]}/ has no row in MAY_INCLUDE"
  for number, line in enumerate(source.lines, 1):
    found = re.match(r'\s*#\s*include\s*([<"])([^">]+)[">]', line)
    if not found:
      continue
    included = found.group(2)
    if included.startswith("."):
      yield number, f"{included}: includes are named from the workspace root"
    elif bound is not None and included.startswith(OUR_FOLDERS) and not may_include(bound, included):
      yield number, f"{bound}/ may not include {included}"
    elif source.path.startswith(PLAIN_FOLDERS) and re.match(PERF_LIBRARIES if bound == "tools/perf" else LIBRARIES, included):
      yield number, f"{included}: the plugin and what it is made of use the standard library alone"


@rule
def pure_rooms(source):
  """Policy is a pure function of values: it can be proved by reading it, and tested in virtual time."""
  if not source.is_cpp() or not source.path.startswith(PURE_FOLDERS) or source.path.startswith(NOT_PURE_FOLDERS):
    return
  for number, line in enumerate(source.lines, 1):
    found = re.match(r"\s*#\s*include\s*<([^>]+)>", line)
    if found and found.group(1) not in PURE_HEADERS:
      yield number, f"<{found.group(1)}>: this folder is pure; what touches the machine, or is shared by threads, stands outside"
  yield from _matches(source, SHARED_STATE, "{}: this folder is pure, its callers have the threads and the time")


STANDARD_MUTEXES = r"\bstd::(condition_variable\w*|(recursive_|shared_|timed_)*mutex|lock_guard|scoped_lock|shared_lock|unique_lock)\b"


@rule
def mutexes(source):
  """Clang proves what a mutex guards (.ci/long clang), so each one says it, and none is libstdc++'s, which has no annotations."""
  for_tests = source.is_test() or re.search(r"(^|/)(fake|faulty|stub)_\w+\.(cc|h)$|_(fixture|rig)\.(cc|h)$", source.path)
  if not source.is_cpp() or for_tests or source.path.startswith("bazel/") or source.path == "base/core/mutex.h":
    return
  yield from _matches(source, STANDARD_MUTEXES, "{}: Clang cannot follow it; use base/core/mutex.h, in daemon and client absl::Mutex")
  for number, line in source.code_lines():
    found = re.match(r"\s*(?:mutable |static )*(?:absl::|r2cc::)?Mutex (\w+)(?: R2CC_\w+\(.*\))?;", line)
    if found and not re.search(rf"GUARDED_BY\({found.group(1)}\)", source.text):
      yield number, f"{found.group(1)}: no member of this file is GUARDED_BY it"


# By its type, by the unit at the end of its name, or by a unit in its value; initialised with = or with braces, an array too.
TIME_CONSTANT = (r"\bconst(?:expr)? (?:[^=;({]*\bNanos\b[^=;({]* k[A-Z]\w*|[^=;({]* k[A-Z]\w*[a-z0-9](?:Ns|Us|Ms|S|Seconds)) ?[={[]|"
                 r"\bconst(?:expr)? [^=;({]* k[A-Z]\w* ?[={][^;]*\bkNanosPer\w+")


@rule
def times_of_the_data_plane(source):
  """How long the data plane waits, and how often it looks, is in one header, with the reason and the measurement."""
  planes = ("netplugin/collnet/", "netplugin/flow/", "netplugin/link/", "netplugin/rails/", "netplugin/transport/")
  fake = source.path.rsplit("/", 1)[-1].startswith("fake_")
  if source.is_cpp() and source.path.startswith(planes) and source.path != TUNING and not source.is_test() and not fake:
    yield from _matches(source, TIME_CONSTANT, "{} outside " + TUNING)


# The one place that knows ibverbs, the stub that its test opens instead, and the library that stands before the machine's.
KNOW_IBVERBS = ("base/core/verbs/libibverbs", "base/core/verbs/stub_libibverbs", "tests/rigs/faulty_libibverbs/")


@rule
def ibverbs(source):
  """RDMA goes through the seam: a machine without the library has no devices, and the fake fabric stands for all of it."""
  if source.is_cpp() and not source.path.startswith(KNOW_IBVERBS):
    for number, line in enumerate(source.lines, 1):
      if re.match(r"\s*#\s*include\s*<(infiniband/(verbs|mlx5dv|efadv)|rdma/\w+)\.h>", line):
        yield number, "ibverbs outside base/core/verbs/libibverbs: use base/core/verbs/verbs.h"


@rule
def too_new_for_old_glibc(source):
  """std::random_device of the static libstdc++ needs glibc 2.36; the plugin runs on 2.34."""
  if source.is_cpp() and source.path.startswith(PLAIN_FOLDERS) and not source.is_test():
    yield from _matches(source, r"\brandom_device\b|\barc4random\w*", "{} needs a glibc newer than 2.34: use getrandom()")


# Bazel looks at a target's labels only when it builds the target, and few builds reach the long tier.
_LABEL = re.compile(r'"//(?!visibility|conditions)([\w./-]*)(?::(?!__)|")')


def missing_packages(sources):
  """Labels of the BUILD files whose folder is no package: (path, message)."""
  builds = [source for source in sources if source.path.endswith("BUILD.bazel")]
  packages = {source.path.removesuffix("BUILD.bazel").rstrip("/") for source in builds}
  for source in builds:
    for package in sorted(set(_LABEL.findall(source.text)) - packages):
      yield source.path, f"//{package} is no package"


def unbuilt_files(sources):
  """Of all sources of the tree, those that no BUILD file names and no room holds: (path, message)."""
  packages = {source.path[:-len("BUILD.bazel")]: source.text for source in sources if source.path.endswith("BUILD.bazel")}
  for source in sources:  # a package's own macros may name files too
    folder = source.path.rpartition("/")[0] + "/"
    if source.path.endswith(".bzl") and folder in packages:
      packages[folder] += source.text
  for source in sources:
    stem, dot, end = source.path.rpartition(".")
    if dot + end not in (".cc", ".h", ".py", ".proto"):
      continue
    folder = max((folder for folder in packages if source.path.startswith(folder)), key=len, default=None)
    text = packages.get(folder, "")
    named = re.search(rf'["/:]{re.escape(source.path[len(folder or ""):])}"', text)
    composed = f'+ ".{end}"' in text and f'"{stem[len(folder or ""):]}"' in text  # srcs = [name + ".py"]
    in_folder = "/" not in source.path[len(folder or ""):]
    by_glob = in_folder and (f'glob(["*.{end}"])' in text or end in ("cc", "h") and re.search(r"^room\(", text, re.MULTILINE))
    if not named and not composed and not by_glob:
      yield source.path, f"no target of {folder or '/'}BUILD.bazel holds it"


def _classes(source):
  """The classes that other files can see, with their namespaces: those of no namespace without a name."""
  namespaces = []
  for line in source.lines:
    opened = re.match(r"(?:inline )?namespace\s*([\w:]*)\s*\{", line)
    defined = re.match(r"(?:class|struct|union)\s+(\w+)(?: final)?(?:\s*:(?!:).*)?\s*\{", line)
    if opened:
      namespaces.append(opened.group(1))
    elif re.match(r"\}\s*// namespace", line) and namespaces:
      namespaces.pop()
    elif defined and "" not in namespaces:
      yield "::".join(namespaces + [defined.group(1)])


def double_classes(sources):
  """Classes that several files define, as (path, message): in one program the linker takes one of them for all, without a word."""
  places = {}
  for source in sources:
    if source.is_cpp() and not source.path.startswith("tests/"):
      for name in _classes(source):
        places.setdefault(name, []).append(source.path)
  for name, paths in places.items():
    for path in paths[1:]:
      yield path, f"{name} is in {paths[0]}, too: one unit test holds both"
