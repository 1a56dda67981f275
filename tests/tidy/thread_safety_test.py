"""What --config=clang refuses: code that breaks what base/core/mutex.h declares, compiled with the options that .bazelrc has for it."""

import os
import re
import shutil
import subprocess
import unittest

from tests.tidy import tree

COMPILER = "clang++-14"

SPECIMEN = """
#include "base/core/mutex.h"
class Account {
 public:
  void Add() {
    const r2cc::MutexLock lock(mutex_);
    AddLocked();
  }
  void AddLocked() R2CC_REQUIRES(mutex_) { ++amount_; }
  void AddWhenPositive() {
    r2cc::MutexLock lock(mutex_);
    positive_.Wait(mutex_, [this]() R2CC_REQUIRES(mutex_) { return amount_ > 0; });
    ++*kept_;
    lock.Unlock();
  }
  void AddBoth() {
    const r2cc::MutexLock lock(mutex_);
    const r2cc::MutexLock other(inner_);
    ++amount_;
  }
  BROKEN

 private:
  r2cc::Mutex mutex_ R2CC_ACQUIRED_BEFORE(inner_);
  r2cc::Mutex inner_;
  r2cc::CondVar positive_;
  int amount_ R2CC_GUARDED_BY(mutex_) = 0;
  int* kept_ R2CC_PT_GUARDED_BY(mutex_) = nullptr;
};
Account account;
"""

BROKEN = {
    "an access without the lock": "void Break() { ++amount_; }",
    "a call without the lock": "void Break() { AddLocked(); }",
    "what a pointer points to": "void Break() { ++*kept_; }",
    "an access after the lock was given back": "void Break() { r2cc::MutexLock lock(mutex_); lock.Unlock(); ++amount_; }",
    "a second lock of one mutex": "void Break() { const r2cc::MutexLock a(mutex_); const r2cc::MutexLock b(mutex_); }",
    "a condition without the lock": "void Break() { positive_.Wait(mutex_); }",
    "the wrong order": "void Break() { const r2cc::MutexLock a(inner_); const r2cc::MutexLock b(mutex_); ++amount_; }",
    "a lock that is kept": "void Break() { mutex_.Lock(); }",
}


class ThreadSafetyTest(unittest.TestCase):

  @classmethod
  def setUpClass(cls):
    if shutil.which(COMPILER) is None:
      raise unittest.SkipTest(f"needs clang: there is no {COMPILER}")
    cls.root = tree.workspace_root()
    with open(os.path.join(cls.root, ".bazelrc"), encoding="utf-8") as file:
      lines = file.read().split("\n")
    cls.options = [word for line in lines if re.match(r"build(:clang)? ", line) for word in re.findall(r"--(?:copt|cxxopt)=(\S+)", line)]

  def compile(self, broken):
    done = subprocess.run([COMPILER, *self.options, "-fsyntax-only", "-x", "c++", "-I", self.root, "-"], check=False,
                          input=SPECIMEN.replace("BROKEN", broken), capture_output=True, text=True)
    return done.returncode, done.stderr

  def test_good_code_compiles(self):
    self.assertEqual(self.compile(""), (0, ""))

  def test_broken_code_does_not(self):
    for name, broken in BROKEN.items():
      with self.subTest(name):
        code, errors = self.compile(broken)
        self.assertNotEqual(code, 0)
        self.assertRegex(errors, r"error: .*\[-Werror,-Wthread-safety")
