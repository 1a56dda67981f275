#include "netplugin/link/open_fences.h"

#include <gtest/gtest.h>

#include <vector>

namespace r2cc::net {
namespace {

TEST(OpenFences, AnAnswerIsOneForAllEarlierIncarnationsOfItsLink) {
  OpenFences fences;
  fences.Add({.link = 1, .incarnation = 1, .carrier = 10});
  fences.Add({.link = 1, .incarnation = 2, .carrier = 11});
  fences.Add({.link = 1, .incarnation = 3, .carrier = 12});
  fences.Add({.link = 2, .incarnation = 1, .carrier = 13});
  std::vector<Carrier> answered;
  for (const auto& fence : fences.TakeAnswered(1, 2)) answered.push_back(fence.carrier);
  EXPECT_EQ(answered, (std::vector<Carrier>{10, 11}));
  EXPECT_FALSE(fences.Uses(10));
  EXPECT_TRUE(fences.Uses(12));
  EXPECT_TRUE(fences.Uses(13));
}

TEST(OpenFences, OneExpiresOnceAfterSoMuchTimeOfAPeerThatAnswers) {
  OpenFences fences;
  fences.Add({.link = 1, .incarnation = 1, .carrier = 10});
  int expired = 0;
  const auto age = [&](Nanos answering) {
    fences.Age(answering, 100, [&](LinkId link, Carrier carrier) {
      EXPECT_EQ(link, 1);
      EXPECT_EQ(carrier, 10);
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
