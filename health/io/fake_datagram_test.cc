#include "health/io/fake_datagram.h"

#include <gtest/gtest.h>

#include "base/fake_executor.h"

namespace r2cc::health {
namespace {

struct End {
  std::vector<Datagram> got;
  std::vector<DatagramError> errors;
  DatagramHandler Handler() {
    return {[this](const std::vector<Datagram>& batch) { got.insert(got.end(), batch.begin(), batch.end()); },
            [this](const DatagramError& error) { errors.push_back(error); }};
  }
};

TEST(FakeDatagram, TakesItsTimeIsLostIsRefusedAndWaits) {
  FakeExecutor executor;
  FakeDatagramNet net(&executor);
  FakeDatagrams node(&net);
  End a, b;
  const auto from = *node.Open({"eth0", "10.0.0.1", 1}, a.Handler());
  auto to = *node.Open({"eth0", "10.0.0.2", 0}, b.Handler());
  const DatagramAddress address = {"10.0.0.2", to->port()};

  const Nanos start = executor.Now();
  EXPECT_TRUE(from->Send(address, "one").ok());
  executor.Advance(kNanosPerMs);
  ASSERT_EQ(b.got.size(), 1u);
  EXPECT_EQ(b.got[0].received, start + kNanosPerMs / 20);
  EXPECT_EQ(b.got[0].from, (DatagramAddress{"10.0.0.1", 1}));

  net.Freeze("10.0.0.2");
  EXPECT_TRUE(from->Send(address, "two").ok());
  executor.Advance(kNanosPerSecond);
  EXPECT_EQ(b.got.size(), 1u);
  net.Thaw("10.0.0.2");
  ASSERT_EQ(b.got.size(), 2u);
  EXPECT_LT(b.got[1].received, executor.Now() - kNanosPerMs) << "it had arrived in time";

  net.set_path([](const auto&, const auto&) { return std::nullopt; });
  EXPECT_TRUE(from->Send(address, "lost").ok());
  executor.Advance(kNanosPerMs);
  EXPECT_EQ(b.got.size(), 2u);

  net.set_path([](const auto&, const auto&) { return kNanosPerMs; });
  to.reset();
  EXPECT_TRUE(from->Send(address, "nobody").ok());
  executor.Advance(2 * kNanosPerMs);
  ASSERT_EQ(a.errors.size(), 1u);
  EXPECT_EQ(a.errors[0].kind, DatagramError::Kind::kRefused);
  EXPECT_EQ(net.sent(), 4u);
}

}  // namespace
}  // namespace r2cc::health
