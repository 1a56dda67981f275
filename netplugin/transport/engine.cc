#include "netplugin/transport/engine.h"

#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "base/core/hash.h"
#include "netplugin/transport/tcp/record.h"

namespace r2cc::net {
namespace {

constexpr Nanos kTickEvery = 5 * kNanosPerMs;
constexpr int kActiveWaitMs = 5;
constexpr int kIdleWaitMs = 100;
// How long the end waits for its last words to be heard.
constexpr Nanos kDrainPatience = 500 * kNanosPerMs;

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
  io_.log = parts_.log;
  io_.report = [this](const plan::EvidenceRecord& record) { world_->Report(record); };
  io_.verdict = [this](const std::string& node, const std::string& nic) { return world_->VerdictOn(node, nic); };
  io_.process = Random();
  io_.nonce = Random();
  io_.node = config.node;
  io_.chunk_bytes = config.chunk_bytes;
  io_.eager_bytes = kEagerBytesMax;
  io_.sockets_per_rail = static_cast<uint8_t>(config.sockets_per_rail);
  io_.checksum = config.checksum;
  io_.mode = StripeModeOf(config);
  io_.silence = config.silence_ms * kNanosPerMs;
  io_.deadline = config.deadline_ms * kNanosPerMs;
  io_.oob_source.address = ToSocketAddress(parts_.oob_address);
  world_ = std::make_unique<World>(&io_, config.fail_rails, std::move(parts_.link_events), std::move(parts_.daemon));

  greeter_ =
      std::make_unique<Greeter>(&io_, [this](const Hello& hello, std::unique_ptr<PacketStream>* stream) { return Greet(hello, stream); });
  UniqueFd oob = net::Listen(io_.oob_source, &io_.oob_port, error);
  if (!oob) return false;
  greeter_->AddListener(std::move(oob));
  for (const Rail& rail : parts_.rails) {
    LocalRail local;
    local.name = local.nic = rail.name;
    local.source = {ToSocketAddress(rail.address), rail.interface};
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
  world_->Start({
      .rail_state =
          [this](uint16_t rail, bool up) {
            for (const auto& [process, peer] : send_peers_) peer->RailState(rail, up);
            for (const auto& [session, peer] : recv_peers_) peer->RailState(rail, up);
          },
      .verdicts =
          [this] {
            for (const auto& [process, peer] : send_peers_) peer->ApplyVerdicts();
            for (const auto& [session, peer] : recv_peers_) peer->ApplyVerdicts();
          },
      .attached =
          [this] {
            for (const auto& [process, peer] : send_peers_)
              if (!peer->node().empty()) world_->ReportPeer(peer->node());
            for (const auto& [session, peer] : recv_peers_) world_->ReportPeer(peer->node());
          },
      .address =
          [this](uint16_t rail) {
            // Peers hear of the port with the next greeting.
            if (std::string error; !ListenOn(&io_.rails[rail], &error)) io_.log(LogLevel::kWarn, "R2CC: " + error);
          },
  });
  return true;
}

bool Engine::ListenOn(LocalRail* rail, std::string* error) {
  UniqueFd listener = net::Listen(rail->source, &rail->port, error);
  if (!listener) return false;
  greeter_->AddListener(std::move(listener));
  return true;
}

Engine::~Engine() {
  if (!thread_.joinable()) return;
  stop_ = true;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof(one));
  thread_.join();
}

void Engine::Run() {
  pthread_setname_np(pthread_self(), "r2cc-io");
  // NCCL pins the thread that starts us next to its GPU; the sockets of all rails are not its alone.
  cpu_set_t everywhere;
  std::memset(&everywhere, 0xff, sizeof(everywhere));
  sched_setaffinity(0, sizeof(everywhere), &everywhere);

  bool more = false;
  while (!stop_.load(std::memory_order_relaxed)) {
    bool active = false;
    for (const auto& [process, peer] : send_peers_) active |= peer->outstanding();
    for (const auto& [session, peer] : recv_peers_) active |= peer->outstanding();
    int wait_ms = more ? 0 : active ? kActiveWaitMs : kIdleWaitMs;
    asleep_.store(true);
    {
      const std::lock_guard lock(mutex_);
      if (!commands_.empty()) wait_ms = 0;
    }
    const bool all_read = io_.poller.Wait(wait_ms);
    asleep_.store(false);
    RunCommands();
    const Nanos now = clock_.Now();
    world_->Poll(now);
    if (all_read && now - ticked_ >= kTickEvery) {
      ticked_ = now;
      for (const auto& [process, peer] : send_peers_) peer->Tick();
      for (const auto& [session, peer] : recv_peers_) peer->Tick();
      greeter_->Tick(now);
      std::erase_if(recv_peers_, [](const auto& entry) { return entry.second->over(); });
    }
    more = false;
    for (const auto& [process, peer] : send_peers_) more |= peer->Settle();
    for (const auto& [session, peer] : recv_peers_) more |= peer->Settle();
  }
  Drain();
  send_peers_.clear();
  recv_peers_.clear();
  greeter_.reset();
}

// A job that ends must not leave its peers waiting for an acknowledgement that never left.
void Engine::Drain() {
  RunCommands();
  world_->ReportTotals(clock_.Now());
  const Nanos until = clock_.Now() + kDrainPatience;
  for (;;) {
    bool waiting = false;
    for (const auto& [process, peer] : send_peers_) {
      peer->Settle();
      waiting |= !peer->Flushed() || !peer->idle();
    }
    for (const auto& [session, peer] : recv_peers_) {
      peer->Settle();
      waiting |= !peer->Flushed() || (!peer->idle() && !peer->over());
    }
    if (!waiting || clock_.Now() >= until) break;
    io_.poller.Wait(kActiveWaitMs);
    for (const auto& [process, peer] : send_peers_) peer->Tick();
    for (const auto& [session, peer] : recv_peers_) peer->Tick();
  }
  for (const auto& [process, peer] : send_peers_) peer->HalfClose();
  for (const auto& [session, peer] : recv_peers_) peer->HalfClose();
}

// ---- commands ----

void Engine::Submit(Command command) {
  {
    const std::lock_guard lock(mutex_);
    commands_.push_back(std::move(command));
  }
  if (!asleep_.exchange(false)) return;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof(one));
}

