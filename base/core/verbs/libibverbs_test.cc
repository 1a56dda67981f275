#include "base/core/verbs/libibverbs.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "base/core/verbs/stub_libibverbs.h"

namespace r2cc::verbs {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

std::string Built(const std::string& name) { return std::filesystem::absolute("base/core/verbs/" + name); }

TEST(LibibverbsAbsentTest, AMachineWithoutTheLibraryHasNoDevicesAndReportsWhy) {
  Libibverbs verbs({.library = "libibverbs-nowhere.so.1"});
  EXPECT_THAT(verbs.missing(), AllOf(HasSubstr("no RDMA devices: libibverbs-nowhere.so.1"), HasSubstr("install libibverbs1")));
  EXPECT_EQ(verbs.missing().find('\n'), std::string::npos);
  std::vector<DeviceInfo> devices(1);
  EXPECT_EQ(verbs.Devices(&devices), 0);
  EXPECT_THAT(devices, IsEmpty());
  EXPECT_EQ(verbs.ForkInit(), 0);
  ContextId context{};
  int fd = -1;
  EXPECT_EQ(verbs.Open("stub0", &context, &fd), ENODEV);
}

TEST(LibibverbsAbsentTest, ALibraryThatLacksACallIsNotUsedAndTheCallIsNamed) {
  Libibverbs verbs({.library = Built("libstub_ibverbs_unversioned.so")});
  EXPECT_THAT(verbs.missing(), AllOf(HasSubstr("lacks ibv_fork_init of IBVERBS_1.1"), HasSubstr("rdma-core 33")));
  std::vector<DeviceInfo> devices;
  EXPECT_EQ(verbs.Devices(&devices), 0);
  EXPECT_THAT(devices, IsEmpty());
}

class LibibverbsTest : public testing::Test {
 protected:
  explicit LibibverbsTest(const std::string& library = "libstub_ibverbs.so")
      : sysfs_(std::string(std::getenv("TEST_TMPDIR")) + "/sys"), verbs_({.library = Built(library), .sysfs = sysfs_}) {
    void* const handle = dlopen(Built(library).c_str(), RTLD_NOW | RTLD_NOLOAD);
    stub_ = static_cast<Stub*>(dlvsym(handle, "stub", "IBVERBS_1.0"));
    *stub_ = {};
    EXPECT_EQ(verbs_.missing(), "");
    EXPECT_EQ(verbs_.Open("stub0", &context_, &async_fd_), 0);
    EXPECT_EQ(verbs_.AllocateDomain(context_, &domain_), 0);
    EXPECT_EQ(verbs_.CreateCompletionQueue(context_, 100, CompletionChannelId{}, &queue_), 0);
    EXPECT_EQ(verbs_.CreateQueuePair(domain_, {.send_completions = queue_, .receive_completions = queue_}, &pair_), 0);
  }

