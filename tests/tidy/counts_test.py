"""The counters on specimens whose figures are plain to see."""

import unittest

from tests.tidy import counts
from tests.tidy import rules

HEADER = """
class ABSL_LOCKABLE Thing final : public Base {
 public:
  explicit Thing(int a) : a_(a) {}
  Thing(const Thing&) = delete;
  struct Inner {
    int x_;
    void Not();
  };
  int a() const { return a_; }
  void Do(const std::function<void(int)>& f);
  static constexpr int kMost = 3;

 private:
  void Hidden();
  const int a_;
  std::map<int, std::string> names_;
  bool open_ = false;
  int guarded_ ABSL_GUARDED_BY(mutex_);
};
"""


class CountsTest(unittest.TestCase):

  def test_a_class(self):
    self.assertEqual(counts.fields(HEADER, "Thing"), 4)
    self.assertEqual(counts.public_functions(HEADER, "Thing"), 2)
    self.assertEqual(counts.fields(HEADER, "Other"), 0)
    self.assertEqual(counts.constants(HEADER + "constexpr Nanos kWait = 5;\nconstexpr char kText[] = \"\";\nint F(int kNot);"), 3)

  def test_folders(self):
    text = {"daemon/a.cc": ["daemon/b/x.h", "base/y.h"], "daemon/b/x.h": ["daemon/c/z.h"], "daemon/c/z.cc": ["daemon/b/x.h"],
            "daemon/c/z_test.cc": ["client/no.h"], "base/y.h": []}
    graph = counts.arrows(rules.Source(path, "".join(f'#include "{name}"\n' for name in names)) for path, names in text.items())
    self.assertEqual(graph["daemon/c"], {"daemon/b"})
    self.assertIn({"daemon/b", "daemon/c"}, counts.components(graph))
    self.assertEqual(counts.layers(graph), {"base": 1, "daemon/b": 1, "daemon/c": 1, "daemon": 2})
    self.assertEqual(counts.below(graph, "daemon"), {"daemon": {"daemon/b"}, "daemon/b": {"daemon/c"}, "daemon/c": {"daemon/b"}})
