#include "netplugin/transport/engine.h"

#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "netplugin/transport/tcp/congestion.h"
#include "netplugin/transport/tcp/record.h"

namespace r2cc::net {
namespace {

constexpr Nanos kSameWarningAfter = 10 * kNanosPerSecond;
constexpr int kDrainWaitMs = 5;
// Of the processors that the process may use a few are left to NCCL's and the job's threads; of the others movers have half.
constexpr int kProcessorsLeft = 4;
constexpr int kMoversMost = 16;
constexpr int kSocketsMost = 4;

uint64_t Random() {
  uint64_t value = 0;
  while (value == 0)
    if (getrandom(&value, sizeof(value), 0) != sizeof(value)) continue;
  return value;
}

StripeMode StripeModeOf(const Config& config) {
  if (!config.mode.has_value()) return StripeMode::kBalance;
  switch (*config.mode) {
    case Mode::kOneRail: return StripeMode::kOneRail;
    case Mode::kMigrate: return StripeMode::kMigrate;
    case Mode::kBalance:
    case Mode::kDegradedAllReduce: return StripeMode::kBalance;
  }
  return StripeMode::kBalance;
}

SocketAddress ToSocketAddress(const IpAddress& address) {
  SocketAddress out;
  out.storage = address.storage;
  out.length = address.length;
  return out;
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
  engine->thread_ = std::thread([raw = engine.get()] { raw->Run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return engine;
}

bool Engine::Open(std::string* error) {
  wake_ = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!io_.poller.ok() || !wake_) {
    *error = std::string("R2CC: cannot make an epoll or event descriptor: ") + std::strerror(errno);
    return false;
  }
  const Config& config = parts_.config;
  io_.clock = &clock_;
  io_.log = [this](LogLevel level, const std::string& line) { Log(level, line); };
  io_.report = [this](const plan::EvidenceRecord& record) { world_->Report(record); };
  io_.verdict = [this](const std::string& node, const std::string& nic) { return world_->VerdictOn(node, nic); };
  io_.path_broken = [this](const std::string& nic, const std::string& peer_node, const std::string& peer_nic) {
    return world_->PathBroken(nic, peer_node, peer_nic);
  };
  io_.process = Random();
  io_.nonce = Random();
  io_.node = config.node;
  io_.chunk_bytes = config.chunk_bytes.value_or(kChunkBytesBase);
  io_.chunks_follow_rate = !config.chunk_bytes.has_value();
  io_.bulk_after_bytes = config.bulk_after_bytes;
  io_.checksum = config.checksum;
  io_.mode = StripeModeOf(config);
  // Without protection there is nothing to replay a copy for.
  io_.eager_bytes = io_.mode == StripeMode::kOneRail ? 0 : kEagerBytesMax;
  io_.silence = config.silence_ms * kNanosPerMs;
  io_.deadline = config.deadline_ms * kNanosPerMs;
  io_.oob_source.address = ToSocketAddress(parts_.oob_address);
  world_ = std::make_unique<World>(&io_, config.fail_rails, std::move(parts_.link_events), std::move(parts_.daemon));
  reception_ = std::make_unique<Reception>(&io_, [this](const std::string& node) { world_->ReportPeer(node); });
  greeter_ = std::make_unique<Greeter>(&io_, [this](const Hello& hello, std::unique_ptr<PacketStream>* stream) {
    const HelloReply reply = reception_->Greet(hello, stream);
    if (const auto it = reception_->peers().find(hello.session); it != reception_->peers().end()) peer_watch_.Add(it->second.get());
    return reply;
  });
  UniqueFd oob = net::Listen(io_.oob_source, &io_.oob_port, error);
  if (!oob) return false;
  greeter_->AddListener(std::move(oob));
  const std::string system = SystemCongestionControl();
  const auto congestion_control = RailCongestionControl(
      config.tcp_congestion, system, [](const std::string& name) { return HasCongestionControl(name); }, error);
  if (!congestion_control) return false;
  if (!congestion_control->empty())
    Log(LogLevel::kInfo, "R2CC: rails use " + *congestion_control + ", the system " + system + " (R2CC_TCP_CONGESTION)");
  for (const Rail& rail : parts_.rails) {
    LocalRail local;
    local.name = local.nic = rail.name;
    local.source = {ToSocketAddress(rail.address), rail.interface, *congestion_control};
    local.up = rail.up;
    if (!rail.address.empty() && !ListenOn(&local, error)) return false;
    io_.rails.push_back(std::move(local));
  }
  if (!config.attach_socket.empty()) world_->AwaitDaemon();
  io_.poller.Add(wake_.get(), EPOLLIN, [this](uint32_t) {
    uint64_t count;
    while (read(wake_.get(), &count, sizeof(count)) > 0) {
    }
  });
  StartWorld();
  return true;
}

void Engine::StartWorld() {
  world_->Start({
      .exclusively = [this](const std::function<void()>& call) { Exclusively(call); },
      .rail_state = [this](uint16_t rail, bool up) { ForEachPeer([&](Peer* peer) { peer->RailState(rail, up); }); },
      .verdicts = [this] { ForEachPeer([](Peer* peer) { peer->ApplyVerdicts(); }); },
      .attached =
          [this] {
            for (const auto& [process, peer] : send_peers_)
              if (!peer->node().empty()) world_->ReportPeer(peer->node());
            for (const auto& [session, peer] : reception_->peers()) world_->ReportPeer(peer->node());
          },
      .address =
          [this](uint16_t rail) {
            // Peers hear of the port with the next greeting.
            if (std::string error; !ListenOn(&io_.rails[rail], &error)) io_.log(LogLevel::kWarn, "R2CC: " + error);
          },
  });
}

bool Engine::ListenOn(LocalRail* rail, std::string* error) {
  UniqueFd listener = net::Listen(rail->source, &rail->port, error);
  if (!listener) return false;
  greeter_->AddListener(std::move(listener));
  return true;
}

Engine::~Engine() { Stop(); }

void Engine::Stop() {
  if (!thread_.joinable()) return;
  stop_ = true;
  Wake();
  thread_.join();
}

void Engine::Wake() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof(one));
}

void Engine::Run() {
  pthread_setname_np(pthread_self(), "r2cc-io");
  // NCCL pins the thread that starts us next to its GPU; the sockets of all rails are not its alone.
  cpu_set_t everywhere;
  std::memset(&everywhere, 0xff, sizeof(everywhere));
  sched_setaffinity(0, sizeof(everywhere), &everywhere);
  prctl(PR_SET_TIMERSLACK, 1);
  StartMovers();

  while (!stop_.load(std::memory_order_relaxed)) {
    io_.poller.Wait(peer_watch_.WaitMs());
    peer_watch_.ServiceMore();
    calls_.Run();
    const Nanos now = clock_.Now();
    world_->Poll(now);
    if (now - ticked_ < Peer::kTickEvery) continue;
    ticked_ = now;
    TickPeers();
    greeter_->Tick(now);
  }
  Drain();
  greeter_.reset();
  ForEachPeer([](Peer* peer) {
    const auto turn = peer->TakeTurn();
    peer->Shut();
  });
  movers_.reset();
  calls_.End();
}

void Engine::StartMovers() {
  cpu_set_t allowed;
  const int processors = sched_getaffinity(0, sizeof(allowed), &allowed) == 0 ? CPU_COUNT(&allowed) : 1;
  const int threads = parts_.config.bulk_threads.value_or(std::clamp((processors - kProcessorsLeft) / 2, 0, kMoversMost));
  // So many that each mover has one to send or to receive with, and twice as many where rails are quick (SocketsInUse).
  const int rails = static_cast<int>(io_.rails.size());
  const int sockets = parts_.config.sockets_per_rail.value_or(std::clamp((threads + rails - 1) / rails, 1, kSocketsMost));
  io_.sockets_per_rail = static_cast<uint8_t>(sockets);
  if (threads == 0) return;
  std::string error;
  movers_ = Movers::Start(threads, &error);
  if (movers_ == nullptr) return io_.log(LogLevel::kWarn, error + "; NCCL's threads alone move the bytes");
  io_.movers = movers_.get();
}

// A job that ends must not leave its peers waiting for an acknowledgement that never left, nor for small messages that NCCL believes to
// be sent: while a peer may still be reached, the end waits for its answer.
void Engine::Drain() {
  calls_.Run();
  world_->ReportTotals(clock_.Now());
  ForEachPeer([](Peer* peer) {
    const auto turn = peer->TakeTurn();
    peer->CloseFlows();
  });
  const Nanos began = clock_.Now();
  for (;;) {
    bool waiting = false;
    ForEachPeer([&](Peer* peer) {
      peer->TickTurn();
      const auto turn = peer->TakeTurn();
      waiting |= !peer->flushed() || (!peer->idle() && !peer->over());
    });
    if (!waiting || clock_.Now() - began >= io_.deadline) break;
    io_.poller.Wait(kDrainWaitMs);
    calls_.Run();
    world_->Poll(clock_.Now());
  }
  ForEachPeer([](Peer* peer) {
    const auto turn = peer->TakeTurn();
    peer->HalfClose();
  });
}

// ---- the I/O thread and the peers ----

void Engine::ForEachPeer(const std::function<void(Peer*)>& call) {
  for (const auto& [process, peer] : send_peers_) call(peer.get());
  for (const auto& [session, peer] : reception_->peers()) call(peer.get());
}

void Engine::Exclusively(const std::function<void()>& call) {
  std::vector<std::unique_lock<std::mutex>> turns;
  ForEachPeer([&](Peer* peer) { turns.push_back(peer->TakeTurn()); });
  call();
  ForEachPeer([](Peer* peer) { peer->Settle(); });
}

void Engine::TickPeers() {
  for (Peer* peer : peer_watch_.Tick()) {
    peer_watch_.Remove(peer);
    {
      // A mover may hold it for a moment longer.
      const auto turn = peer->TakeTurn();
      peer->Shut();
    }
    std::erase_if(reception_->peers(), [peer](const auto& entry) { return entry.second.get() == peer; });
    std::erase_if(send_peers_, [peer](const auto& entry) { return entry.second.get() == peer; });
  }
}

// What ends a peer ends both sessions with it, at about the same time: one line is enough. Who leaves it to another thread goes on when it
// is written: the error that follows may end the process.
void Engine::Log(LogLevel level, const std::string& line) {
  if (level != LogLevel::kWarn) return parts_.log(level, line);
  const std::lock_guard lock(log_mutex_);
  const Nanos now = clock_.Now();
  std::erase_if(warned_, [now](const auto& entry) { return now - entry.second >= kSameWarningAfter; });
  if (warned_.emplace(line, now).second) parts_.log(level, line);
}

// ---- calls ----

uint64_t Engine::Listen(Handle* handle) {
  const uint64_t id = Random();
  reception_->Open(id);
  std::memset(handle, 0, sizeof(*handle));
  handle->magic = kHandleMagic;
  handle->wire_least = kWireVersionLeast;
  handle->wire_newest = kWireVersion;
  handle->process = io_.process;
  handle->nonce = io_.nonce;
  handle->listen_id = id;
  handle->oob_port = io_.oob_port;
  CopyText(parts_.oob_address.text, handle->oob_address, sizeof(handle->oob_address));
  handle->checksum = HandleChecksum(*handle);
  return id;
}

void Engine::CloseListen(uint64_t listen_id) {
  for (auto& comm : reception_->Close(listen_id)) Close(std::move(comm));
}

SendPeer* Engine::PeerFor(const Handle& handle) {
  std::shared_ptr<SendPeer>& peer = send_peers_[handle.process];
  if (peer == nullptr) {
    SendPeer::Target target{handle.process, handle.nonce, {}};
    ParseAddress(handle.oob_address, handle.oob_port, &target.oob);
    peer = std::make_shared<SendPeer>(&io_, target, Random());
    peer_watch_.Add(peer.get());
  }
  return peer.get();
}

std::unique_ptr<SendComm> Engine::Connect(const Handle& handle, uint16_t local_rail, std::string* error) {
  SocketAddress parsed;
  if (NegotiateVersion(handle.wire_least, handle.wire_newest) == 0) {
    *error = "R2CC: the peer at " + std::string(handle.oob_address) + " speaks wire versions " + std::to_string(handle.wire_least) +
             " to " + std::to_string(handle.wire_newest) + ", this release " + std::to_string(kWireVersionLeast) + " to " +
             std::to_string(kWireVersion) + ": install the same release on both nodes";
    return nullptr;
  }
  if (!ParseAddress(handle.oob_address, handle.oob_port, &parsed) || parsed.storage.ss_family != io_.oob_source.address.storage.ss_family) {
    *error = "R2CC: the peer's out-of-band address " + std::string(handle.oob_address) + " cannot be reached from " +
             parts_.oob_address.text + ": set R2CC_OOB_IFNAME to interfaces of one network on all nodes";
    return nullptr;
  }
  auto comm = std::make_unique<SendComm>();
  calls_.Do([&] {
    // Asked here: from the end on no peer is made any more, whoever carries out the call.
    if (stop_.load()) return;
    comm->peer_ = PeerFor(handle);
    {
      const auto turn = comm->peer_->TakeTurn();
      comm->flow_ = comm->peer_->Open(handle.listen_id, local_rail, comm.get());
    }
    comm->peer_->TickTurn();
    peer_watch_.Expect(comm->peer_);
  });
  if (comm->peer_ != nullptr) return comm;
  *error = kCalledAfterTheEnd;
  return nullptr;
}

void Engine::Close(std::unique_ptr<SendComm> comm) {
  calls_.Do([&] {
    const auto turn = comm->peer_->TakeTurn();
    comm->peer_->Close(comm->flow_);
  });
}

void Engine::Close(std::unique_ptr<RecvComm> comm) {
  calls_.Do([&] {
    const auto turn = comm->peer_->TakeTurn();
    comm->peer_->Close(comm->flow_);
  });
}

std::vector<std::string> Engine::Summary() {
  std::vector<std::string> lines;
  calls_.Do([&] {
    for (const LocalRail& rail : io_.rails) {
      char line[256];
      std::snprintf(line, sizeof(line), "R2CC: rail %s/%s sent %.3f GB, received %.3f GB, replayed %.3f MB, %llu failovers, %s",
                    io_.node.c_str(), rail.nic.c_str(), static_cast<double>(rail.sent_bytes.value()) * 1e-9,
                    static_cast<double>(rail.received_bytes.value()) * 1e-9, static_cast<double>(rail.replayed_bytes.value()) * 1e-6,
                    static_cast<unsigned long long>(rail.failovers.value()), rail.up ? "up" : "down");
      lines.push_back(line);
    }
    if (greeter_ != nullptr && greeter_->refused() > 0)
      lines.push_back("R2CC: refused connections: " + std::to_string(greeter_->refused()));
  });
  return lines;
}

}  // namespace r2cc::net
