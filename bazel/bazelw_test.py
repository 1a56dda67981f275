"""What bazelw installs, prepares and refuses, with stand-ins for the programs that it calls."""

import os
import pathlib
import subprocess
import tempfile
import unittest

# Each writes its name and arguments into calls; `bazel query` prints the tags in tags, and apt-get installs what archive names.
_FAKES = {
    "bazel": 'case " $* " in *" query "*) cat tags ;; esac',
    "dpkg-query": 'while read -r name; do case " $* " in *" $name "*) echo "$name installed" ;; esac; done < installed',
    "apt-get": '[ -e archive ] || exit 100; case " $* " in *" install "*) printf "%s\\n" "$@" >> installed ;; esac',
    "dpkg": "echo amd64",
    "id": "cat uid",
    "nproc": "echo 4",
    "df": 'printf "Filesystem 1M-blocks Used Available Capacity Mounted on\\n/dev/x 9 9 %s 9%% /\\n" "$(cat disk)"',
}


class BazelwTest(unittest.TestCase):

  def setUp(self):
    self.root = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
    (self.root / "bazel").symlink_to(pathlib.Path("bazel").resolve())
    text = pathlib.Path("bazelw").read_text(encoding="utf-8")
    for real, fake in (("/var/cache/r2cc", "cache"), ("/proc/meminfo", "meminfo"), ("/sys/fs/cgroup", "cgroup"),
                       ("/etc/systemd", "systemd"), ("/etc/os-release", "os-release")):
      self.assertIn(real, text)
      text = text.replace(real, str(self.root / fake))
    (self.root / "bazelw").write_text(text, encoding="utf-8")
    programs = self.root / "programs"
    programs.mkdir()
    for name, body in _FAKES.items():
      self.program(name, body)
    for name in ("awk", "bash", "cat", "dirname", "env", "grep", "head", "realpath", "sed", "sort"):
      found = next(path for folder in ("/usr/bin", "/bin") if (path := pathlib.Path(folder, name)).exists())
      (programs / name).symlink_to(found)
    base = [line.split()[0] for line in pathlib.Path("bazel/packages/base.txt").read_text(encoding="utf-8").splitlines()
            if line and line[0] != "#"]
    self.write(installed="\n".join(base) + "\n", uid="0", disk="99999", meminfo="MemTotal: 16000000 kB\n", tags="", archive="")
    self.write(**{"os-release": ""})

  def program(self, name, body):
    path = self.root / "programs" / name
    path.write_text(f'#!/bin/bash\ncd "{self.root}"\necho "{name} $*" >> calls\n{body}\n', encoding="utf-8")
    path.chmod(0o755)

  def write(self, **files):
    for name, text in files.items():
      (self.root / name).write_text(text, encoding="utf-8")

  def tags(self, *tags):
    self.write(tags="".join(f'<string value="{tag}"/>\n' for tag in tags))

  def run_bazelw(self, *arguments, **environment):
    """Its exit status, what it said, and the lines of what it called."""
    (self.root / "calls").write_text("", encoding="utf-8")
    done = subprocess.run(["bash", str(self.root / "bazelw"), *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=60, check=False, stdin=subprocess.DEVNULL,
                          env={"PATH": str(self.root / "programs"), "HOME": str(self.root), **environment})
    calls = (self.root / "calls").read_text(encoding="utf-8").splitlines()
    return done.returncode, done.stdout, [call for call in calls if call.split()[0] in ("bazel", "apt-get")]

  def test_calls_bazel_with_the_same_arguments(self):
    for arguments in (("build", "//..."), ("--batch", "test", "//...", "--jobs=3"), ("info",), ("test", "//a/..."), ("test", "//a:all"),
                      ("run", "//:drill", "--", "--test", "x y")):
      code, output, calls = self.run_bazelw(*arguments)
      self.assertEqual((code, output), (0, ""), arguments)
      self.assertEqual(calls[-1], "bazel " + " ".join(arguments))

  def test_a_full_label_runs_whatever_its_tier(self):
    self.assertEqual(self.run_bazelw("test", "//a:b", "--jobs=1")[2][-1], "bazel test --config=long //a:b --jobs=1")
    self.assertEqual(self.run_bazelw("test", "//a:b", "//c/...")[2][-1], "bazel test //a:b //c/...")

  def test_installs_what_the_targets_need_and_no_more(self):
    self.tags("local", "needs-etcd", "needs-etcd")
    code, _, calls = self.run_bazelw("test", "//a:b")
    self.assertEqual(code, 0)
    self.assertEqual(calls[1:], ["apt-get update -q", "apt-get install -q -y --no-install-recommends etcd-server",
                                 "bazel test --config=long //a:b"])
    self.assertEqual(self.run_bazelw("test", "//a:b")[2][1:], ["bazel test --config=long //a:b"])  # it is there now

  def test_a_build_needs_nothing_of_the_tests(self):
    self.tags("needs-launchers")
    self.assertEqual(self.run_bazelw("build", "//...")[2], ["bazel build //..."])

  def test_leaves_out_what_the_other_tier_needs(self):
    self.assertIn("except attr(tags", self.run_bazelw("test", "//...")[2][0])
    self.assertNotIn("except", self.run_bazelw("test", "--config=long", "//...")[2][0])
    query = self.run_bazelw("test", "--config=long", "--test_tag_filters=long-systems", "//...", "--", "-//a/...")[2][0]
    self.assertIn("long-systems", query)
    self.assertNotIn("-//a", query)

  def test_without_a_need_the_tests_are_skipped(self):
    self.tags("needs-etcd")
    (self.root / "archive").unlink()
    code, output, calls = self.run_bazelw("test", "//a:b")
    self.assertEqual((code, calls[-1]), (0, "bazel test --config=long //a:b"))
    self.assertIn("could not install", output)
    self.assertIn("etcd-server", output)

  def test_a_need_that_nobody_knows_is_refused(self):
    self.tags("needs-luck")
    code, output, calls = self.run_bazelw("test", "//a:b")
    self.assertEqual(code, 1)
    self.assertEqual(output, "bazelw: a target has the tag needs-luck, and there is no bazel/packages/luck.txt\n")
    self.assertNotIn("bazel test", " ".join(calls))

  def expect_refusal(self, *words, **environment):
    """One line with these words, and no build."""
    code, output, calls = self.run_bazelw("build", "//...", **environment)
    self.assertEqual(code, 1)
    self.assertEqual(len(output.splitlines()), 1, output)
    for word in words:
      self.assertIn(word, output)
    self.assertEqual([call for call in calls if call.startswith("bazel")], [])

  def test_one_line_without_root(self):
    self.write(uid="1000", installed="")
    self.expect_refusal("neither root nor has sudo", "apt-get install", "bazel-bootstrap")

  def test_one_line_where_nothing_may_be_installed(self):
    self.write(installed="")
    self.expect_refusal("R2CC_NO_INSTALL=1", "bazel-bootstrap", R2CC_NO_INSTALL="1")

  def test_without_an_archive_the_last_line_names_what_is_missing(self):
    self.write(installed="")
    (self.root / "archive").unlink()
    code, output, calls = self.run_bazelw("build", "//...")
    self.assertEqual(code, 1)
    self.assertIn("could not install", output.splitlines()[-1])
    self.assertIn("g++", output.splitlines()[-1])
    self.assertNotIn("bazel build //...", calls)

  def test_one_line_for_a_full_disk(self):
    self.write(disk="700")
    self.expect_refusal("700 MiB are free")

  def test_one_line_for_too_little_memory(self):
    self.write(meminfo="MemTotal: 1000000 kB\n")
    self.expect_refusal("976 MiB of memory")

  def test_with_little_memory_fewer_actions_at_a_time(self):
    self.write(meminfo="MemTotal: 4000000 kB\n")
    code, output, calls = self.run_bazelw("build", "//...", "--jobs=2")
    self.assertEqual((code, calls), (0, ["bazel build --jobs=3 //... --jobs=2"]))  # Bazel keeps to the last
    self.assertEqual(len(output.splitlines()), 1, output)

  def test_the_limit_of_a_container_counts(self):
    (self.root / "cgroup").mkdir()
    for limit, call in (("max", "bazel build //..."), (str(2**63 - 4096), "bazel build //..."),
                        (str(3 * 2**30), "bazel build --jobs=2 //...")):
      (self.root / "cgroup/memory.max").write_text(limit + "\n", encoding="utf-8")
      self.assertEqual(self.run_bazelw("build", "//...")[2], [call], limit)