void Engine::RunCommands() {
  std::vector<Command> commands;
  {
    const std::lock_guard lock(mutex_);
    commands.swap(commands_);
  }
  for (const Command& command : commands) {
    switch (command.kind) {
      case Command::Kind::kSend: command.send->peer_->Post(command.send->flow_, command.data, command.bytes); break;
      case Command::Kind::kReceive: command.recv->peer_->Post(command.recv->flow_, command.data, command.bytes); break;
      case Command::Kind::kCall: command.call(); break;
    }
  }
}

void Engine::Call(const std::function<void()>& call) {
  std::mutex mutex;
  std::condition_variable done_cv;
  bool done = false;
  Submit({.kind = Command::Kind::kCall, .call = [&] {
            call();
            const std::lock_guard lock(mutex);
            done = true;
            done_cv.notify_one();
          }});
  std::unique_lock lock(mutex);
  done_cv.wait(lock, [&] { return done; });
}

uint64_t Engine::Listen(Handle* handle) {
  const uint64_t id = Random();
  Call([&] { listeners_.insert(id); });
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

Comm* Engine::FlowOpened(RecvPeer* peer, FlowId flow, uint64_t listen_id) {
  if (!listeners_.contains(listen_id)) return nullptr;
  auto comm = std::make_unique<RecvComm>();
  comm->peer_ = peer;
  comm->flow_ = flow;
  comm->state = Comm::State::kOpen;
  RecvComm* raw = comm.get();
  const std::lock_guard lock(mutex_);
  opened_[listen_id].push_back(std::move(comm));
  return raw;
}

std::unique_ptr<RecvComm> Engine::Accept(uint64_t listen_id) {
  const std::lock_guard lock(mutex_);
  const auto it = opened_.find(listen_id);
  if (it == opened_.end() || it->second.empty()) return nullptr;
  std::unique_ptr<RecvComm> comm = std::move(it->second.front());
  it->second.pop_front();
  return comm;
}

void Engine::CloseListen(uint64_t listen_id) {
  std::deque<std::unique_ptr<RecvComm>> unclaimed;
  Call([&] {
    listeners_.erase(listen_id);
    const std::lock_guard lock(mutex_);
    if (const auto it = opened_.find(listen_id); it != opened_.end()) {
      unclaimed = std::move(it->second);
      opened_.erase(it);
    }
  });
  for (auto& comm : unclaimed) Close(std::move(comm));
}

SendPeer* Engine::PeerFor(const Handle& handle) {
  std::unique_ptr<SendPeer>& peer = send_peers_[handle.process];
  if (peer == nullptr) {
    SendPeer::Target target{handle.process, handle.nonce, {}};
    ParseAddress(handle.oob_address, handle.oob_port, &target.oob);
    peer = std::make_unique<SendPeer>(&io_, target, Random());
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
  Call([&] {
    comm->peer_ = PeerFor(handle);
    comm->flow_ = comm->peer_->Open(handle.listen_id, local_rail, comm.get());
  });
  return comm;
}

void Engine::Send(SendComm* comm, const void* data, uint64_t bytes) {
  Submit({.kind = Command::Kind::kSend, .send = comm, .data = const_cast<void*>(data), .bytes = bytes});
}

void Engine::Receive(RecvComm* comm, void* data, uint64_t capacity_bytes) {
  Submit({.kind = Command::Kind::kReceive, .recv = comm, .data = data, .bytes = capacity_bytes});
}

void Engine::Close(std::unique_ptr<SendComm> comm) {
  Call([&] { comm->peer_->Close(comm->flow_); });
}

void Engine::Close(std::unique_ptr<RecvComm> comm) {
  Call([&] { comm->peer_->Close(comm->flow_); });
}

// ---- who connects ----

HelloReply Engine::Greet(const Hello& hello, std::unique_ptr<PacketStream>* stream) {
  HelloReply reply;
  reply.wire_version = NegotiateVersion(hello.wire_least, hello.wire_newest);
  if (reply.wire_version == 0) {
    reply.reason = "it speaks wire versions " + std::to_string(kWireVersionLeast) + " to " + std::to_string(kWireVersion) + ", we speak " +
                   std::to_string(hello.wire_least) + " to " + std::to_string(hello.wire_newest) +
                   ": install the same release on both nodes";
    return reply;
  }
  if (hello.target_process != io_.process || hello.nonce != io_.nonce) {
    reply.reason = "the process that listened there has ended";
    return reply;
  }
  auto it = recv_peers_.find(hello.session);
  if (hello.kind == ConnectionKind::kOob && it == recv_peers_.end()) {
    if (hello.rails.empty()) {
      reply.reason = "a peer without rails";
      return reply;
    }
    auto peer = std::make_unique<RecvPeer>(&io_, hello, [this, session = hello.session](FlowId flow, uint64_t listen_id) {
      return FlowOpened(recv_peers_.at(session).get(), flow, listen_id);
    });
    it = recv_peers_.emplace(hello.session, std::move(peer)).first;
    world_->ReportPeer(hello.node);
  }
  if (it == recv_peers_.end()) {
    reply.reason = "no such session";
    return reply;
  }
  reply.accepted = true;
  reply.node = io_.node;
  if (hello.kind == ConnectionKind::kOob) reply.rails = io_.RailInfos();
  const SocketUse use = hello.kind == ConnectionKind::kOob       ? SocketUse::kOob
                        : hello.kind == ConnectionKind::kControl ? SocketUse::kControl
                                                                 : SocketUse::kBulk;
  const bool on_rail = hello.kind != ConnectionKind::kOob && hello.remote_rail < io_.rails.size();
  const std::string interface = on_rail ? io_.rails[hello.remote_rail].source.interface : "";
  Prepare((*stream)->fd(), use, interface);
  // The reply is the first thing on the connection, before any frame.
  PacketStream* raw = stream->get();
  if (hello.kind == ConnectionKind::kOob) {
    raw->Send(Encode(reply));
    it->second->AttachOob(hello, stream);
    return reply;
  }
  const int fd = raw->fd();
  const Bytes accepted = Encode(reply);
  if (send(fd, accepted.data(), accepted.size(), MSG_NOSIGNAL | MSG_DONTWAIT) != static_cast<ssize_t>(accepted.size())) {
    stream->reset();
    return reply;
  }
  if (!it->second->AttachLink(hello, stream, &reply.reason)) {
    // Hanging up is refusal enough: the initiator tries again with its next incarnation.
    stream->reset();
  }
  return reply;
}

std::vector<std::string> Engine::Summary() {
  std::vector<std::string> lines;
  Call([&] {
    for (const LocalRail& rail : io_.rails) {
      char line[256];
      std::snprintf(line, sizeof(line), "R2CC: rail %s/%s sent %.3f GB, received %.3f GB, replayed %.3f MB, %llu failovers, %s",
                    io_.node.c_str(), rail.nic.c_str(), static_cast<double>(rail.sent_bytes) * 1e-9,
                    static_cast<double>(rail.received_bytes) * 1e-9, static_cast<double>(rail.replayed_bytes) * 1e-6,
                    static_cast<unsigned long long>(rail.failovers), rail.up ? "up" : "down");
      lines.push_back(line);
    }
  });
  return lines;
}

}  // namespace r2cc::net
