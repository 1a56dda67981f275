#include "daemon/trust/roles_in_force.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace r2cc::daemon {
namespace {

const Caller kRoot{.kind = Caller::Kind::kLocal};

RolePolicy Drills(bool allowed) { return {DefaultGrants(-1, /*insecure=*/false), allowed}; }

TEST(RolesInForce, ASettingCountsForLaterCallers) {
  RolesInForce roles(Drills(false));
  const auto before = roles.Get();
  roles.Set(Drills(true));
  EXPECT_TRUE(roles.Get()->Has(kRoot, Role::kDrill));
  EXPECT_FALSE(before->Has(kRoot, Role::kDrill)) << "one request is judged by one policy";
}

TEST(RolesInForce, ReadersAndAWriterAtOnce) {
  RolesInForce roles(Drills(false));
  std::atomic<bool> over = false;
  std::vector<std::thread> readers;
  for (int i = 0; i < 4; ++i)
    readers.emplace_back([&] {
      while (!over) EXPECT_TRUE(roles.Get()->Has(kRoot, Role::kOperate));
    });
  for (int i = 0; i < 10'000; ++i) roles.Set(Drills(i % 2 == 0));
  over = true;
  for (std::thread& reader : readers) reader.join();
}

}  // namespace
}  // namespace r2cc::daemon
