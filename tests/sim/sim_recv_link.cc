#include "tests/sim/sim_recv_link.h"

#include <algorithm>
#include <utility>

#include "netplugin/flow/mutant.h"

namespace r2cc::sim {
namespace {

using plan::EvidenceCause;

// A worker's call, from its beginning to the moment when it tells what came of it.
constexpr Nanos kWorkerWakes = 20'000, kCallTakes = 20'000;
constexpr size_t kCallBytesMost = 4096;
// A worker of a process that is stopped is stopped, too.
constexpr Nanos kLookAgain = 20 * kNanosPerMs;

}  // namespace

SimRecvLink::SimRecvLink(SimPort* port, const net::LinkName& name, net::RecvOwner* owner, net::Counter* carried)
    : port_(port), io_(port->io), name_(name), owner_(owner), carried_(carried), channel_(port, SinkOf(owner, name)) {
  port_->receivers.push_back(this);
}

SimRecvLink::~SimRecvLink() {
  *alive_ = false;
  std::erase(port_->receivers, this);
  EndSockets();
}

bool SimRecvLink::Attach(const net::Hello& hello, const net::HelloReply& reply, std::unique_ptr<net::Connection>* greeted, bool* control,
                         std::string* reason) {
  if (hello.endpoint.size() != 2 || hello.endpoint[0] > hello.endpoint[1]) {
    *reason = "no such link";
    return false;
  }
  std::unique_ptr<FrameStream>& stream = static_cast<SimConnection&>(**greeted).stream;
  peer_ = stream->socket().remote().host;
  bulk_.resize(hello.endpoint[1]);
  const int socket = hello.endpoint[0] - 1;
  if (socket < 0 ? channel_.open() : bulk_[static_cast<size_t>(socket)].in != nullptr) {
    *reason = "the link has it already";
    return false;
  }
  stream->Send(net::Encode(reply));
  if (socket < 0) {
    channel_.Open(std::move(stream));
    *control = true;
  } else {
    const auto index = static_cast<size_t>(socket);
    Bulk& bulk = bulk_[index];
    bulk.socket = stream->Release();
    stream.reset();
    bulk.in = std::make_unique<BulkIn>(bulk.socket, port_->key.tag, io_->host, io_->tap, io_->options.keys,
                                       SimProof(port_->key.session, name_.link, name_.incarnation, static_cast<uint8_t>(socket)));
    bulk.token = port_->ready.Watch(bulk.socket, [this, index] { BulkReady(index); });
  }
  greeted->reset();
  return true;
}

void SimRecvLink::BulkReady(size_t index) {
  Bulk& bulk = bulk_[index];
  if (!io_->options.workers || bulk.in->half_read() == nullptr || bulk.working) {
    if (!bulk.working) Read(index);
    return;
  }
  bulk.working = true;
  io_->network->timeline()->After(io_->random().Between(500, kWorkerWakes), [this, index, alive = alive_] {
    if (*alive) Work(index);
  });
}

// A worker's call, in two steps of time; between them anything may happen to the link.
void SimRecvLink::Work(size_t index) {
  if (ending_.begun()) return;
  std::shared_ptr<void> keep_alive = owner_->KeepAlive();
  if (io_->running()) bulk_[index].in->Fetch(kCallBytesMost);
  io_->network->timeline()->After(io_->random().Between(500, kCallTakes), [this, index, keep_alive, alive = alive_] {
    if (*alive) Worked(index, keep_alive);
  });
}

void SimRecvLink::Worked(size_t index, const std::shared_ptr<void>& keep_alive) {
  if (ending_.begun()) return;
  if (!io_->running()) {
    io_->network->timeline()->After(kLookAgain, [this, index, keep_alive, alive = alive_] {
      if (*alive) Worked(index, keep_alive);
    });
    return;
  }
  owner_->WithLock(
      [&] {
        bulk_[index].working = false;
        Read(index);
        // It goes on as long as there is something.
        if (!ending_.begun()) port_->ready.Ready(bulk_[index].token);
        return true;
      },
      [](bool) { return false; });
}

bool SimRecvLink::Read(size_t index) {
  Bulk& bulk = bulk_[index];
  bulk.more = false;
  if (bulk.in == nullptr || !owner_->Alive(name_)) return false;
  if (io_->reader_stuck) {
    port_->stuck.push_back(bulk.token);
    return false;
  }
  bool any = false;
  const BulkIn::Sink sink{
      .begin =
          [&](const net::Chunk& chunk, const SimKey& key, std::byte** destination) {
            any = true;
            const bool taken = owner_->Begin(name_, chunk, destination);
            taken ? io_->tap->ChunkBegun(Who(), chunk, *destination) : io_->tap->ChunkRefused(Who(), chunk);
            if (taken) Judge(chunk, key, *destination);
            return taken;
          },
      .finish =
          [&](const net::Chunk& chunk) {
            any = true;
            io_->tap->ChunkFinished(Who(), chunk);
            *carried_ += chunk.bytes;
            owner_->Finish(name_, chunk);
          },
      .proof = [this](bool ok) { Prove(ok); },
  };
  switch (bulk.in->Read(sink, io_->options.turn_bytes)) {
    case BulkIn::Result::kEmpty: break;
    case BulkIn::Result::kMore:
      bulk.more = true;
      owner_->Ready(name_);
      break;
    case BulkIn::Result::kBroken: Trouble(EvidenceCause::kSocketError); break;
    case BulkIn::Result::kGarbled: Trouble(EvidenceCause::kGarbled); break;
  }
  return any;
}

void SimRecvLink::Judge(const net::Chunk& chunk, const SimKey& key, const std::byte* destination) {
  if (!io_->options.keys || chunk.eager || destination == nullptr) return;
  const auto it = io_->registered.find(key.number);
  const bool known = it != io_->registered.end() && it->second.rail == name_.local_rail;
  const bool there = chunk.bytes == 0 || key.address == reinterpret_cast<uintptr_t>(destination);
  const bool right = known && there && key.address >= it->second.begin && key.address + chunk.bytes <= it->second.end;
  io_->tap->Keyed(Who(), chunk, right, known && it->second.again);
}

void SimRecvLink::Prove(bool ok) {
  proved_ = proved_ && ok;
  if (++proofs_ < bulk_.size()) return;
  owner_->Proved(name_, proved_);
  DeliverStale();
}

// Mutant: a completion of an incarnation that has ended counts for the next one.
void SimRecvLink::KeepStale() {
  for (const Bulk& bulk : bulk_)
    if (net::IsActive(net::Mutant::kStaleCompletion) && bulk.in != nullptr && bulk.in->half_read() != nullptr)
      port_->stale[name_.link] = *bulk.in->half_read();
}

void SimRecvLink::DeliverStale() {
  const auto it = port_->stale.find(name_.link);
  if (it == port_->stale.end()) return;
  const net::Chunk chunk = it->second;
  port_->stale.erase(it);
  std::byte* destination = nullptr;
  if (!owner_->Begin(name_, chunk, &destination) || destination == nullptr) return;
  io_->tap->ChunkBegun(Who(), chunk, destination);
  io_->tap->ChunkFinished(Who(), chunk);
  owner_->Finish(name_, chunk);
}

bool SimRecvLink::Poll(net::FlowId) {
  bool any = false;
  for (size_t i = 0; i < bulk_.size(); ++i)
    if (bulk_[i].in != nullptr && !bulk_[i].working) any |= Read(i);
  return any;
}

void SimRecvLink::ReadMore() {
  for (size_t i = 0; i < bulk_.size(); ++i)
    if (bulk_[i].more && !bulk_[i].working) Read(i);
}

bool SimRecvLink::Forget(net::FlowId flow) {
  // A device that is being closed still writes where it was told to.
  if (ending_.begun())
    return std::none_of(bulk_.begin(), bulk_.end(), [flow](const Bulk& bulk) {
      return bulk.in != nullptr && bulk.in->half_read() != nullptr && bulk.in->half_read()->flow == flow;
    });
  for (Bulk& bulk : bulk_)
    if (bulk.in != nullptr) bulk.in->Forget(flow);
  return true;
}

void SimRecvLink::DeviceLost(uint16_t rail) {
  if (name_.local_rail == rail && !ending_.begun()) Trouble(EvidenceCause::kLinkDown);
}

void SimRecvLink::EndSockets() {
  channel_.Close(true);
  port_->Unwatch(&bulk_);
  for (Bulk& bulk : bulk_)
    if (bulk.socket != nullptr) bulk.socket->Reset();
  // What handlers that are running now stand on lives until the next turn.
  io_->network->timeline()->After(0, [old = std::make_shared<decltype(bulk_)>(std::move(bulk_))] {});
  bulk_.clear();
}

bool SimRecvLink::Close() {
  io_->tap->At(Moment::kAcceptorEnds, peer_, io_->host, name_.link);
  channel_.Close(true);
  port_->Unwatch(&bulk_);
  if (!ending_.Begin(io_)) return false;
  KeepStale();
  EndSockets();
  io_->tap->CarrierEnded(Who());
  return true;
}

void SimRecvLink::FinishClose() {
  const Ending::Answer answer = ending_.Take(*io_);
  if (answer == Ending::Answer::kNone) return;
  if (answer == Ending::Answer::kFailed) return owner_->LinkClosed(name_, false);
  KeepStale();
  // Until now a device may have placed what came.
  for (Bulk& bulk : bulk_)
    if (bulk.in != nullptr) bulk.in->Fetch(kCallBytesMost);
  EndSockets();
  io_->tap->CarrierEnded(Who());
  owner_->LinkClosed(name_, true);
}

}  // namespace r2cc::sim
