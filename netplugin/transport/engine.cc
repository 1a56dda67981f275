#include "netplugin/transport/engine.h"

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "netplugin/link/chunk_size.h"
#include "netplugin/transport/record.h"

namespace r2cc::net {
namespace {

constexpr Nanos kSameWarningAfter = 10 * kNanosPerSecond;
constexpr int kDrainWaitMs = 5;
// The own device ends a close within milliseconds, or it never will: then the process must not go on, as it could write to memory that is
// the job's again.
constexpr Nanos kCloseLimit = 30 * kNanosPerSecond;
constexpr int kCloseWaitMs = 1;

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
  const Config& config = parts_.config;
  host_.clock = &clock_;
  host_.log = [this](LogLevel level, const std::string& line) { Log(level, line); };
  host_.report = [this](const plan::EvidenceRecord& record) { control_plane_->Report(record); };
  host_.page = [this] { return control_plane_->page(); };
  host_.process = Random();
  host_.nonce = Random();
  host_.node = config.node;
  host_.job = config.job;
  host_.pid = getpid();
  host_.chunk_bytes = config.chunk_bytes.value_or(kChunkBytesBase);
  host_.chunks_follow_rate = !config.chunk_bytes.has_value();
  host_.bulk_after_bytes = config.bulk_after_bytes;
  host_.mode = StripeModeOf(config);
  // Without protection there is nothing to replay a copy for.
  host_.eager_bytes = host_.mode == StripeMode::kOneRail ? 0 : kEagerBytesMax;
  host_.silence = config.silence_ms * kNanosPerMs;
  host_.deadline = config.deadline_ms * kNanosPerMs;
  control_plane_ =
      std::make_unique<ControlPlane>(&host_, &poller_, config.fail_rails, std::move(parts_.link_events), std::move(parts_.daemon));
  acceptor_ = std::make_unique<Acceptor>(&host_, [this](const std::string& node) { control_plane_->ReportPeer(node); });
  const auto greet = [this](const Hello& hello, std::unique_ptr<Connection>* connection) {
    const HelloReply reply = acceptor_->Greet(hello, connection);
    if (const auto it = acceptor_->peers().find(hello.session); it != acceptor_->peers().end()) peer_watch_.Add(it->second.get());
    return reply;
  };
  transport_ = parts_.make_transport(&poller_, &clock_, host_.log, greet, error);
  if (transport_ == nullptr) return false;
  host_.oob_transport = transport_.get();
  for (Transport* const transport : {static_cast<Transport*>(transport_.get())})
    if (config.transport == TransportOption::kAuto || transport->kind() == TransportKind::kTcp) host_.transports.push_back(transport);
  host_.oob.host = parts_.oob_address.text;
  if (!transport_->ListenOob(host_.oob.host, &host_.oob.port, error)) return false;
  for (uint16_t i = 0; i < parts_.rails.size(); ++i) {
    LocalRail& local = host_.rails.emplace_back();
    local.name = local.nic = parts_.rails[i].name;
    local.up = parts_.rails[i].up;
    NoteRail(i, local.up);
    if (!ListenOn(i, error)) return false;
  }
  host_.UpdateNames();
  memory_ = std::make_unique<MemoryTable>(host_.transports, host_.rails.size(), [this](const Region& region) {
    calls_.Do([&] {
      for (const auto& [session, peer] : acceptor_->peers()) {
        const auto lock = peer->Lock();
        peer->RegionChanged(region);
        peer->RunToCompletion();
      }
    });
  });
  host_.memory = memory_.get();
  if (!config.attach_socket.empty()) control_plane_->AwaitDaemon();
  poller_.Add(wake_.get(), EPOLLIN, [this](uint32_t) {
    uint64_t count;
    while (read(wake_.get(), &count, sizeof(count)) > 0) {
    }
  });
  StartControlPlane();
  return true;
}

void Engine::StartControlPlane() {
  control_plane_->Start({
      .exclusively = [this](const std::function<void()>& call) { Exclusively(call); },
      .rail_state =
          [this](uint16_t rail, bool up) {
            NoteRail(rail, up);
            ForEachPeer([&](Peer* peer) { peer->RailState(rail, up); });
          },
      .verdicts = [this] { ForEachPeer([](Peer* peer) { peer->ApplyVerdicts(); }); },
      .attached =
          [this] {
            for (const auto& [process, peer] : send_peers_)
              if (!peer->node().empty()) control_plane_->ReportPeer(peer->node());
            for (const auto& [session, peer] : acceptor_->peers()) control_plane_->ReportPeer(peer->node());
          },
      .address =
          [this](uint16_t rail, const IpAddress& address) {
            IpAddress& known = parts_.rails[rail].address;
            if (known == address) return;
            known = address;
            if (std::string error; !ListenOn(rail, &error)) host_.log(LogLevel::kWarn, "R2CC: " + error);
            for (const auto& [session, peer] : acceptor_->peers()) peer->Regreet();
          },
  });
}

void Engine::NoteRail(uint16_t rail, bool up) {
  const uint64_t bit = uint64_t{1} << rail;
  up ? rails_down_.fetch_and(~bit) : rails_down_.fetch_or(bit);
}

uint64_t Engine::UsableBytesPerSecond() const {
  const uint64_t down = rails_down_.load(std::memory_order_relaxed);
  uint64_t bytes_per_s = 0;
  for (size_t rail = 0; rail < parts_.rails.size(); ++rail)
    if ((down >> rail & 1) == 0) bytes_per_s += static_cast<uint64_t>(std::max(parts_.rails[rail].speed_mbps, 1)) * (1'000'000 / 8);
  return bytes_per_s;
}

bool Engine::ListenOn(uint16_t rail, std::string* error) {
  std::vector<RailEndpoint> endpoints;
  for (Transport* const transport : host_.transports) {
    RailEndpoint endpoint{transport->kind(), {}};
    if (!transport->Listen(parts_.rails[rail], &endpoint.bytes, error)) return false;
    endpoints.push_back(std::move(endpoint));
  }
  host_.rails[rail].endpoints = std::move(endpoints);
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
  // NCCL pins the thread that starts us next to its GPU; the sockets of all rails are not its alone. Workers inherit this.
  processors_.Use();
  prctl(PR_SET_TIMERSLACK, 1);
  for (Transport* const transport : host_.transports) transport->StartThreads(processors_.count());

  while (!stop_.load(std::memory_order_relaxed)) {
    poller_.Wait(peer_watch_.WaitMs());
    peer_watch_.ServiceMore();
    calls_.Run();
    const Nanos now = clock_.Now();
    control_plane_->Poll(now);
    if (now - ticked_ < Peer::kTickEvery) continue;
    ticked_ = now;
    TickPeers();
    for (Transport* const transport : host_.transports) transport->Tick(now);
  }
  Drain();
  for (Transport* const transport : host_.transports) transport->StopListening();
  ForEachPeer([](Peer* peer) {
    const auto lock = peer->Lock();
    peer->Shut();
  });
  for (Transport* const transport : host_.transports) transport->StopThreads();
  calls_.End();
}

// A job that ends must not leave its peers waiting for an acknowledgement that never left, nor for small messages that NCCL believes to
// be sent: while a peer may still be reached, the end waits for its answer.
void Engine::Drain() {
  calls_.Run();
  control_plane_->ReportTotals(clock_.Now());
  ForEachPeer([](Peer* peer) {
    const auto lock = peer->Lock();
    peer->CloseFlows();
  });
  for (Nanos began = clock_.Now(), now = began;; now = clock_.Now()) {
    bool waiting = false;
    ForEachPeer([&](Peer* peer) {
      peer->Tick();
      const auto lock = peer->Lock();
      waiting |= !peer->flushed() || (!peer->idle() && !peer->over());
    });
    if (!waiting || now - began >= host_.deadline) break;
    control_plane_->Poll(now);
    for (Transport* const transport : host_.transports) transport->Tick(now);
    poller_.Wait(kDrainWaitMs);
    calls_.Run();
  }
  ForEachPeer([](Peer* peer) {
    const auto lock = peer->Lock();
    peer->HalfClose();
  });
}

// ---- the I/O thread and the peers ----

void Engine::ForEachPeer(const std::function<void(Peer*)>& call) {
  for (const auto& [process, peer] : send_peers_) call(peer.get());
  for (const auto& [session, peer] : acceptor_->peers()) call(peer.get());
}

void Engine::Exclusively(const std::function<void()>& call) {
  std::vector<std::unique_lock<std::mutex>> locks;
  ForEachPeer([&](Peer* peer) { locks.push_back(peer->Lock()); });
  call();
  ForEachPeer([](Peer* peer) { peer->RunToCompletion(); });
}

void Engine::TickPeers() {
  for (Peer* peer : peer_watch_.Tick()) {
    peer_watch_.Remove(peer);
    {
      // A worker may hold it for a moment longer.
      const auto lock = peer->Lock();
      peer->Shut();
    }
    std::erase_if(acceptor_->peers(), [peer](const auto& entry) { return entry.second.get() == peer; });
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
    const SendPeer::Target target{handle.process, handle.nonce, {handle.oob_address, handle.oob_port}};
    peer = std::make_shared<SendPeer>(&host_, target, Random());
    peer_watch_.Add(peer.get());
  }
  return peer.get();
}

std::unique_ptr<SendComm> Engine::Connect(const Handle& handle, uint16_t local_rail, std::string* error) {
  if (NegotiateVersion(handle.wire_least, handle.wire_newest) == 0) {
    *error = "R2CC: the peer at " + std::string(handle.oob_address) + " speaks wire versions " + std::to_string(handle.wire_least) +
             " to " + std::to_string(handle.wire_newest) + ", this release " + std::to_string(kWireVersionLeast) + " to " +
             std::to_string(kWireVersion) + ": install the same release on both nodes";
    return nullptr;
  }
  if (!transport_->Reaches({handle.oob_address, handle.oob_port})) {
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
      const auto lock = comm->peer_->Lock();
      comm->flow_ = comm->peer_->Open(handle.listen_id, local_rail, comm.get());
    }
    comm->peer_->Tick();
    peer_watch_.Expect(comm->peer_);
  });
  if (comm->peer_ != nullptr) return comm;
  *error = kCalledAfterTheEnd;
  return nullptr;
}

