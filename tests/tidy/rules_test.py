"""Each rule against a file that breaks it and one that keeps it."""

import unittest

from tests.tidy import folder_table, rules

# rule -> (path, text that breaks it, text that keeps it)
SPECIMENS = {
    "sleeps": [
        ("daemon/a.cc", "std::this_thread::sleep_for(x);\n", "Wait(x);  // not sleep_for\n"),
        ("tests/a_test.cc", "usleep(5);\n", 'Log("usleep(5)");\n'),
        ("daemon/a.cc", "  sleep(1);\n", "  clock.sleep(1);\n"),
    ],
    "environment": [
        ("daemon/a.cc", 'x = getenv("A");\n', "/* getenv */ x = 1;\n"),
        ("daemon/a.cc", 'x = std::getenv("A");\n', 'int main(int argc, char** argv) {\n  x = std::getenv("A");\n}\n'),
    ],
    "clocks": [
        ("netplugin/a.cc", "clock_gettime(CLOCK_MONOTONIC, &t);\n", "clock.Now();\n"),
        ("health/a.cc", "auto t = std::chrono::steady_clock::now();\n", "/*\nsteady_clock::now()\n*/\n"),
        ("health/a.cc", "auto t = absl::Now();\n", "auto t = now;\n"),
    ],
    "marks_of_unfinished_work": [("README.md", "TO" + "DO: this\n", "to do this\n"), ("a.py", "# FIX" + "ME\n", "# fixed\n")],
    "outside_references": [("README.md", "see ../sha" + "red/x\n", "shared\n"), ("a.cc", "// DESIGN" + ".md\n", "// ARCHITECTURE.md\n")],
    "long_lines": [("a.py", "x" * 141 + "\n", "x" * 140 + "\n"), ("bazelw", "x" * 141 + "\n", "x\n")],
    "long_files": [("a.cc", "x\n" * 401, "x\n" * 400)],
    "blanks": [("a.cc", "x \n", "x\n"), ("a.cc", "\tx\n", "  x\n"), ("a.cc", "x", "x\n"), ("a.cc", "x\n\n", "x\n")],
    "include_guards": [
        ("plan/page/page.h", "#pragma once\n",
         "#ifndef R2CC_PLAN_PAGE_PAGE_H_\n#define R2CC_PLAN_PAGE_PAGE_H_\n#endif  // R2CC_PLAN_PAGE_PAGE_H_\n"),
    ],
    "ibverbs": [
        ("netplugin/transport/verbs/a.cc", "#include <infiniband/verbs.h>\n", '#include "base/core/verbs/verbs.h"\n'),
        ("daemon/a.cc", "#include <rdma/rdma_cma.h>\n", "#include <infiniband/umad.h>\n"),
    ],
    "folders": [
        ("netplugin/flow/a.cc", '#include "absl/strings/str_cat.h"\n', "#include <string>\n"),
        ("netplugin/flow/a.cc", "#include <google/protobuf/message.h>\n", '#include "plan/model.h"\n'),
        ("netplugin/flow/a.cc", '#include "health/view/view.h"\n', '#include "netplugin/flow/types.h"\n'),
        ("netplugin/flow/a.cc", '#include "netplugin/link/frame.h"\n', '#include "netplugin/flow/stripe.h"\n'),
        ("netplugin/flow/a.cc", '#include "plan/page/ring.h"\n', '#include "plan/model.h"\n'),
        ("netplugin/flow/a.cc", '#include "netplugin/transport/links.h"\n', '#include "base/core/check.h"\n'),
        ("netplugin/link/a.cc", '#include "netplugin/transport/links.h"\n', '#include "netplugin/flow/stripe.h"\n'),
        ("netplugin/link/a.cc", '#include "plan/page/page.h"\n', '#include "plan/page/ring.h"\n'),
        ("netplugin/collnet/a.cc", '#include "netplugin/transport/engine.h"\n', '#include "plan/schedule/schedule.h"\n'),
        ("netplugin/tuner/a.cc", '#include "netplugin/config/config.h"\n', '#include "netplugin/abi/nccl_types.h"\n'),
        ("netplugin/rails/a.cc", '#include "netplugin/config/log.h"\n', '#include "netplugin/rails/rails.h"\n'),
        ("netplugin/flow/a.cc", '#include "base/log.h"\n', '#include "base/core/clock.h"\n'),
        ("netplugin/link/a.cc", '#include "tools/perf/flow.h"\n', '#include "netplugin/link/frame.h"\n'),
        ("tools/perf/a.cc", '#include "netplugin/link/link.h"\n', '#include "netplugin/abi/net_v8.h"\n'),
        ("tools/perf/a.cc", "#include <absl/status/status.h>\n", "#include <CLI/CLI.hpp>\n"),
        ("netplugin/rails/a.cc", "#include <CLI/CLI.hpp>\n", "#include <cstdint>\n"),
        ("netplugin/transport/a.cc", '#include "netplugin/transport/tcp/socket.h"\n', '#include "netplugin/link/frame.h"\n'),
        ("netplugin/transport/a.cc", '#include "netplugin/plugin/calls.h"\n', '#include "netplugin/transport/links.h"\n'),
        ("netplugin/transport/tcp/a.cc", '#include "netplugin/transport/peer.h"\n', '#include "netplugin/transport/tcp/socket.h"\n'),
        ("netplugin/transport/a.cc", '#include "netplugin/transport/verbs/device.h"\n', '#include "netplugin/transport/links.h"\n'),
        ("netplugin/transport/verbs/a.cc", '#include "netplugin/transport/tcp/socket.h"\n', '#include "netplugin/transport/links.h"\n'),
        ("netplugin/transport/tcp/a.cc", '#include "netplugin/attach/attach_client.h"\n', '#include "netplugin/transport/oob.h"\n'),
        ("netplugin/transport/os/a.cc", '#include "netplugin/transport/links.h"\n', '#include "netplugin/transport/os/poller.h"\n'),
        ("nccl/a.cc", '#include "netplugin/link/frame.h"\n', '#include "netplugin/abi/nccl_types.h"\n'),
        ("plan/a.cc", '#include "health/a.h"\n', '#include "plan/a.h"\n'),
        ("base/core/a.cc", '#include "base/log.h"\n', '#include "base/core/a.h"\n'),
        ("client/a.cc", '#include "daemon/a.h"\n', '#include "proto/r2cc.pb.h"\n'),
        ("client/core/a.cc", '#include "client/commands/request.h"\n', '#include "client/core/table.h"\n'),
        ("client/doctor/a.cc", '#include "client/format/format.h"\n', '#include "client/core/style.h"\n'),
        ("client/format/a.cc", '#include "client/run.h"\n', '#include "client/plan/plan_choices.h"\n'),
        ("client/commands/a.cc", '#include "client/arguments.h"\n', '#include "client/local/certs.h"\n'),
        ("health/io/a.cc", '#include "plan/model.h"\n', '#include "absl/status/status.h"\n'),
        ("health/probe/a.cc", '#include "health/view/node_state.h"\n', '#include "health/evidence/pair_state.h"\n'),
        ("health/view/a.cc", '#include "base/log.h"\n', '#include "base/core/clock.h"\n'),
        ("health/evidence/a.cc", '#include "health/view/localise.h"\n', '#include "health/evidence/evidence.h"\n'),
        ("daemon/a.cc", '#include "../base/log.h"\n', '#include "base/log.h"\n'),
        ("daemon/core/a.cc", '#include "daemon/io/store.h"\n', '#include "daemon/core/caller.h"\n'),
        ("daemon/io/a.cc", '#include "daemon/rpc/channel.h"\n', '#include "daemon/config/config.h"\n'),
        ("daemon/rpc/a.cc", '#include "daemon/services/core_backend.h"\n', '#include "daemon/trust/refusals.h"\n'),
        ("daemon/services/a.cc", '#include "daemon/wiring.h"\n', '#include "daemon/peers/peer_set.h"\n'),
        ("daemon/services/a.cc", '#include "daemon/program/r2ccd_rig.h"\n', '#include "daemon/page/pacer.h"\n'),
    ],
    "pure_rooms": [
        ("netplugin/link/a.cc", "#include <sys/socket.h>\n", "#include <cstdint>\n"),
        ("netplugin/flow/a.cc", "#include <unistd.h>\n", "#include <map>\n"),
        ("netplugin/flow/a.cc", "#include <netinet/tcp.h>\n", "// #include <netinet/tcp.h>\n"),
        ("netplugin/link/a.h", "#include <pthread.h>\n", "#include <functional>\n"),
        ("netplugin/link/a.h", "  # include <mutex>\n", '#include "netplugin/link/frame.h"\n'),
        ("netplugin/link/a_test.cc", "#include <thread>\n", "#include <gtest/gtest.h>\n"),
        ("netplugin/flow/a.h", "std::mutex mutex_;\n", "std::map<int, int> map_;\n"),
        ("netplugin/flow/a.h", "Mutex mutex_;\n", "std::set<int> a_;\n"),
        ("netplugin/flow/a.h", "std::atomic<int> a_;\n", "int a_;  // not std::atomic<int>\n"),
        ("netplugin/link/a.cc", "SteadyClock clock;\n", "Nanos now;\n"),
        ("netplugin/collnet/a.cc", "#include <atomic>\n", "#include <immintrin.h>\n"),
        ("netplugin/tuner/a.cc", "#include <atomic>\n", "#include <limits>\n"),
        ("health/view/a.cc", "#include <time.h>\n", '#include "base/core/clock.h"\n'),
        ("plan/a.cc", "#include <fcntl.h>\n", "#include <cmath>\n"),
    ],
    "times_of_the_data_plane": [
        ("netplugin/link/a.h", "  static constexpr Nanos kWait = kNanosPerSecond;\n", "  const Nanos wait = tuning::kWait;\n"),
        ("netplugin/transport/tcp/a.cc", "constexpr int kWaitMs = 5;\n", "constexpr int kMostBytes = 5;\n"),
        ("netplugin/collnet/a.cc", "constexpr double kQueuedSeconds = 0.1;\n", "constexpr double kQueued = 0.1;\n"),
        ("netplugin/link/a.cc", "constexpr Nanos kWait{5};\n", "constexpr Nanos Wait(int k) { return 5 * k; }\n"),
        ("netplugin/link/a.cc", "constexpr std::array<Nanos, 2> kWaits = {1, 2};\n", "constexpr std::array<int, 2> kTries = {1, 2};\n"),
        ("netplugin/link/a.cc", "constexpr Nanos kWaits[] = {1, 2};\n", "const Nanos kept = now - since;\n"),
        ("netplugin/transport/a.h", "constexpr int kIdleS = 5;\n", "constexpr int kTries = 5;\n"),
        ("netplugin/transport/a.h", "constexpr int64_t kWakeNs{5};\n", "constexpr int64_t kColumns{5};\n"),
        ("netplugin/transport/a.h", "inline constexpr int kPauseUs = 5;\n", "inline constexpr int kStatus = 5;\n"),
        ("netplugin/rails/a.cc", "constexpr auto kLookEvery = 5 * kNanosPerMs;\n", "const auto late = now + 5 * kNanosPerMs;\n"),
    ],
    "mutexes": [
        ("netplugin/a.h", "  Mutex mutex_;\n  int a_ = 0;\n", "  Mutex mutex_;\n  int a_ R2CC_GUARDED_BY(mutex_) = 0;\n"),
        ("netplugin/a.h", "  mutable Mutex a_ R2CC_ACQUIRED_BEFORE(b_);\n  int c_ R2CC_GUARDED_BY(b_);\n",
         "  mutable Mutex a_ R2CC_ACQUIRED_BEFORE(b_);\n  int c_ R2CC_PT_GUARDED_BY(a_);\n"),
        ("daemon/a.h", "  absl::Mutex mutex_;\n", "  absl::Mutex mutex_;\n  int a_ ABSL_GUARDED_BY(mutex_);\n"),
        ("base/a.cc", "std::mutex m;\n", "std::once_flag m;\n"),
        ("observe/a.cc", "const std::lock_guard lock(m);\n", "const MutexLock lock(m);\n"),
        ("nccl/a.cc", "std::shared_mutex m;\n", "// std::shared_mutex m;\n"),
        ("nccl/a.h", "std::condition_variable c;\n", "CondVar c;\n"),
    ],
    "too_new_for_old_glibc": [("netplugin/a.cc", "std::random_device r;\n", "getrandom(a, b, 0);\n")],
}


