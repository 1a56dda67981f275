// The layout is proved by the static_asserts in the headers; here: that all versions live together in one program, and the names.
#include <gtest/gtest.h>

#include <string>
#include <type_traits>

#include "netplugin/abi/net_v10.h"
#include "netplugin/abi/net_v11.h"
#include "netplugin/abi/net_v12.h"
#include "netplugin/abi/net_v6.h"
#include "netplugin/abi/net_v7.h"
#include "netplugin/abi/net_v8.h"
#include "netplugin/abi/net_v9.h"

namespace r2cc::abi {
namespace {

// A table is read from a foreign library as raw memory.
template <typename T>
constexpr bool kPlain = std::is_standard_layout_v<T>&& std::is_trivial_v<T>;

static_assert(kPlain<NetTableV6> && kPlain<NetTableV7> && kPlain<NetTableV8> && kPlain<NetTableV9>);
static_assert(kPlain<NetTableV10> && kPlain<NetTableV11> && kPlain<NetTableV12>);
static_assert(kPlain<NetPropertiesV6> && kPlain<NetPropertiesV7> && kPlain<NetPropertiesV8>);
static_assert(kPlain<NetPropertiesV9> && kPlain<NetPropertiesV11> && kPlain<NetPropertiesV12>);
static_assert(sizeof(Result) == sizeof(int) && sizeof(LogLevel) == sizeof(int));

// The functions up to close_listen stand at the same place in every version: a shim may copy them as a block.
static_assert(offsetof(NetTableV6, close_listen) == offsetof(NetTableV12, close_listen));
static_assert(offsetof(NetTableV8, irecv_consumed) == offsetof(NetTableV11, irecv_consumed));

TEST(AbiTest, ResultsAreNamedAsInTheManual) {
  EXPECT_EQ(std::string(ResultName(Result::kSuccess)), "ncclSuccess");
  EXPECT_EQ(std::string(ResultName(Result::kRemoteError)), "ncclRemoteError");
  EXPECT_EQ(std::string(ResultName(static_cast<Result>(6))), "ncclRemoteError");
  EXPECT_EQ(std::string(ResultName(static_cast<Result>(99))), "ncclResult?");
}

}  // namespace
}  // namespace r2cc::abi