template <typename PeerType>
void Engine::CloseFlow(PeerType* peer, FlowId flow) {
  {
    const auto lock = peer->Lock();
    peer->Close(flow);
  }
  const auto holds = [&] {
    const auto lock = peer->Lock();
    return peer->Holds(flow);
  };
  for (const Nanos began = clock_.Now(); holds();) {
    if (clock_.Now() - began >= kCloseLimit) {
      host_.log(LogLevel::kWarn, "R2CC: a device keeps a buffer of a flow that the job has closed: the process cannot go on safely");
      std::abort();
    }
    poller_.Wait(kCloseWaitMs);
    peer->Tick();
  }
}

template <typename OneComm>
void Engine::CloseComm(std::unique_ptr<OneComm> comm) {
  // If this throws, the peer may still know the comm: then it stays for ever.
  OneComm* const raw = comm.release();
  calls_.Do([this, raw] { CloseFlow(raw->peer(), raw->flow()); });
  delete raw;
}

void Engine::Close(std::unique_ptr<SendComm> comm) { CloseComm(std::move(comm)); }
void Engine::Close(std::unique_ptr<RecvComm> comm) { CloseComm(std::move(comm)); }

std::vector<std::string> Engine::Summary() {
  std::vector<std::string> lines;
  calls_.Do([&] {
    for (const LocalRail& rail : host_.rails) {
      char line[256];
      std::snprintf(line, sizeof(line), "R2CC: rail %s/%s sent %.3f GB, received %.3f GB, replayed %.3f MB, %llu failovers, %s",
                    host_.node.c_str(), rail.nic.c_str(), static_cast<double>(rail.sent_bytes.value()) * 1e-9,
                    static_cast<double>(rail.received_bytes.value()) * 1e-9, static_cast<double>(rail.replayed_bytes.value()) * 1e-6,
                    static_cast<unsigned long long>(rail.failovers.value()), rail.up ? "up" : "down");
      lines.push_back(line);
    }
    uint64_t refused = 0;
    for (const Transport* const transport : host_.transports) refused += transport->refused();
    if (refused > 0) lines.push_back("R2CC: refused connections: " + std::to_string(refused));
  });
  return lines;
}

}  // namespace r2cc::net
