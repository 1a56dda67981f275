#include "daemon/real_world.h"

#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/core/check.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "daemon/rpc/etcd_store.h"
#include "daemon/rpc/grpc_store.h"
#include "daemon/trust/signed_store.h"

namespace r2cc::daemon {
namespace {

// Between two looks at the processor time of the core's thread. With one in each turn an idle daemon took 0.2 to 0.4 % of a core more.
constexpr Nanos kTurnsObserved = 20 * kNanosPerMs;

int64_t NanosOf(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return now.tv_sec * kNanosPerSecond + now.tv_nsec;
}

// Not 0, which is nobody's.
uint64_t RandomNumber() {
  uint64_t number = 0;
  // Cannot fail for so few bytes on a kernel that has booted.
  if (getrandom(&number, sizeof(number), 0) != sizeof(number) || number == 0) number = static_cast<uint64_t>(NanosOf(CLOCK_BOOTTIME)) | 1;
  return number;
}

std::unique_ptr<Store> MakeBareStore(const Config& config, const AllCredentials& credentials, EventLoop* loop, StoreService* own) {
  if (own != nullptr) return std::make_unique<LocalStore>(loop, own);
  if (config.etcd.has_value()) return std::make_unique<EtcdStore>(loop, config.etcd->endpoints, credentials.etcd);
  for (const PeerSpec& peer : config.peers)
    if (peer.node == config.store_node) return std::make_unique<GrpcStore>(loop, peer, credentials.peers);
  return std::make_unique<NoStore>();
}

}  // namespace

absl::StatusOr<AllCredentials> LoadAllCredentials(const Config& config) {
  AllCredentials all;
  ASSIGN_OR_RETURN(all.peers, LoadCredentials(config.tls, config.insecure, config.file + ": tls", config.wall_clock_offset));
  ASSIGN_OR_RETURN(all.etcd,
                   LoadEtcdCredentials(config.etcd.has_value() ? config.etcd->tls : std::nullopt, config.file + ": store.etcd_tls"));
  return all;
}

absl::StatusOr<std::unique_ptr<RealWorld>> RealWorld::Make(const LoadedConfig& loaded, ConfigLoader* loader,
                                                           const AllCredentials& credentials, EventLoop* loop) {
  auto page = SharedPage::Create();
  if (!page.ok()) return absl::Status(page.status().code(), absl::StrCat("cannot make the page: ", page.status().message()));
  std::unique_ptr<RealWorld> world(new RealWorld(loaded, loader, credentials, loop, *std::move(page)));
  // The observed value is the longest time that a turn since the last look can have taken.
  loop->ObserveTurns([turns = &world->turns_, last = Nanos{0}, next = Nanos{0}]() mutable {
    const Nanos now = NanosOf(CLOCK_MONOTONIC);
    if (now < next) return;
    next = now + kTurnsObserved;
    const Nanos before = std::exchange(last, NanosOf(CLOCK_THREAD_CPUTIME_ID));
    if (before != 0) turns->Observe(static_cast<double>(last - before) / kNanosPerSecond);
  });
  return world;
}

RealWorld::RealWorld(const LoadedConfig& loaded, ConfigLoader* loader, const AllCredentials& credentials, EventLoop* loop,
                     std::unique_ptr<SharedPage> page)
    : loader_(loader),
      loop_(loop),
      realtime_ns_([offset = loaded.config.wall_clock_offset] { return NanosOf(CLOCK_REALTIME) + offset; }),
      disk_("r2ccd-disk"),
      links_(loop),
      datagrams_(loop),
      fabric_(loop),
      rdma_thread_("r2ccd-rdma"),
      rdma_({&verbs_, loop, &rdma_thread_.loop(),
             [loop](int fd, std::function<void()> readable) {
               return loop->AddFd(fd, EPOLLIN, [readable = std::move(readable)](uint32_t) { readable(); });
             },
             [loop](int fd) { loop->RemoveFd(fd); }}),
      rdma_pairs_(&verbs_, loop, &rdma_thread_.loop(), loaded.config.rdma),
      page_(std::move(page)),
      jobs_(loop, loaded.config.attach_socket(), page_->fd(), loaded.config.attach),
      roles_(loaded.roles()),
      refusals_(realtime_ns_),
      authenticator_(credentials.peers.tls, loaded.config.insecure, &refusals_),
      peers_(loop, credentials.peers),
      store_service_(!loaded.config.store_node.empty() && loaded.config.store_node == loaded.config.node
                         ? std::make_unique<StoreService>(loop, &authenticator_, loaded.config.nodes_prefix())
                         : nullptr),
      store_(std::make_unique<SignedStore>(loop, MakeBareStore(loaded.config, credentials, loop, store_service_.get()),
                                           credentials.peers.tls, loaded.config.insecure, &refusals_)) {}

World RealWorld::world() {
  World world;
  world.core = loop_;
  world.disk = &disk_.loop();
  world.realtime_ns = realtime_ns_;
  world.boot_ns = [] { return NanosOf(CLOCK_BOOTTIME); };
  world.links = &links_;
  world.sysfs = &sysfs_;
  world.datagrams = &datagrams_;
  world.fabric = &fabric_;
  if (verbs_.missing().empty()) {
    world.rdma = &rdma_;
    world.rdma_pairs = &rdma_pairs_;
  } else {
    LogInfo(verbs_.missing());
  }
  world.topology = &topology_;
  world.addresses = &addresses_;
  world.files = &files_;
  world.page = page_.get();
  world.jobs = &jobs_;
  world.peers = &peers_;
  world.store = store_.get();
  world.config = loader_;
  world.roles = roles_;
  world.refusals = &refusals_;
  world.turns = &turns_;
  world.incarnation = RandomNumber();
  world.new_probe_secret = [] {
    health::ProbeSecret secret;
    // Cannot fail for so few bytes on a kernel that has booted.
    R2CC_CHECK(getrandom(secret.data(), secret.size(), 0) == static_cast<ssize_t>(secret.size()));
    return secret;
  };
  if (auto id = files_.Read("/proc/sys/kernel/random/boot_id"); id.ok()) world.boot_id = id->substr(0, id->find('\n'));
  struct stat netns {};
  if (stat("/proc/self/ns/net", &netns) == 0) world.netns_inode = netns.st_ino;
  return world;
}

}  // namespace r2cc::daemon
