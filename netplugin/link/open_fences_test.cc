#include "netplugin/link/open_fences.h"

#include <gtest/gtest.h>

#include <vector>

namespace r2cc::net {
namespace {

TEST(OpenFences, AnAnswerIsOneForAllEarlierIncarnationsOfItsLink) {
  OpenFences fences;
  fences.Add({.link = 1, .incarnation = 1, .epoch = 10});
  fences.Add({.link = 1, .incarnation = 2, .epoch = 11});
  fences.Add({.link = 1, .incarnation = 3, .epoch = 12});
  fences.Add({.link = 2, .incarnation = 1, .epoch = 13});
  std::vector<PathEpoch> answered;
  for (const auto& fence : fences.TakeAnswered(1, 2)) answered.push_back(fence.epoch);
  EXPECT_EQ(answered, (std::vector<PathEpoch>{10, 11}));
  EXPECT_FALSE(fences.Uses(10));
  EXPECT_TRUE(fences.Uses(12));
  EXPECT_TRUE(fences.Uses(13));
}

TEST(OpenFences, OneExpiresOnceAfterSoMuchTimeOfAPeerThatAnswers) {
  OpenFences fences;
  fences.Add({.link = 1, .incarnation = 1, .epoch = 10});
  int expired = 0;
  const auto age = [&](Nanos answering) {
    fences.Age(answering, 100, [&](LinkId link, PathEpoch epoch) {
      EXPECT_EQ(link, 1);
      EXPECT_EQ(epoch, 10);
      ++expired;
    });
    return expired;
  };
  EXPECT_EQ(age(99), 0);
  EXPECT_EQ(age(0), 0);
  EXPECT_EQ(age(1), 1);
  EXPECT_EQ(age(500), 1);
}

}  // namespace
}  // namespace r2cc::net
