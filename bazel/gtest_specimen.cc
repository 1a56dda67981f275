// Run by gtest_main_test.py: one test that passes, one that lacks what it needs.
#include <gtest/gtest.h>

TEST(Specimen, Passes) {}

TEST(Specimen, NeedsRoot) { GTEST_SKIP() << "needs root: makes network namespaces"; }
