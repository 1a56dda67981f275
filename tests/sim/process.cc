#include "tests/sim/process.h"

#include <algorithm>
#include <utility>

#include "netplugin/flow/tuning.h"
#include "tests/sim/charge.h"

namespace r2cc::sim {
namespace {

// As Engine's and PeerWatch's.
constexpr Nanos kActiveWait = 5 * kNanosPerMs;
constexpr Nanos kIdleWait = 100 * kNanosPerMs;
// How long one turn keeps the thread.
constexpr Nanos kTurnTakes = 2'000;

// What a handle names; 0 is no process.
uint64_t ProcessOf(int host) { return static_cast<uint64_t>(host) + 1; }

}  // namespace

Process::Process(Network* network, Tap* tap, int host, const ProcessOptions& options, const MakeRails& make_rails,
                 std::unique_ptr<net::DaemonLink> daemon)
    : io_(network, tap, host, options), clock_(&io_), daemon_(std::move(daemon)) {
  io_.wake = [this] { Wake(); };
  io_.keys_revoked = [this](net::TransportKind kind, uint16_t rail) {
    // As the control thread does.
    if (!dead_) memory_->DeviceBack(kind, rail);
  };
  io_.rail_changed = [this](uint16_t rail) {
    calls_.push_back([this, rail] { Relisten(rail); });
    Wake();
  };
  io_.running = [this] { return !dead_ && stopped_ == 0 && io_.now() >= paused_until_; };
  host_.clock = &clock_;
  host_.log = [this](net::LogLevel, const std::string& line) {
    if (io_.logs()) io_.Log(line);
  };
  host_.report = [](const plan::EvidenceRecord&) {};
  host_.rails_stalled = [this](uint64_t process, net::RailPair rails) {
    calls_.push_back([this, process, rails] { acceptor_->RailsStalled(process, rails); });
    Wake();
  };
  host_.process = host_.nonce = ProcessOf(host);
  host_.run = "run" + std::to_string(host - node());
  host_.run_is_shared = true;
  host_.node = HostName(host);
  host_.oob = {HostName(host), 1};
  host_.chunk_bytes = options.chunk_bytes;
  host_.eager_bytes = options.eager_bytes;
  host_.mode = options.mode;
  host_.silence = options.silence;
  host_.deadline = options.deadline;
  host_.page = [this] { return std::make_shared<const net::PageView>(plan::PageCopyOf(page()), host_.job); };
  host_.initiator_observer = [tap](net::LinkId, net::InitiatorState state, net::InitiatorEvent event) { tap->Stepped(state, event); };
  host_.acceptor_observer = [tap](net::LinkId, net::AcceptorState state, net::AcceptorEvent event) { tap->Stepped(state, event); };
  host_.link_observer = [this, tap](const net::SessionAction& action, const net::LinkEnds& ends) {
    const int peer = io_.network->SiblingOn(io_.network->NodeOf(HostOf(ends.peer_node)), io_.host);
    tap->Recorded(io_.host, peer, ends.local_rail, action);
    if (action.kind == net::SessionAction::Kind::kLinkFenced) tap->At(Moment::kLinkReplays, io_.host, peer, action.link);
  };
  const net::Greet greet = [this](const net::Hello& hello, std::unique_ptr<net::Connection>* connection) {
    return acceptor_->Greet(hello, connection);
  };
  transport_ = std::make_unique<SimTransport>(&io_, greet, !make_rails);
  host_.oob_transport = transport_.get();
  host_.transports = {transport_.get()};
  if (make_rails) host_.transports.push_back((rails_ = make_rails(&io_, greet)).get());
  for (int rail = 0; rail < options.rails; ++rail) {
    net::LocalRail& local = host_.rails.emplace_back();
    local.name = local.nic = RailName(rail);
    local.matched = true;
    ListenOn(rail);
  }
  host_.UpdateNames();
  acceptor_ = std::make_unique<net::Acceptor>(&host_, [this](const std::string& node) {
    if (control_plane_ != nullptr) control_plane_->ReportPeer(node);
  });
  memory_ = std::make_unique<net::MemoryTable>(host_.transports, host_.rails.size(),
                                               [this](const net::Region& region) { RegionChanged(region); });
  host_.memory = memory_.get();
  if (rails_ != nullptr) rails_->StartThreads(1);
  if (!options.later) Begin();
}

void Process::Begin() {
  begun_ = true;
  begun_at_ = io_.now();
  io_.network->AddHost(io_.host, this);
  if (daemon_ != nullptr) StartControlPlane();
}

Process::~Process() = default;

void Process::ListenOn(int rail) {
  net::LocalRail& local = host_.rails[static_cast<size_t>(rail)];
  local.endpoints = {{host_.transports.back()->kind(), {}}};
  std::string error;
  host_.transports.back()->Listen(net::Rail{.index = rail}, &local.endpoints[0].bytes, &error);
}

void Process::ForEachPeer(const std::function<void(net::Peer*)>& call) const {
  for (const auto& [host, peer] : send_peers_) call(peer.get());
  for (const auto& [session, peer] : acceptor_->peers()) call(peer.get());
}

// ---- the job ----

Process::SendFlow Process::Connect(int peer, uint64_t listen_id, int local_rail) {
  std::shared_ptr<net::SendPeer>& of = send_peers_[peer];
  if (of == nullptr) {
    const net::SendPeer::Target target{ProcessOf(peer), ProcessOf(peer), {HostName(peer), 1}, io_.options.all_links};
    of = std::make_shared<net::SendPeer>(&host_, target, io_.random().Next());
  }
  SendFlow flow{of, 0, std::make_shared<net::Comm>()};
  {
    const net::PeerLock lock(*of);
    flow.id = of->Open(listen_id, static_cast<uint16_t>(local_rail), flow.comm.get());
  }
  of->Tick();
  return flow;
}

bool Process::CanRegister() const {
  return !io_.options.keys || std::find(io_.device_lost.begin(), io_.device_lost.end(), false) != io_.device_lost.end();
}

const net::Memory* Process::Register(const std::byte* begin, uint64_t bytes, bool receives) {
  if (!io_.options.keys) return nullptr;
  // The table keeps handles of memory that was unregistered, up to a number that MemoryTableTest checks.
  const Charge charge(Account::kSimulation);
  const int rails = io_.options.rails;
  if (receives && rails > 1 && io_.random().Chance(8)) io_.refusing_rail = io_.random().Pick(rails);
  std::string error;
  const net::Memory like{.base = const_cast<std::byte*>(begin), .bytes = bytes};
  const net::Memory* memory = memory_->Register(like, &error);
  io_.refusing_rail = -1;
  // It was the only device that is there.
  return memory != nullptr ? memory : memory_->Register(like, &error);
}

const net::Memory* Process::RegisterGpu(const std::byte* begin, uint64_t bytes, int gpu) {
  std::string error;
  net::Memory like{.kind = net::MemoryKind::kCuda, .base = const_cast<std::byte*>(begin), .bytes = bytes};
  like.gpu = gpu;
  const net::Memory* const memory = memory_->Register(like, &error);
  return memory != nullptr && memory->id != 0 ? memory : nullptr;
}

void Process::Unregister(const net::Memory* memory) {
  const Charge charge(Account::kSimulation);  // of what is retired, MemoryTable keeps the last kRetiredMost
  if (memory != nullptr && !dead_) memory_->Unregister(memory);
}

std::vector<int> Process::RailsOf(const net::Memory& memory) const {
  std::vector<int> rails;
  const auto region = memory_->Find(memory.id);
  for (int rail = 0; region != nullptr && rail < io_.options.rails; ++rail)
    for (const net::RailEndpoint& key : region->keys[static_cast<size_t>(rail)])
      if (key.transport == host_.transports.back()->kind()) rails.push_back(rail);
  return rails;
}

void Process::RegionChanged(const net::Region& region) {
  for (const auto& [session, peer] : acceptor_->peers()) {
    const net::PeerLock lock(*peer);
    peer->RegionChanged(region);
    peer->RunToCompletion();
  }
  for (const auto& [host, peer] : send_peers_) {
    const net::PeerLock lock(*peer);
    peer->RegionChanged(region);
    peer->RunToCompletion();
  }
}

bool Process::Accept(uint64_t listen_id, RecvFlow* flow) {
  std::shared_ptr<net::RecvComm> comm = acceptor_->Accept(listen_id);
  if (comm == nullptr) return false;
  *flow = {std::static_pointer_cast<net::RecvPeer>(comm->peer()->shared_from_this()), comm->flow(), std::move(comm)};
  return true;
}

// ---- the loop ----

void Process::Plan(Nanos when) {
  when = std::max(when, paused_until_);
  if (planned_ != 0 && planned_ <= when) return;
  planned_ = when;
  io_.network->timeline()->At(when, [this, generation = ++generation_] {
    if (generation == generation_) Turn();
  });
}

void Process::Wake() {
  if (!begun_ || dead_ || stopped_ > 0) return;
  Plan(io_.now() + io_.random().Between(500, io_.options.turn_latency_most));
}

void Process::Turn() {
  planned_ = 0;
  if (dead_ || stopped_ > 0) return;
  if (io_.now() < paused_until_) return Plan(paused_until_);
  const Charge charge(Account::kPeers);
  for (const auto& call : std::exchange(calls_, {})) call();
  if (control_plane_ != nullptr) {
    poller_->Wait(0);
    control_plane_->Poll(io_.local_now());
  }
  AcceptAll();
  transport_->RunReady();
  transport_->Tick(io_.local_now());
  if (rails_ != nullptr) rails_->Tick(io_.now());
  ForEachPeer([](net::Peer* peer) { peer->Service(); });
  if (io_.now() - ticked_ >= net::tuning::kTickEvery) TickPeers();
  if (progress && !exiting_) progress();
  if (exiting_ && (Drained() || io_.now() - exit_began_ >= io_.options.deadline)) {
    gave_up_ = !Drained();
    return End();
  }
  if (const Nanos kept = io_.kept(); kept > 0) paused_until_ = std::max(paused_until_, io_.now() + kept);
  bool active = exiting_, more = false;
  ForEachPeer([&](net::Peer* peer) {
    active |= peer->outstanding();
    more |= peer->more();
  });
  Plan(io_.now() + (more ? kTurnTakes : active ? kActiveWait : kIdleWait));
}

void Process::TickPeers() {
  ticked_ = io_.now();
  std::vector<net::Peer*> over;
  ForEachPeer([&](net::Peer* peer) {
    peer->Tick();
    const net::PeerLock lock(*peer);
    if (!peer->over() || exiting_) return;
    peer->Shut();
    over.push_back(peer);
  });
  const auto is_over = [&](const auto& entry) { return std::find(over.begin(), over.end(), entry.second.get()) != over.end(); };
  std::erase_if(send_peers_, is_over);
  std::erase_if(acceptor_->peers(), is_over);
}

bool Process::Drained() const {
  bool drained = true;
  ForEachPeer([&](net::Peer* peer) { drained &= peer->drained(); });
  return drained;
}

// ---- what happens to it ----

void Process::Stop() {
  if (++stopped_ == 1) ++generation_;
}

void Process::Continue() {
  if (--stopped_ > 0 || dead_) return;
  planned_ = 0;
  Wake();
}

void Process::Pause(Nanos duration) {
  paused_until_ = std::max(paused_until_, io_.now() + duration);
  if (stopped_ == 0 && !dead_) Wake();
}

void Process::Kill(bool child_holds_sockets) {
  if (dead_) return;
  dead_ = true;
  died_at_ = io_.now();
  ++generation_;
  if (hangs_up) hangs_up();
  io_.network->KillHost(io_.host, child_holds_sockets);
}

void Process::Exit() {
  if (exiting_ || dead_) return;
  exiting_ = true;
  exit_began_ = io_.now();
  Wake();
}

void Process::End() {
  if (control_plane_ != nullptr) control_plane_->ReportEnding();
  ForEachPeer([](net::Peer* peer) {
    const net::PeerLock lock(*peer);
    peer->HalfClose();
  });
  ForEachPeer([](net::Peer* peer) {
    const net::PeerLock lock(*peer);
    peer->Shut();
  });
  Kill(false);
}

void Process::Relisten(int rail) {
  std::vector<net::RailEndpoint>& endpoints = host_.rails[static_cast<size_t>(rail)].endpoints;
  const auto before = endpoints;
  ListenOn(rail);
  // As RailTransports': where it was is still the best guess.
  if (endpoints[0].bytes.empty()) endpoints = before;
  if (before != endpoints) Regreet();
}

void Process::Regreet() {
  for (const auto& [session, peer] : acceptor_->peers()) {
    const net::PeerLock lock(*peer);
    peer->Regreet();
    peer->RunToCompletion();
  }
}

// As Engine's.
void Process::NewAddress(int rail) {
  if (dead_) return;
  calls_.push_back([this, rail] {
    ListenOn(rail);
    Regreet();
  });
  RailState(rail, true);
}

void Process::Device(int rail, bool lost) {
  if (dead_) return;
  calls_.push_back([this, rail, lost] {
    const net::TransportKind kind = host_.transports.back()->kind();
    io_.device_lost[static_cast<size_t>(rail)] = lost;
    if (lost) io_.device_was_lost[static_cast<size_t>(rail)] = true;
    if (rails_ != nullptr) {
      // The transport finds out, and that it is back. A link monitor tells as well, of the interface.
      if (lost || !io_.options.link_monitor) return;
      rails_->Tick(io_.now());
      return Relisten(rail);
    }
    if (!lost) return memory_->DeviceBack(kind, static_cast<uint16_t>(rail));
    std::erase_if(io_.registered, [rail](const auto& entry) { return entry.second.rail == rail; });
    // A device that is lost carries nothing any more: its links have trouble before anybody hears of its keys.
    ForEachPeer([&](net::Peer* peer) {
      const net::PeerLock lock(*peer);
      static_cast<SimPort*>(peer->ports().front().get())->LoseDevice(static_cast<uint16_t>(rail));
      peer->RunToCompletion();
    });
    // Of this transport a link may come up while its device is away: its keys go, as nothing can be registered.
    memory_->DeviceBack(kind, static_cast<uint16_t>(rail));
  });
  Wake();
}

void Process::AcceptAll() {
  for (int rail = kOobRail; rail < io_.options.rails; ++rail)
    while (std::shared_ptr<Socket> socket = io_.network->Accept({io_.host, rail})) transport_->Accepted(std::move(socket));
}

}  // namespace r2cc::sim