class RulesTest(unittest.TestCase):

  def test_every_rule_has_a_specimen(self):
    self.assertEqual(set(SPECIMENS), set(rules.RULES))

  def test_specimens(self):
    for name, specimens in SPECIMENS.items():
      for path, bad, good in specimens:
        with self.subTest(rule=name, path=path, text=bad[:60]):
          self.assertTrue(list(rules.RULES[name](rules.Source(path, bad))))
          self.assertEqual(list(rules.RULES[name](rules.Source(path, good))), [])

  def test_line_numbers(self):
    source = rules.Source("daemon/a.cc", "a\n/* b\n*/ usleep(1);\n")
    self.assertEqual([number for number, _ in rules.RULES["sleeps"](source)], [3])

  def test_the_page_is_shared_memory(self):
    self.assertEqual(list(rules.RULES["pure_rooms"](rules.Source("plan/page/a.cc", "#include <sys/mman.h>\n"))), [])

  def test_the_rooms_of_a_program_form_no_cycle(self):
    for program in folder_table.NEED_ROWS:
      self.assertEqual(folder_table.cycles(folder_table.MAY_INCLUDE, program), [])
    for row, back in (("daemon/core", "daemon/io"), ("daemon/io", "daemon/trust"), ("daemon/config", "daemon"),
                      ("daemon/rpc", "daemon/wiring.h"), ("daemon/trust", "daemon/rpc/channel.h"),
                      ("client/core", "client/doctor"), ("client/doctor", "client/bundle"), ("client/plan", "client/format/format.h")):
      planted = {**folder_table.MAY_INCLUDE, row: folder_table.MAY_INCLUDE[row] + (back,)}
      self.assertIn(row, folder_table.cycles(planted, row.split("/")[0]), back)

  def test_a_new_room_needs_a_row(self):
    for path, new in (("daemon/new/a.cc", True), ("daemon/core/new/a.cc", False), ("daemon/main.cc", False),
                      ("client/new/a.cc", True), ("client/run.cc", False)):
      self.assertEqual([number for number, _ in rules.RULES["folders"](rules.Source(path, ""))], [1] if new else [], path)

  def test_unbuilt_files(self):
    sources = [rules.Source("a/BUILD.bazel", 'srcs = ["x.cc", "sub/y.h"],\n'), rules.Source("a/x.cc", ""), rules.Source("a/sub/y.h", ""),
               rules.Source("a/z.cc", ""), rules.Source("b/w.py", ""), rules.Source("a/README.md", ""),
               rules.Source("a/macro.bzl", 'srcs = ["m.cc"],\n'), rules.Source("a/m.cc", ""),
               rules.Source("c/BUILD.bazel", 'srcs = [name + ".py"]\nfor name in ["p"]'), rules.Source("c/p.py", ""),
               rules.Source("c/q.py", ""), rules.Source("d/BUILD.bazel", 'room(\n    deps = [])\n'), rules.Source("d/x.cc", ""),
               rules.Source("d/x.h", ""), rules.Source("d/sub/x.cc", ""), rules.Source("d/x.py", ""), rules.Source("d/x.proto", ""),
               rules.Source("e/BUILD.bazel", 'protos = glob(["*.proto"])'), rules.Source("e/x.proto", ""), rules.Source("e/x.cc", "")]
    self.assertEqual([path for path, _ in rules.unbuilt_files(sources)],
                     ["a/z.cc", "b/w.py", "c/q.py", "d/sub/x.cc", "d/x.py", "d/x.proto", "e/x.cc"])

  def test_missing_packages(self):
    sources = [rules.Source("BUILD.bazel", ""), rules.Source("a/b/BUILD.bazel", '"//visibility:public", "//a/b", "//a/b:c", ":d", "//:e"'),
               rules.Source("a/BUILD.bazel", 'deps = ["//a/gone", "//a/b:c", "//lost:x"]'), rules.Source("a/x.py", '"//nowhere"')]
    self.assertEqual(list(rules.missing_packages(sources)),
                     [("a/BUILD.bazel", "//a/gone is no package"), ("a/BUILD.bazel", "//lost is no package")])

  def test_double_classes(self):
    fake = "namespace r2cc {\nclass Fake final : public Real {\n};\n}  // namespace r2cc\n"
    sources = [rules.Source("a/x.h", fake), rules.Source("a/y.h", fake), rules.Source("b/x.h", fake.replace("r2cc {", "r2cc::b {")),
               rules.Source("a/x_test.cc", "namespace r2cc {\nnamespace {\nstruct Fake {\n};\n}  // namespace\n}  // namespace r2cc\n"),
               rules.Source("a/z.h", "namespace r2cc {\nclass Fake;\nclass Fake::Part {\n};\n}  // namespace r2cc\n"),
               rules.Source("c/x.h", "namespace {\n}  // namespace\n" + fake)]
    self.assertEqual([path for path, _ in rules.double_classes(sources)], ["a/y.h", "c/x.h"])
