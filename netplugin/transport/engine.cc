#include "netplugin/transport/engine.h"

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "base/core/version_range.h"
#include "netplugin/flow/tuning.h"
#include "netplugin/transport/host_policy.h"
#include "netplugin/transport/record.h"

namespace r2cc::net {
namespace {

uint64_t Random() {
  uint64_t value = 0;
  while (value == 0)
    if (getrandom(&value, sizeof(value), 0) != sizeof(value)) continue;
  return value;
}

}  // namespace

// ---- start and end ----

std::unique_ptr<Engine> Engine::Start(Parts parts, std::string* error) {
  std::unique_ptr<Engine> engine(new Engine(std::move(parts)));
  if (!engine->Open(error)) return nullptr;
  // The job's signals are the job's: the thread is born with all of them blocked.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  struct Restore {
    const sigset_t* mask;
    ~Restore() { pthread_sigmask(SIG_SETMASK, mask, nullptr); }
  } const restore{&before};
  engine->thread_ = std::thread([raw = engine.get()] { raw->Run(); });
  return engine;
}

bool Engine::Open(std::string* error) {
  wake_ = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!poller_.ok() || !wake_) {
    *error = std::string("R2CC: cannot make an epoll or event descriptor: ") + std::strerror(errno);
    return false;
  }
  const PluginConfig& config = parts_.config;
  host_.clock = &clock_;
  host_.log = [this](LogLevel level, const std::string& line) { Log(level, line); };
  host_.report = [this](const plan::EvidenceRecord& record) { control_plane_->Report(record); };
  host_.page = [this] { return control_plane_->page(); };
  host_.process = Random();
  host_.nonce = Random();
  host_.pid = getpid();
  host_.release = parts_.release;
  host_.run = parts_.run.id;
  host_.run_is_shared = parts_.run.shared;
  host_.rank = parts_.run.rank;
  host_.held_operations = parts_.held_operations;
  host_.tally.Began(clock_.Now());
  SetPolicy(config, &host_);
  if (parts_.gpu != nullptr) {
    device_memory_ops_ = std::make_unique<DeviceMemoryOps>(parts_.gpu, host_.log);
    host_.memory_ops = device_memory_ops_.get();
  }
  control_plane_ =
      std::make_unique<ControlPlane>(&host_, &poller_, config.fail_rails, std::move(parts_.link_events), std::move(parts_.daemon));
  acceptor_ = std::make_unique<Acceptor>(&host_, [this](const std::string& node) { control_plane_->ReportPeer(node); });
  if (!MakeTransports(error)) return false;
  host_.oob.host = parts_.oob_address.text;
  if (!transports_.oob()->ListenOob(host_.oob.host, &host_.oob.port, error)) return false;
  for (uint16_t i = 0; i < parts_.rails.size(); ++i) {
    LocalRail& local = host_.rails.emplace_back();
    local.name = local.nic = parts_.rails[i].name;
    local.up = parts_.rails[i].up;
    local.lost_on_purpose = parts_.rails[i].unused;
    NoteRail(i, local.up);
    if (!ListenOn(i, error)) return false;
  }
  host_.UpdateNames();
  memory_ = std::make_unique<MemoryTable>(transports_.on_rails(), host_.rails.size(), [this](const Region& changed) {
    calls_.Post([this, region = changed] {
      for (const auto& [session, peer] : acceptor_->peers()) {
        const PeerLock lock(*peer);
        peer->RegionChanged(region);
        peer->RunToCompletion();
      }
      for (const auto& [process, peer] : send_peers_) {
        const PeerLock lock(*peer);
        peer->RegionChanged(region);
        peer->RunToCompletion();
      }
    });
  });
  host_.memory = memory_.get();
  host_.rails_stalled = [this](uint64_t process, RailPair rails) {
    calls_.Post([this, process, rails] { acceptor_->RailsStalled(process, rails); });
  };
  bounce_ = std::make_unique<BouncePool>(memory_.get(), parts_.gpu);
  if (transports_.place_by_device()) host_.bounce = bounce_.get();
  if (!config.attach_socket.empty()) control_plane_->AwaitDaemon();
  poller_.Add(wake_.get(), EPOLLIN, [this](uint32_t) {
    uint64_t count;
    while (read(wake_.get(), &count, sizeof(count)) > 0) {
    }
  });
  StartControlPlane();
  return true;
}

