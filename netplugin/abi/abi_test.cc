// The layout is proved by the static_asserts in the headers; here: that all versions live together in one program, and the names.
#include <gtest/gtest.h>

#include <string>
#include <type_traits>

#include "netplugin/abi/collnet_v10.h"
#include "netplugin/abi/collnet_v11.h"
#include "netplugin/abi/collnet_v12.h"
#include "netplugin/abi/collnet_v7.h"
#include "netplugin/abi/collnet_v8.h"
#include "netplugin/abi/collnet_v9.h"
#include "netplugin/abi/net_v10.h"
#include "netplugin/abi/net_v11.h"
#include "netplugin/abi/net_v12.h"
#include "netplugin/abi/net_v7.h"
#include "netplugin/abi/net_v8.h"
#include "netplugin/abi/net_v9.h"
#include "netplugin/abi/profile_v1.h"
#include "netplugin/abi/profiler_v1.h"
#include "netplugin/abi/profiler_v2.h"
#include "netplugin/abi/profiler_v4.h"
#include "netplugin/abi/profiler_v5.h"
#include "netplugin/abi/tuner_v2.h"
#include "netplugin/abi/tuner_v3.h"
#include "netplugin/abi/tuner_v4.h"
#include "netplugin/abi/tuner_v5.h"
#include "netplugin/abi/tuner_v6.h"

