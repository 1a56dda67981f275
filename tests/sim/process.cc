#include "tests/sim/process.h"

#include <algorithm>
#include <utility>

namespace r2cc::sim {
namespace {

constexpr Nanos kTickEvery = 5 * kNanosPerMs;
constexpr Nanos kActiveWait = 5 * kNanosPerMs;
constexpr Nanos kIdleWait = 100 * kNanosPerMs;
// How long one turn keeps the thread.
constexpr Nanos kTurnTakes = 2'000;

}  // namespace

Process::Process(Network* network, Tap* tap, int host, const ProcessOptions& options) : io_(network, tap, host, options) {
  io_.wake = [this] { Wake(); };
  network->AddHost(host, this);
}

// ---- the job ----

Process::SendFlow Process::Connect(int peer, uint64_t listen_id, int local_rail) {
  std::unique_ptr<SendEnd>& end = send_ends_[peer];
  if (end == nullptr) end = std::make_unique<SendEnd>(&io_, peer, io_.random().Next());
  return {end.get(), end->Open(listen_id, local_rail)};
}

bool Process::Accept(uint64_t listen_id, RecvFlow* flow) {
  auto& opened = opened_[listen_id];
  if (opened.empty()) return false;
  *flow = opened.front();
  opened.pop_front();
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
  if (dead_ || stopped_ > 0) return;
  Plan(io_.now() + io_.random().Between(500, io_.options.turn_latency_most));
}

void Process::Turn() {
  planned_ = 0;
  if (dead_ || stopped_ > 0) return;
  if (io_.now() < paused_until_) return Plan(paused_until_);
  for (const auto& call : std::exchange(calls_, {})) call();
  io_.RunReady();
  if (io_.now() - ticked_ >= kTickEvery) {
    ticked_ = io_.now();
    for (const auto& [peer, end] : send_ends_) end->Tick();
    for (const auto& [session, end] : recv_ends_) end->Tick();
    if (!exiting_) std::erase_if(recv_ends_, [](const auto& entry) { return entry.second->over(); });
  }
  bool more = false;
  for (int round = 0; round < 2; ++round) {
    more = false;
    for (const auto& [peer, end] : send_ends_) more |= end->Settle();
    for (const auto& [session, end] : recv_ends_) more |= end->Settle();
    if (round == 0 && progress && !exiting_) progress();
  }
  if (exiting_ && (Drained() || io_.now() - exit_began_ >= io_.options.deadline)) {
    gave_up_ = !Drained();
    return End();
  }
  bool active = exiting_;
  for (const auto& [peer, end] : send_ends_) active |= end->session().outstanding();
  for (const auto& [session, end] : recv_ends_) active |= end->session().outstanding();
  Plan(io_.now() + (more ? kTurnTakes : active ? kActiveWait : kIdleWait));
}

bool Process::Drained() {
  return std::all_of(send_ends_.begin(), send_ends_.end(), [](const auto& e) { return e.second->Flushed() && e.second->idle(); }) &&
         std::all_of(recv_ends_.begin(), recv_ends_.end(),
                     [](const auto& e) { return e.second->Flushed() && (e.second->idle() || e.second->over()); });
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
  ++generation_;
  io_.network->KillHost(io_.host, child_holds_sockets);
}

void Process::Exit() {
  if (exiting_ || dead_) return;
  exiting_ = true;
  exit_began_ = io_.now();
  Wake();
}

void Process::End() {
  for (const auto& [peer, end] : send_ends_) end->End();
  for (const auto& [session, end] : recv_ends_) end->End();
  Kill(false);
}

void Process::RailState(int rail, bool up) {
  if (dead_) return;
  calls_.push_back([this, rail, up] {
    if (io_.rail_up[static_cast<size_t>(rail)] == up) return;
    io_.rail_up[static_cast<size_t>(rail)] = up;
    for (const auto& [peer, end] : send_ends_) end->RailState(rail, up);
    for (const auto& [session, end] : recv_ends_) end->RailState(rail, up);
  });
  Wake();
}

void Process::ApplyVerdicts() {
  if (dead_) return;
  calls_.push_back([this] {
    for (const auto& [peer, end] : send_ends_) end->ApplyVerdicts();
    for (const auto& [session, end] : recv_ends_) end->ApplyVerdicts();
  });
  Wake();
}

// ---- who connects ----

void Process::Accepted(Port, std::shared_ptr<Socket> socket) {
  if (dead_) return;
  const uint64_t id = next_caller_++;
  Caller& caller = callers_[id];
  caller.stream = std::make_unique<FrameStream>(socket);
  caller.token = io_.Watch(socket, [this, id] { CallerSpeaks(id); });
}

void Process::CallerSpeaks(uint64_t id) {
  Caller& caller = callers_.at(id);
  net::Bytes packet;
  bool whole = false;
  const auto state = caller.stream->ReadOne(&packet, &whole);
  net::Hello hello;
  const bool good = state == FrameStream::State::kOpen && (!whole || net::Decode(packet, &hello));
  if (good && !whole) return;
  auto stream = std::move(caller.stream);
  io_.Unwatch(caller.token, &stream->socket());
  callers_.erase(id);
  if (!good || !Greet(hello, &stream)) {
    if (stream != nullptr) stream->socket().Abandon();
  }
}

bool Process::Greet(const net::Hello& hello, std::unique_ptr<FrameStream>* stream) {
  net::HelloReply reply;
  auto it = recv_ends_.find(hello.session);
  if (hello.kind == net::ConnectionKind::kOob && it == recv_ends_.end()) {
    auto end = std::make_unique<RecvEnd>(&io_, hello, [this](RecvEnd* end, net::FlowId flow, uint64_t listen_id) {
      if (!listeners_.contains(listen_id)) return false;
      opened_[listen_id].push_back({end, flow});
      return true;
    });
    it = recv_ends_.emplace(hello.session, std::move(end)).first;
  }
  reply.accepted = it != recv_ends_.end();
  reply.node = "host" + std::to_string(io_.host);
  if (hello.kind == net::ConnectionKind::kOob) reply.rails = io_.Rails();
  (*stream)->Send(net::Encode(reply));
  if (!reply.accepted) {
    (*stream)->socket().Close();
    stream->reset();
    return false;
  }
  auto socket = (*stream)->Release();
  stream->reset();
  if (hello.kind == net::ConnectionKind::kOob) {
    it->second->AttachOob(socket);
    return true;
  }
  std::string reason;
  // Hanging up is refusal enough: the initiator tries again with its next incarnation.
  if (!it->second->AttachLink(hello, socket, &reason)) socket->Abandon();
  return true;
}

}  // namespace r2cc::sim