bool Engine::MakeTransports(std::string* error) {
  const auto greet = [this](const Hello& hello, std::unique_ptr<Connection>* connection) {
    const HelloReply reply = acceptor_->Greet(hello, connection);
    if (const auto it = acceptor_->peers().find(hello.session); it != acceptor_->peers().end()) peer_watch_.Add(it->second.get());
    return reply;
  };
  auto oob = parts_.make_transport(&poller_, &clock_, host_.log, greet, error);
  if (oob == nullptr) return false;
  transports_.SetOob(std::move(oob));
  if (parts_.config.transport != TransportOption::kTcp && parts_.make_rail_transport != nullptr) {
    const TransportParts parts{.poller = &poller_,
                               .clock = &clock_,
                               .log = host_.log,
                               .gpu = parts_.gpu,
                               .keys_revoked = [this](TransportKind kind, uint16_t rail) { memory_->DeviceBack(kind, rail); },
                               .rail_changed = [this](TransportKind kind, uint16_t rail) { RailChanged(kind, rail); }};
    if (!transports_.Make(parts_.make_rail_transport, parts, error)) return false;
  }
  host_.oob_transport = transports_.oob();
  host_.transports = transports_.all();
  return true;
}

void Engine::NoteRail(uint16_t rail, bool up) {
  const uint64_t bit = uint64_t{1} << rail;
  up ? rails_down_.fetch_and(~bit) : rails_down_.fetch_or(bit);
}

uint64_t Engine::BytesPerSecondWithout(uint64_t down) const {
  uint64_t bytes_per_s = 0;
  for (size_t rail = 0; rail < parts_.rails.size(); ++rail)
    if ((down >> rail & 1) == 0) bytes_per_s += static_cast<uint64_t>(std::max(parts_.rails[rail].speed_mbps, 1)) * (1'000'000 / 8);
  return bytes_per_s;
}

void Engine::RailChanged(TransportKind kind, uint16_t rail) {
  Exclusively([&] {
    if (!transports_.ListenAgain(kind, parts_.rails[rail], host_.log, &host_.rails[rail].endpoints)) return;
    for (const auto& [session, peer] : acceptor_->peers()) {
      peer->HasLock();
      peer->Regreet();
    }
  });
}

void Engine::Wake() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof(one));
}

void Engine::Run() {
  pthread_setname_np(pthread_self(), "r2cc-io");
  // NCCL pins the thread that starts us next to its GPU; the sockets of all rails are not its alone. Workers inherit this.
  processors_.Use();
  prctl(PR_SET_TIMERSLACK, 1);
  transports_.StartThreads(processors_.count());

  while (!stop_.load(std::memory_order_relaxed)) {
    poller_.Wait(closer_.empty() ? peer_watch_.WaitMs() : static_cast<int>(tuning::kLookSoon / kNanosPerMs));
    peer_watch_.ServiceMore();
    calls_.Run();
    const Nanos now = clock_.Now();
    closer_.Look(now);
    control_plane_->Poll(now);
    if (now - ticked_ < tuning::kTickEvery) continue;
    ticked_ = now;
    TickPeers();
    WatchRequests(now);
    transports_.Tick(now);
  }
  Drain();
  transports_.StopListening();
  ForEachPeer([](Peer* peer) {
    const PeerLock lock(*peer);
    peer->Shut();
  });
  transports_.StopThreads();
  closer_.End();
  calls_.End();
}

// ---- the I/O thread and the peers ----

void Engine::ForEachPeer(const std::function<void(Peer*)>& call) {
  for (const auto& [process, peer] : send_peers_) call(peer.get());
  for (const auto& [session, peer] : acceptor_->peers()) call(peer.get());
}

void Engine::Exclusively(const std::function<void()>& call) {
  std::vector<std::unique_ptr<PeerLock>> locks;
  ForEachPeer([&](Peer* peer) { locks.push_back(std::make_unique<PeerLock>(*peer)); });
  call();
  ForEachPeer([](Peer* peer) {
    peer->HasLock();
    peer->RunToCompletion();
  });
}

void Engine::TickPeers() {
  for (Peer* peer : peer_watch_.Tick()) {
    peer_watch_.Remove(peer);
    {
      // A worker may hold it for a moment longer.
      const PeerLock lock(*peer);
      peer->Shut();
    }
    std::erase_if(acceptor_->peers(), [peer](const auto& entry) { return entry.second.get() == peer; });
    std::erase_if(send_peers_, [peer](const auto& entry) { return entry.second.get() == peer; });
  }
  LostRails lost;
  FewestRails fewest;
  for (const auto& [process, peer] : send_peers_) {
    lost.Add(peer->rail_use());
    fewest.Add(peer->rail_use());
  }
  rails_lost_.store(lost.bits(), std::memory_order_relaxed);
  if (fewest.lost() == rails_fewer_) return;
  // Rails are counted as lost a while after they are.
  const Nanos now = clock_.Now();
  const Nanos when = fewest.lost() > rails_fewer_ ? std::max(now - tuning::kRailLostAfter, used_) : now;
  rails_fewer_ = fewest.lost();
  used_ = when;
  RecordUse(&host_, static_cast<uint32_t>(host_.rails.size()) - rails_fewer_, when);
}