namespace r2cc::abi {
namespace {

// A table is read from a foreign library as raw memory.
template <typename T>
constexpr bool kPlain = std::is_standard_layout_v<T>&& std::is_trivial_v<T>;

static_assert(kPlain<NetTableV7> && kPlain<NetTableV8> && kPlain<NetTableV9>);
static_assert(kPlain<NetTableV10> && kPlain<NetTableV11> && kPlain<NetTableV12>);
static_assert(kPlain<NetPropertiesV7> && kPlain<NetPropertiesV8>);
static_assert(kPlain<NetPropertiesV9> && kPlain<NetPropertiesV11> && kPlain<NetPropertiesV12>);
static_assert(kPlain<CollNetTableV7> && kPlain<CollNetTableV8> && kPlain<CollNetTableV9>);
static_assert(kPlain<CollNetTableV11> && kPlain<CollNetTableV12> && kPlain<NetSgeV8> && kPlain<NetSgeV9>);
static_assert(kPlain<TunerTableV2> && kPlain<TunerTableV3> && kPlain<TunerTableV4> && kPlain<TunerTableV5> && kPlain<TunerTableV6>);
static_assert(kPlain<ProfilerTableV1> && kPlain<ProfilerTableV2> && kPlain<ProfilerTableV4> && kPlain<ProfilerTableV5>);
static_assert(kPlain<ProfilerEventV1> && kPlain<ProfilerEventV2> && kPlain<ProfilerEventV4> && kPlain<ProfilerEventV5>);
static_assert(kPlain<ProfileTableV1> && kPlain<HeldOperationV1>);
static_assert(kPlain<NvlDomainInfoV5> && kPlain<TunerConstantsV5>);
static_assert(sizeof(Result) == sizeof(int) && sizeof(DebugLogLevel) == sizeof(int));
static_assert(sizeof(Function) == sizeof(int) && sizeof(DataType) == sizeof(int) && sizeof(RedOp) == sizeof(int));

// The functions up to close_listen stand at the same place in every version: a shim may copy them as a block.
static_assert(offsetof(NetTableV7, close_listen) == offsetof(NetTableV12, close_listen));
static_assert(offsetof(NetTableV8, irecv_consumed) == offsetof(NetTableV11, irecv_consumed));

// A table is pointers: the place of each is all that NCCL knows of it.
#define R2CC_PLACE(table, member, place) static_assert(offsetof(table, member) == (place) * sizeof(void*), #table "." #member)

static_assert(sizeof(CollNetTableV7) == 15 * sizeof(void*));
R2CC_PLACE(CollNetTableV7, name, 0);
R2CC_PLACE(CollNetTableV7, init, 1);
R2CC_PLACE(CollNetTableV7, devices, 2);
R2CC_PLACE(CollNetTableV7, get_properties, 3);
R2CC_PLACE(CollNetTableV7, listen, 4);
R2CC_PLACE(CollNetTableV7, connect, 5);
R2CC_PLACE(CollNetTableV7, reduce_support, 6);
R2CC_PLACE(CollNetTableV7, reg_mr, 7);
R2CC_PLACE(CollNetTableV7, reg_mr_dma_buf, 8);
R2CC_PLACE(CollNetTableV7, dereg_mr, 9);
R2CC_PLACE(CollNetTableV7, iallreduce, 10);
R2CC_PLACE(CollNetTableV7, iflush, 11);
R2CC_PLACE(CollNetTableV7, test, 12);
R2CC_PLACE(CollNetTableV7, close_coll, 13);
R2CC_PLACE(CollNetTableV7, close_listen, 14);

static_assert(sizeof(CollNetTableV8) == 17 * sizeof(void*));
R2CC_PLACE(CollNetTableV8, name, 0);
R2CC_PLACE(CollNetTableV8, init, 1);
R2CC_PLACE(CollNetTableV8, devices, 2);
R2CC_PLACE(CollNetTableV8, get_properties, 3);
R2CC_PLACE(CollNetTableV8, listen, 4);
R2CC_PLACE(CollNetTableV8, connect, 5);
R2CC_PLACE(CollNetTableV8, reduce_support, 6);
R2CC_PLACE(CollNetTableV8, reg_mr, 7);
R2CC_PLACE(CollNetTableV8, reg_mr_dma_buf, 8);
R2CC_PLACE(CollNetTableV8, dereg_mr, 9);
R2CC_PLACE(CollNetTableV8, iallreduce, 10);
R2CC_PLACE(CollNetTableV8, iallgather, 11);
R2CC_PLACE(CollNetTableV8, ireducescatter, 12);
R2CC_PLACE(CollNetTableV8, iflush, 13);
R2CC_PLACE(CollNetTableV8, test, 14);
R2CC_PLACE(CollNetTableV8, close_coll, 15);
R2CC_PLACE(CollNetTableV8, close_listen, 16);

static_assert(sizeof(CollNetTableV9) == 18 * sizeof(void*));
R2CC_PLACE(CollNetTableV9, name, 0);
R2CC_PLACE(CollNetTableV9, init, 1);
R2CC_PLACE(CollNetTableV9, devices, 2);
R2CC_PLACE(CollNetTableV9, get_properties, 3);
R2CC_PLACE(CollNetTableV9, listen, 4);
R2CC_PLACE(CollNetTableV9, connect, 5);
R2CC_PLACE(CollNetTableV9, reduce_support, 6);
R2CC_PLACE(CollNetTableV9, reg_mr, 7);
R2CC_PLACE(CollNetTableV9, reg_mr_dma_buf, 8);
R2CC_PLACE(CollNetTableV9, dereg_mr, 9);
R2CC_PLACE(CollNetTableV9, iallreduce, 10);
R2CC_PLACE(CollNetTableV9, iallgather, 11);
R2CC_PLACE(CollNetTableV9, ireducescatter, 12);
R2CC_PLACE(CollNetTableV9, iflush, 13);
R2CC_PLACE(CollNetTableV9, test, 14);
R2CC_PLACE(CollNetTableV9, close_coll, 15);
R2CC_PLACE(CollNetTableV9, close_listen, 16);
R2CC_PLACE(CollNetTableV9, make_v_device, 17);

static_assert(sizeof(CollNetTableV10) == 18 * sizeof(void*));
R2CC_PLACE(CollNetTableV10, name, 0);
R2CC_PLACE(CollNetTableV10, init, 1);
R2CC_PLACE(CollNetTableV10, devices, 2);
R2CC_PLACE(CollNetTableV10, get_properties, 3);
R2CC_PLACE(CollNetTableV10, listen, 4);
R2CC_PLACE(CollNetTableV10, connect, 5);
R2CC_PLACE(CollNetTableV10, reduce_support, 6);
R2CC_PLACE(CollNetTableV10, reg_mr, 7);
R2CC_PLACE(CollNetTableV10, reg_mr_dma_buf, 8);
R2CC_PLACE(CollNetTableV10, dereg_mr, 9);
R2CC_PLACE(CollNetTableV10, iallreduce, 10);
R2CC_PLACE(CollNetTableV10, iallgather, 11);
R2CC_PLACE(CollNetTableV10, ireducescatter, 12);
R2CC_PLACE(CollNetTableV10, iflush, 13);
R2CC_PLACE(CollNetTableV10, test, 14);
R2CC_PLACE(CollNetTableV10, close_coll, 15);
R2CC_PLACE(CollNetTableV10, close_listen, 16);
R2CC_PLACE(CollNetTableV10, make_v_device, 17);

static_assert(sizeof(CollNetTableV11) == 19 * sizeof(void*));
R2CC_PLACE(CollNetTableV11, name, 0);
R2CC_PLACE(CollNetTableV11, init, 1);
R2CC_PLACE(CollNetTableV11, devices, 2);
R2CC_PLACE(CollNetTableV11, get_properties, 3);
R2CC_PLACE(CollNetTableV11, listen, 4);
R2CC_PLACE(CollNetTableV11, connect, 5);
R2CC_PLACE(CollNetTableV11, reduce_support, 6);
R2CC_PLACE(CollNetTableV11, reg_mr, 7);
R2CC_PLACE(CollNetTableV11, reg_mr_dma_buf, 8);
R2CC_PLACE(CollNetTableV11, dereg_mr, 9);
R2CC_PLACE(CollNetTableV11, iallreduce, 10);
R2CC_PLACE(CollNetTableV11, iallgather, 11);
R2CC_PLACE(CollNetTableV11, ireducescatter, 12);
R2CC_PLACE(CollNetTableV11, iflush, 13);
R2CC_PLACE(CollNetTableV11, test, 14);
R2CC_PLACE(CollNetTableV11, close_coll, 15);
R2CC_PLACE(CollNetTableV11, close_listen, 16);
R2CC_PLACE(CollNetTableV11, make_v_device, 17);
R2CC_PLACE(CollNetTableV11, finalize, 18);

static_assert(sizeof(CollNetTableV12) == 19 * sizeof(void*));
R2CC_PLACE(CollNetTableV12, name, 0);
R2CC_PLACE(CollNetTableV12, init, 1);
R2CC_PLACE(CollNetTableV12, devices, 2);
R2CC_PLACE(CollNetTableV12, get_properties, 3);
R2CC_PLACE(CollNetTableV12, listen, 4);
R2CC_PLACE(CollNetTableV12, connect, 5);
R2CC_PLACE(CollNetTableV12, reduce_support, 6);
R2CC_PLACE(CollNetTableV12, reg_mr, 7);
R2CC_PLACE(CollNetTableV12, reg_mr_dma_buf, 8);
R2CC_PLACE(CollNetTableV12, dereg_mr, 9);
R2CC_PLACE(CollNetTableV12, iallreduce, 10);
R2CC_PLACE(CollNetTableV12, iallgather, 11);
R2CC_PLACE(CollNetTableV12, ireducescatter, 12);
R2CC_PLACE(CollNetTableV12, iflush, 13);
R2CC_PLACE(CollNetTableV12, test, 14);
R2CC_PLACE(CollNetTableV12, close_coll, 15);
R2CC_PLACE(CollNetTableV12, close_listen, 16);
R2CC_PLACE(CollNetTableV12, make_v_device, 17);
R2CC_PLACE(CollNetTableV12, finalize, 18);

static_assert(sizeof(TunerTableV2) == 4 * sizeof(void*));
R2CC_PLACE(TunerTableV2, name, 0);
R2CC_PLACE(TunerTableV2, init, 1);
R2CC_PLACE(TunerTableV2, get_coll_info, 2);
R2CC_PLACE(TunerTableV2, destroy, 3);

static_assert(sizeof(TunerTableV3) == 4 * sizeof(void*));
R2CC_PLACE(TunerTableV3, name, 0);
R2CC_PLACE(TunerTableV3, init, 1);
R2CC_PLACE(TunerTableV3, get_coll_info, 2);
R2CC_PLACE(TunerTableV3, destroy, 3);

static_assert(sizeof(TunerTableV4) == 4 * sizeof(void*));
R2CC_PLACE(TunerTableV4, name, 0);
R2CC_PLACE(TunerTableV4, init, 1);
R2CC_PLACE(TunerTableV4, get_coll_info, 2);
R2CC_PLACE(TunerTableV4, destroy, 3);

static_assert(sizeof(TunerTableV5) == 4 * sizeof(void*));
R2CC_PLACE(TunerTableV5, name, 0);
R2CC_PLACE(TunerTableV5, init, 1);
R2CC_PLACE(TunerTableV5, get_coll_info, 2);
R2CC_PLACE(TunerTableV5, finalize, 3);

static_assert(sizeof(TunerTableV6) == 5 * sizeof(void*));
R2CC_PLACE(TunerTableV6, name, 0);
R2CC_PLACE(TunerTableV6, init, 1);
R2CC_PLACE(TunerTableV6, get_coll_info, 2);
R2CC_PLACE(TunerTableV6, finalize, 3);
R2CC_PLACE(TunerTableV6, get_chunk_size, 4);

static_assert(sizeof(NetSgeV8) == 24 && offsetof(NetSgeV8, mhandle) == 0 && offsetof(NetSgeV8, address) == 8);
static_assert(sizeof(NetSgeV9) == 24 && offsetof(NetSgeV9, mhandle) == 0 && offsetof(NetSgeV9, address) == 8);
static_assert(offsetof(NetSgeV8, size) == 16 && sizeof(NetSgeV8::size) == 4 && offsetof(NetSgeV9, size) == 16 &&
              sizeof(NetSgeV9::size) == 8);

static_assert(sizeof(NvlDomainInfoV5) == 12 && offsetof(NvlDomainInfoV5, domains) == 0);
static_assert(offsetof(NvlDomainInfoV5, min_ranks_per_domain) == 4 && offsetof(NvlDomainInfoV5, max_ranks_per_domain) == 8);

static_assert(sizeof(TunerConstantsV5) == 1152 && offsetof(TunerConstantsV5, base_latencies) == 0);
static_assert(offsetof(TunerConstantsV5, hw_latencies) == 168 && offsetof(TunerConstantsV5, ll_max_bandwidths) == 672);
static_assert(offsetof(TunerConstantsV5, per_channel_max_ring_ll128_bandwidths) == 768);
static_assert(offsetof(TunerConstantsV5, per_channel_max_tree_ll128_bandwidths) == 864);
static_assert(offsetof(TunerConstantsV5, per_channel_max_tree_bandwidths) == 960);
static_assert(offsetof(TunerConstantsV5, per_channel_max_nvls_tree_bandwidths) == 1056);

// What changed between versions, and what did not: calls that differ only in the width of an argument have the same place.
#define R2CC_SAME(a, b, member) std::is_same_v<decltype(a::member), decltype(b::member)>
static_assert(!R2CC_SAME(CollNetTableV7, CollNetTableV8, reg_mr));
static_assert(R2CC_SAME(CollNetTableV7, CollNetTableV8, iallreduce) && !R2CC_SAME(CollNetTableV8, CollNetTableV9, iallreduce));
static_assert(R2CC_SAME(CollNetTableV9, CollNetTableV12, iallreduce) && R2CC_SAME(CollNetTableV9, CollNetTableV12, iallgather));
static_assert(!R2CC_SAME(CollNetTableV9, CollNetTableV11, init) && !R2CC_SAME(CollNetTableV9, CollNetTableV11, listen));
static_assert(R2CC_SAME(CollNetTableV7, CollNetTableV12, connect) && R2CC_SAME(CollNetTableV7, CollNetTableV12, test));
static_assert(R2CC_SAME(TunerTableV3, TunerTableV4, init) && !R2CC_SAME(TunerTableV3, TunerTableV4, get_coll_info));
static_assert(R2CC_SAME(TunerTableV4, TunerTableV6, get_coll_info) && R2CC_SAME(TunerTableV5, TunerTableV6, init));

TEST(AbiTest, ResultsAreNamedAsInTheManual) {
  EXPECT_EQ(std::string(ResultName(Result::kSuccess)), "ncclSuccess");
  EXPECT_EQ(std::string(ResultName(Result::kRemoteError)), "ncclRemoteError");
  EXPECT_EQ(std::string(ResultName(static_cast<Result>(6))), "ncclRemoteError");
  EXPECT_EQ(std::string(ResultName(static_cast<Result>(99))), "ncclResult?");
}

}  // namespace
}  // namespace r2cc::abi
