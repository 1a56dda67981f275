#include "bazel/processor_seconds.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdio>

namespace r2cc {
namespace {

class RecordsProcessorSeconds : public testing::EmptyTestEventListener {
  void OnEnvironmentsTearDownEnd(const testing::UnitTest&) override {
    double seconds = 0;
    for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
      rusage usage{};
      getrusage(who, &usage);
      for (const timeval& time : {usage.ru_utime, usage.ru_stime})
        seconds += static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
    }
    char text[32];
    std::snprintf(text, sizeof(text), "%.3f", seconds);
    testing::Test::RecordProperty("processor_seconds", text);
  }
};

}  // namespace

void RecordProcessorSeconds() { testing::UnitTest::GetInstance()->listeners().Append(new RecordsProcessorSeconds); }

}  // namespace r2cc