// What ends a peer ends both sessions with it, at about the same time: one line is enough. Who leaves it to another thread goes on when it
// is written: the error that follows may end the process.
void Engine::Log(LogLevel level, const std::string& line) {
  if (level != LogLevel::kWarn) return parts_.log(level, line);
  const MutexLock lock(log_mutex_);
  const Nanos now = clock_.Now();
  std::erase_if(warned_, [now](const auto& entry) { return now - entry.second >= tuning::kWarnAgainAfter; });
  if (warned_.emplace(line, now).second) parts_.log(level, line);
}

// ---- calls ----

uint64_t Engine::Listen(Handle* handle) {
  const uint64_t id = Random();
  acceptor_->Open(id);
  std::memset(handle, 0, sizeof(*handle));
  handle->magic = kHandleMagic;
  handle->wire_least = kWireVersionLeast;
  handle->wire_newest = kWireVersion;
  handle->process = host_.process;
  handle->nonce = host_.nonce;
  handle->listen_id = id;
  handle->oob_port = host_.oob.port;
  CopyText(parts_.oob_address.text, handle->oob_address, sizeof(handle->oob_address));
  handle->checksum = HandleChecksum(*handle);
  return id;
}

void Engine::CloseListen(uint64_t listen_id) {
  for (auto& comm : acceptor_->Close(listen_id)) Close(std::move(comm));
}

SendPeer* Engine::PeerFor(const Handle& handle) {
  std::shared_ptr<SendPeer>& peer = send_peers_[handle.process];
  if (peer == nullptr) {
    const bool few = send_peers_.size() <= tuning::kPeersWithAllLinks;
    const SendPeer::Target target{handle.process, handle.nonce, {handle.oob_address, handle.oob_port}, few};
    peer = std::make_shared<SendPeer>(&host_, target, Random());
    peer_watch_.Add(peer.get());
  }
  return peer.get();
}

std::unique_ptr<SendComm> Engine::Connect(const Handle& handle, uint16_t local_rail, std::string* error, bool dealt,
                                          uint64_t communicator) {
  if (NegotiateVersion(handle.wire_least, handle.wire_newest) == 0) {
    *error = "R2CC: the peer at " + std::string(handle.oob_address) + " uses wire version " +
             VersionRange(handle.wire_least, handle.wire_newest) + ", this release " + VersionRange(kWireVersionLeast, kWireVersion) +
             ": install releases next to each other";
    return nullptr;
  }
  if (!transports_.oob()->Reaches({handle.oob_address, handle.oob_port})) {
    *error = "R2CC: the peer's out-of-band address " + std::string(handle.oob_address) + " cannot be reached from " +
             parts_.oob_address.text + ": set R2CC_OOB_IFNAME to interfaces of one network on all nodes";
    return nullptr;
  }
  auto comm = std::make_unique<SendComm>();
  comm->bounce = NewBounce(host_.bounce, false);
  comm->communicator = communicator;
  calls_.Do([&] {
    // Asked here: from the end on no peer is made any more, whoever carries out the call.
    if (stop_.load()) return;
    comm->peer_ = PeerFor(handle);
    {
      const PeerLock lock(*comm->peer_);
      comm->flow_ = comm->peer_->Open(handle.listen_id, local_rail, comm.get());
      if (dealt) comm->peer_->SetDealt(comm->flow_, true);
    }
    comm->peer_->Tick();
    peer_watch_.Expect(comm->peer_);
  });
  if (comm->peer_ != nullptr) return comm;
  *error = kCalledAfterTheEnd;
  return nullptr;
}

template <typename OneComm>
void Engine::CloseComm(std::unique_ptr<OneComm> comm) {
  // If this throws, the peer may still know the comm: then it stays for ever.
  OneComm* const raw = comm.release();
  FlowCloser::Close close;
  calls_.Do([this, raw, &close] {
    const auto peer = raw->peer();
    const FlowId flow = raw->flow();
    {
      const PeerLock lock(*peer);
      peer->Close(flow);
    }
    const auto holds = [peer, flow] {
      peer->Tick();
      const PeerLock lock(*peer);
      return peer->Holds(flow);
    };
    closer_.Begin(&close, holds, clock_.Now());
  });
  closer_.Await(&close);
  delete raw;
}

void Engine::Close(std::unique_ptr<SendComm> comm) { CloseComm(std::move(comm)); }
void Engine::Close(std::unique_ptr<RecvComm> comm) { CloseComm(std::move(comm)); }

std::string Engine::LastLine() const { return host_.tally.Line(host_.run.empty() ? host_.job : host_.run, clock_.Now()); }

std::vector<std::string> Engine::Summary() {
  std::vector<std::string> lines;
  calls_.Do([&] {
    lines = RailTotals(host_);
    if (const uint64_t refused = transports_.refused(); refused > 0)
      lines.push_back("R2CC: refused connections: " + std::to_string(refused));
  });
  return lines;
}

}  // namespace r2cc::net