  std::string sysfs_;
  Libibverbs verbs_;
  Stub* stub_ = nullptr;
  ContextId context_{};
  int async_fd_ = -1;
  DomainId domain_{};
  CompletionQueueId queue_{};
  QueuePairInfo pair_;
};

TEST_F(LibibverbsTest, DevicesAreNamedWithTheirDrivers) {
  std::filesystem::create_directories(sysfs_ + "/bus/pci/drivers/mlx5_core");
  std::filesystem::create_directories(sysfs_ + "/class/infiniband/stub0/device");
  std::filesystem::create_directory_symlink("../../../../bus/pci/drivers/mlx5_core", sysfs_ + "/class/infiniband/stub0/device/driver");
  std::vector<DeviceInfo> devices;
  ASSERT_EQ(verbs_.Devices(&devices), 0);
  ASSERT_THAT(devices, SizeIs(1));
  EXPECT_EQ(devices[0].name, "stub0");
  EXPECT_EQ(devices[0].driver, "mlx5_core");
  EXPECT_EQ(devices[0].guid, 0x1122334455667788u);

  std::filesystem::remove_all(sysfs_ + "/class/infiniband/stub0/device");
  ASSERT_EQ(verbs_.Devices(&devices), 0);
  EXPECT_EQ(devices[0].driver, "");
  std::filesystem::create_directory(sysfs_ + "/class/infiniband/stub0/parent");
  ASSERT_EQ(verbs_.Devices(&devices), 0);
  EXPECT_EQ(devices[0].driver, "rdma_rxe");
  EXPECT_EQ(stub_->lists, 0);
}

TEST_F(LibibverbsTest, OpenMakesTheEventsNonBlockingAndKnowsNoOtherName) {
  EXPECT_NE(fcntl(async_fd_, F_GETFL) & O_NONBLOCK, 0);
  ContextId context{};
  int fd = -1;
  EXPECT_EQ(verbs_.Open("mlx5_9", &context, &fd), ENODEV);
  stub_->error = EACCES;
  EXPECT_EQ(verbs_.Open("stub0", &context, &fd), EACCES);
  EXPECT_EQ(stub_->lists, 0);
  EXPECT_EQ(stub_->contexts, 1);
}

TEST_F(LibibverbsTest, LimitsPortAndGids) {
  DeviceLimits limits;
  ASSERT_EQ(verbs_.QueryDevice(context_, &limits), 0);
  EXPECT_EQ(limits.ports, 2);
  EXPECT_EQ(limits.reads, 8u);
  EXPECT_TRUE(limits.relaxed_ordering);
  EXPECT_TRUE(limits.dma_buf);
  EXPECT_EQ(limits.firmware, std::string(64, 'f'));
  PortInfo port;
  ASSERT_EQ(verbs_.QueryPort(context_, 1, &port), 0);
  EXPECT_EQ(port.state, PortState::kActive);
  EXPECT_EQ(port.link_layer, LinkLayer::kEthernet);
  EXPECT_EQ(port.mtu_bytes, 4096u);
  EXPECT_EQ(port.bits_per_second, 400e9);

  stub_->gids[0] = {.gid = {.raw = {0xfe, 0x80}}, .gid_index = 0, .port_num = 1, .gid_type = IBV_GID_TYPE_ROCE_V1, .ndev_ifindex = 3};
  stub_->gids[1] = {.gid = {}, .gid_index = 3, .port_num = 2, .gid_type = IBV_GID_TYPE_ROCE_V2, .ndev_ifindex = 3};
  stub_->gids[2] = {.gid = {}, .gid_index = 256, .port_num = 1, .gid_type = IBV_GID_TYPE_ROCE_V2, .ndev_ifindex = 3};
  stub_->gids[3] = {.gid = {}, .gid_index = 4, .port_num = 1, .gid_type = 7, .ndev_ifindex = 3};
  stub_->gid_count = 4;
  std::vector<GidEntry> gids(9);
  ASSERT_EQ(verbs_.QueryGids(context_, 1, &gids), 0);
  ASSERT_THAT(gids, SizeIs(1));  // not the other port's, the one no call can name, and the one of no known type
  EXPECT_EQ(gids[0].index, 0u);
  EXPECT_EQ(gids[0].gid[0], 0xfe);
  EXPECT_EQ(gids[0].type, GidType::kRoceV1);
  EXPECT_EQ(gids[0].interface_index, 3u);
  stub_->error = EIO;
  EXPECT_EQ(verbs_.QueryGids(context_, 1, &gids), EIO);
}

TEST_F(LibibverbsTest, RegistrationAsksForWhatIsNeeded) {
  MemoryRegion region;
  char byte = 0;
  ASSERT_EQ(verbs_.Register(domain_, &byte, 1, kRemoteWrite, &region), 0);
  EXPECT_EQ(stub_->access, unsigned{IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE});
  EXPECT_FALSE(stub_->iova);
  EXPECT_EQ(region.local_key, 17u);
  EXPECT_EQ(region.remote_key, 18u);
  ASSERT_EQ(verbs_.Register(domain_, &byte, 1, kRemoteRead | kRelaxedOrdering, &region), 0);
  EXPECT_EQ(stub_->access, unsigned{IBV_ACCESS_REMOTE_READ} | IBV_ACCESS_RELAXED_ORDERING);
  EXPECT_TRUE(stub_->iova);
  ASSERT_EQ(verbs_.RegisterDmaBuf(domain_, 5, 0, 4096, 0, kLocalWrite, &region), 0);
  EXPECT_EQ(stub_->access, unsigned{IBV_ACCESS_LOCAL_WRITE});
  stub_->error = ENOMEM;
  EXPECT_EQ(verbs_.Register(domain_, &byte, 1, kLocalWrite, &region), ENOMEM);
  EXPECT_EQ(verbs_.Deregister(region.id), ENOMEM);
}

TEST_F(LibibverbsTest, EventsAreReadAndAcknowledgedWithTheirSubject) {
  AsyncEvent event;
  stub_->event.event_type = IBV_EVENT_PORT_ERR;
  stub_->event.element.port_num = 2;
  ASSERT_EQ(verbs_.ReadAsyncEvent(context_, &event), 0);
  EXPECT_EQ(event.kind, AsyncKind::kPortError);
  EXPECT_EQ(event.port, 2);
  EXPECT_EQ(stub_->events_acknowledged, 0);
  verbs_.AckAsyncEvent(context_, event);
  EXPECT_EQ(stub_->events_acknowledged, 1);
  EXPECT_EQ(stub_->acknowledged.element.port_num, 2);

  stub_->event.event_type = IBV_EVENT_QP_ACCESS_ERR;
  stub_->event.element.qp = reinterpret_cast<ibv_qp*>(pair_.id);
  ASSERT_EQ(verbs_.ReadAsyncEvent(context_, &event), 0);
  EXPECT_EQ(event.kind, AsyncKind::kQueuePairAccessError);
  EXPECT_EQ(event.queue_pair, pair_.id);
  verbs_.AckAsyncEvent(context_, event);
  EXPECT_EQ(stub_->acknowledged.element.qp, reinterpret_cast<ibv_qp*>(pair_.id));

  // An event that this seam has no name for: acknowledged once, with the library's object.
  stub_->event.event_type = IBV_EVENT_SRQ_ERR;
  ASSERT_EQ(verbs_.ReadAsyncEvent(context_, &event), 0);
  EXPECT_EQ(event.kind, AsyncKind::kOther);
  verbs_.AckAsyncEvent(context_, event);
  EXPECT_EQ(stub_->events_acknowledged, 3);

  stub_->error = EAGAIN;
  EXPECT_EQ(verbs_.ReadAsyncEvent(context_, &event), EAGAIN);
}

TEST_F(LibibverbsTest, CompletionEventsAreTakenAndAcknowledged) {
  CompletionChannelId channel{};
  int fd = -1;
  ASSERT_EQ(verbs_.CreateChannel(context_, &channel, &fd), 0);
  EXPECT_NE(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
  stub_->completion_events = 3;
  EXPECT_EQ(verbs_.TakeCompletionEvents(channel), 0);
  EXPECT_EQ(stub_->events_acknowledged, 3);
  EXPECT_EQ(verbs_.TakeCompletionEvents(channel), EAGAIN);
  EXPECT_EQ(verbs_.Arm(queue_, true), 0);
  EXPECT_EQ(stub_->mask, 1);
}

TEST_F(LibibverbsTest, CompletionsAreTakenInBatches) {
  stub_->completions = 40;  // more than one call of the library is asked for
  stub_->found[0] = {.wr_id = 5,
                     .status = IBV_WC_SUCCESS,
                     .opcode = IBV_WC_RECV_RDMA_WITH_IMM,
                     .byte_len = 100,
                     .imm_data = htonl(0x01020304),
                     .qp_num = 9,
                     .wc_flags = IBV_WC_WITH_IMM};
  stub_->found[1] = {.wr_id = 6, .status = IBV_WC_RETRY_EXC_ERR, .opcode = IBV_WC_RECV, .vendor_err = 0x81, .byte_len = 77};
  stub_->found[2] = {.wr_id = 7, .status = IBV_WC_TM_ERR};
  std::vector<Completion> completions(64);
  size_t taken = 99;
  ASSERT_EQ(verbs_.Poll(queue_, completions, &taken), 0);
  EXPECT_EQ(taken, 40u);
  EXPECT_EQ(completions[0].kind, CompletionKind::kReceiveWriteWithImmediate);
  EXPECT_TRUE(completions[0].has_immediate);
  EXPECT_EQ(completions[0].immediate, 0x01020304u);
  EXPECT_EQ(completions[0].bytes, 100u);
  EXPECT_EQ(completions[0].queue_pair_number, 9u);
  EXPECT_EQ(completions[1].status, Status::kRetryExceeded);
  EXPECT_EQ(completions[1].vendor_error, 0x81u);
  EXPECT_EQ(completions[1].bytes, 0u);  // of a failed one it means nothing
  EXPECT_EQ(completions[2].status, Status::kGeneral);
  ASSERT_EQ(verbs_.Poll(queue_, completions, &taken), 0);
  EXPECT_EQ(taken, 0u);
  stub_->completions = -1;
  EXPECT_EQ(verbs_.Poll(queue_, completions, &taken), EIO);
}

TEST_F(LibibverbsTest, AQueuePairIsMadeAndMoved) {
  QueuePairInfo info;
  ASSERT_EQ(
      verbs_.CreateQueuePair(
          domain_, {.send_completions = queue_, .receive_completions = queue_, .sends = 256, .receives = 128, .inline_bytes = 64}, &info),
      0);
  EXPECT_EQ(info.number, 0x123456u);
  EXPECT_EQ(info.inline_bytes, 92u);
  EXPECT_EQ(stub_->limits.qp_type, IBV_QPT_RC);
  EXPECT_EQ(stub_->limits.cap.max_recv_wr, 128u);
  EXPECT_EQ(stub_->limits.sq_sig_all, 0);

  ASSERT_EQ(verbs_.Init(info.id, 2, 0, kRemoteWrite), 0);
  EXPECT_EQ(stub_->attributes.qp_state, IBV_QPS_INIT);
  EXPECT_EQ(stub_->attributes.port_num, 2);

  ReadyToReceive receive{.path = {.port = 2, .gid_index = 3, .remote_gid = {1, 2}, .traffic_class = 106},
                         .remote_number = 77,
                         .receive_psn = 5,
                         .mtu_bytes = 2048};
  ASSERT_EQ(verbs_.MakeReadyToReceive(info.id, receive), 0);
  EXPECT_EQ(stub_->attributes.qp_state, IBV_QPS_RTR);
  EXPECT_EQ(stub_->attributes.path_mtu, IBV_MTU_2048);
  EXPECT_EQ(stub_->attributes.dest_qp_num, 77u);
  EXPECT_EQ(stub_->attributes.ah_attr.is_global, 1);
  EXPECT_EQ(stub_->attributes.ah_attr.grh.sgid_index, 3);
  EXPECT_EQ(stub_->attributes.ah_attr.grh.dgid.raw[1], 2);
  EXPECT_EQ(stub_->attributes.ah_attr.grh.traffic_class, 106);
  receive.mtu_bytes = 1500;
  EXPECT_EQ(verbs_.MakeReadyToReceive(info.id, receive), EINVAL);
  receive.mtu_bytes = 1024;
  receive.path.gid_index = 256;  // has no place in the library's call: 0 would be another address
  EXPECT_EQ(verbs_.MakeReadyToReceive(info.id, receive), EINVAL);

  ASSERT_EQ(verbs_.MakeReadyToSend(info.id, {.send_psn = 6, .timeout = 15, .retry_cnt = 6}), 0);
  EXPECT_EQ(stub_->attributes.timeout, 15);
  EXPECT_EQ(stub_->attributes.rnr_retry, 7);
  QueuePairState state{};
  ASSERT_EQ(verbs_.QueryState(info.id, &state), 0);
  EXPECT_EQ(state, QueuePairState::kReadyToSend);

  ASSERT_EQ(verbs_.SetState(info.id, QueuePairState::kError), 0);
  EXPECT_EQ(stub_->attributes.qp_state, IBV_QPS_ERR);
  EXPECT_EQ(stub_->mask, IBV_QP_STATE);
  EXPECT_EQ(verbs_.SetState(info.id, QueuePairState::kReadyToSend), EINVAL);
  stub_->error = EIO;
  EXPECT_EQ(verbs_.SetState(info.id, QueuePairState::kReset), EIO);
  EXPECT_EQ(verbs_.DestroyQueuePair(info.id), EIO);
}

TEST_F(LibibverbsTest, AListIsOneDoorbellUpToItsLength) {
  const char bytes[2] = {};
  const Segment segments[] = {{.address = &bytes[0], .bytes = 1, .local_key = 11}, {.address = &bytes[1], .bytes = 1, .local_key = 12}};
  std::vector<SendRequest> requests(40);
  for (size_t i = 0; i < requests.size(); ++i) requests[i] = {.wr_id = i, .kind = SendKind::kWriteWithImmediate, .immediate = 0x0a0b0c0d};
  requests[3] = {.wr_id = 3,
                 .kind = SendKind::kRead,
                 .signaled = true,
                 .solicited = true,
                 .fence = true,
                 .inlined = true,
                 .segments = segments,
                 .remote_address = 1000,
                 .remote_key = 18};
  size_t posted = 0;
  ASSERT_EQ(verbs_.PostSend(pair_.id, requests, &posted), 0);
  EXPECT_EQ(posted, 40u);
  EXPECT_EQ(stub_->doorbells, 2);
  for (size_t i = 0; i < requests.size(); ++i) ASSERT_EQ(stub_->sends[i].wr_id, i);
  EXPECT_EQ(stub_->sends[0].opcode, IBV_WR_RDMA_WRITE_WITH_IMM);
  EXPECT_EQ(stub_->sends[0].imm_data, htonl(0x0a0b0c0d));
  EXPECT_EQ(stub_->sends[0].send_flags, 0u);
  EXPECT_EQ(stub_->sends[3].opcode, IBV_WR_RDMA_READ);
  EXPECT_EQ(stub_->sends[3].send_flags, unsigned{IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_FENCE | IBV_SEND_INLINE});
  EXPECT_EQ(stub_->sends[3].num_sge, 2);
  EXPECT_EQ(stub_->segments[3].addr, reinterpret_cast<uintptr_t>(&bytes[0]));
  EXPECT_EQ(stub_->segments[3].lkey, 11u);
  EXPECT_EQ(stub_->sends[3].wr.rdma.remote_addr, 1000u);
  EXPECT_EQ(stub_->sends[3].wr.rdma.rkey, 18u);
}

TEST_F(LibibverbsTest, SegmentsToo) {
  const std::vector<Segment> segments(40, {.address = this, .bytes = 1});
  const std::vector<ReceiveRequest> requests = {{.wr_id = 1, .segments = segments}, {.wr_id = 2, .segments = segments}, {.wr_id = 3}};
  size_t posted = 0;
  ASSERT_EQ(verbs_.PostReceive(pair_.id, requests, &posted), 0);
  EXPECT_EQ(posted, 3u);
  EXPECT_EQ(stub_->doorbells, 2);
  EXPECT_EQ(stub_->receives[1].num_sge, 40);
  const std::vector<Segment> many(65);
  EXPECT_EQ(verbs_.PostReceive(pair_.id, std::vector<ReceiveRequest>{{.segments = many}}, &posted), EINVAL);
  EXPECT_EQ(posted, 0u);
}

TEST_F(LibibverbsTest, ARefusedRequestReportsHowManyWentBefore) {
  const std::vector<SendRequest> requests(40);
  size_t posted = 0;
  stub_->post_error = ENOMEM;
  stub_->post_refused = 5;
  EXPECT_EQ(verbs_.PostSend(pair_.id, requests, &posted), ENOMEM);
  EXPECT_EQ(posted, 5u);
  stub_->post_refused = -1;
  EXPECT_EQ(verbs_.PostSend(pair_.id, requests, &posted), ENOMEM);
  EXPECT_EQ(posted, 0u);  // the library named none
}

class LibibverbsOldTest : public LibibverbsTest {
 protected:
  LibibverbsOldTest() : LibibverbsTest("libstub_ibverbs_old.so") {}
};

TEST_F(LibibverbsOldTest, ALibraryWithoutTheNewerCallsDoesWithoutThem) {
  DeviceLimits limits;
  ASSERT_EQ(verbs_.QueryDevice(context_, &limits), 0);
  EXPECT_FALSE(limits.relaxed_ordering);
  EXPECT_FALSE(limits.dma_buf);
  MemoryRegion region;
  ASSERT_EQ(verbs_.Register(domain_, this, 1, kRemoteWrite | kRelaxedOrdering, &region), 0);
  EXPECT_EQ(stub_->access, unsigned{IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE});
  EXPECT_EQ(verbs_.RegisterDmaBuf(domain_, 5, 0, 4096, 0, kLocalWrite, &region), EOPNOTSUPP);
}

}  // namespace
}  // namespace r2cc::verbs
