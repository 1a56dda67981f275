// The World of a running r2ccd: the kernel, the disk, gRPC.
#ifndef R2CC_DAEMON_REAL_WORLD_H_
#define R2CC_DAEMON_REAL_WORLD_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/core/verbs/libibverbs.h"
#include "base/event_loop.h"
#include "daemon/config/config.h"
#include "daemon/core/roles.h"
#include "daemon/io/addresses.h"
#include "daemon/io/files.h"
#include "daemon/io/page_sink.h"
#include "daemon/io/socket_attach_server.h"
#include "daemon/io/store.h"
#include "daemon/metrics/facts.h"
#include "daemon/reload/config_loader.h"
#include "daemon/rpc/authenticator.h"
#include "daemon/rpc/channel.h"
#include "daemon/rpc/grpc_peer_transport.h"
#include "daemon/rpc/store_service.h"
#include "daemon/trust/refusals.h"
#include "daemon/world.h"
#include "health/io/hwloc_topology.h"
#include "health/io/netlink_link_watch.h"
#include "health/io/rdma_pairs.h"
#include "health/io/sysfs.h"
#include "health/io/udp_datagram.h"
#include "health/io/umad_fabric.h"
#include "health/io/verbs_rdma_watch.h"

namespace r2cc::daemon {

// The contents of the credential files for all connections that the daemon makes.
struct AllCredentials {
  Credentials peers;
  std::shared_ptr<grpc::ChannelCredentials> etcd;
};
absl::StatusOr<AllCredentials> LoadAllCredentials(const Config& config);

class RealWorld {
 public:
  // `loader` and `loop` outlive it. The loop runs while this exists.
  static absl::StatusOr<std::unique_ptr<RealWorld>> Make(const LoadedConfig& loaded, ConfigLoader* loader,
                                                         const AllCredentials& credentials, EventLoop* loop);
  RealWorld(const RealWorld&) = delete;
  RealWorld& operator=(const RealWorld&) = delete;

  World world();
  Executor* disk() { return &disk_.loop(); }
  // The store that this daemon serves; null: none.
  StoreService* store_service() { return store_service_.get(); }
  // The server to which jobs attach; core thread only, or before its loop runs.
  SocketAttachServer* jobs() { return &jobs_; }
  const Authenticator* authenticator() const { return &authenticator_; }
  Refusals* refusals() { return &refusals_; }
  // Returns when all that was to be written is, or cannot be. The core's loop does not run any more.
  void FlushDisk() {
    disk_.loop().RunAndWait([] {});
  }

 private:
  RealWorld(const LoadedConfig& loaded, ConfigLoader* loader, const AllCredentials& credentials, EventLoop* loop,
            std::unique_ptr<SharedPage> page);

  ConfigLoader* const loader_;
  EventLoop* const loop_;
  TurnFacts turns_;  // of the loop; its thread's
  const std::function<int64_t()> realtime_ns_;
  ScopedLoopThread disk_;
  health::NetlinkLinkWatch links_;
  const health::RealSysfs sysfs_;
  health::UdpDatagrams datagrams_;
  health::UmadFabric fabric_;
  verbs::Libibverbs verbs_;
  ScopedLoopThread rdma_thread_;
  health::VerbsRdmaWatch rdma_;
  health::RdmaPairs rdma_pairs_;
  const health::HwlocTopology topology_;
  OsAddresses addresses_;
  OsFiles files_;
  const std::unique_ptr<SharedPage> page_;
  SocketAttachServer jobs_;
  const RolePolicy roles_;
  Refusals refusals_;
  const Authenticator authenticator_;
  GrpcPeerTransport peers_;
  std::unique_ptr<StoreService> store_service_;
  std::unique_ptr<Store> store_;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_REAL_WORLD_H_
