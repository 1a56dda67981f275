#include "netplugin/transport/verbs/verbs_recv_link.h"

#include "base/core/hash.h"
#include "netplugin/flow/mutant.h"
#include "netplugin/transport/verbs/verbs_port.h"

namespace r2cc::net::verbs {

VerbsRecvLink::VerbsRecvLink(VerbsPort* port, const LinkName& name, RecvOwner* owner, Counter* carried)
    : port_(port),
      name_(name),
      owner_(owner),
      carried_(carried),
      core_(port->shared(), port->key(), name, LinkCore::End::kReceives, port->HistoryOf(LinkCore::End::kReceives, name.link), owner,
            this) {
  port_->Add(&core_);
}

VerbsRecvLink::~VerbsRecvLink() {
  port_->Remove(&core_);
  port_->RemoveFlushing(this);
}

bool VerbsRecvLink::Close() {
  closing_ = true;
  port_->Remove(&core_);
  port_->RemoveFlushing(this);
  // What it reads goes nowhere: nobody waits for its end.
  flusher_ = nullptr;
  return core_.Close();
}

bool VerbsRecvLink::Attach(const Hello&, const HelloReply&, std::unique_ptr<Connection>* greeted, bool* control, std::string* reason) {
  const auto* const connection = dynamic_cast<const VerbsConnection*>(greeted->get());
  if (connection == nullptr || (attached_ && !(connection->offer == offer_))) {
    *reason = connection == nullptr ? "no offer of a queue pair" : "the incarnation has its queue pair already";
    return false;
  }
  const bool again = attached_;
  offer_ = connection->offer;
  attached_ = true;
  greeted->reset();
  if (again) {
    // The word came on several channels, or our answer was lost.
    if (core_.joined()) owner_->Answer(name_, Encode(core_.pair()->offer()));
    return true;
  }
  *control = true;
  core_.Create();
  return true;
}

void VerbsRecvLink::Created() { core_.Join(offer_); }

void VerbsRecvLink::Joined() { owner_->Answer(name_, Encode(core_.pair()->offer())); }

bool VerbsRecvLink::Poll(FlowId) {
  const uint64_t before = marks_;
  if (owner_->Alive(name_)) core_.Look();
  // A message's chunks may have come by other links as well.
  const size_t flushed = port_->LookAtFlushes();
  return marks_ != before || flushed > 0;
}

void VerbsRecvLink::Flush(const FlushName& flush, const Buffer& at) {
  const auto key = port_->shared()->regions.RemoteKey(at.memory->id, name_.local_rail);
  // It was revoked, or the device is gone: by another link it is sent again.
  if (!key) return core_.Trouble(plan::EvidenceCause::kLinkDown);
  if (flusher_ == nullptr) {
    const VerbsShared::RailDevice& rail = core_.rail();
    if (rail.domain == nullptr || rail.domain != port_->shared()->Of(name_.local_rail).domain)
      return core_.Trouble(plan::EvidenceCause::kLinkDown);
    flusher_ =
        std::make_unique<Flusher>(rail.domain, LoopbackPair::Options{rail.port, rail.gid, port_->shared()->random()}, port_->shared()->log);
    port_->AddFlushing(this);
  }
  flusher_->Flush(flush, at.data, *key);
}

size_t VerbsRecvLink::LookAtFlushes() {
  size_t ended = 0;
  const bool ok = flusher_->Poll([&](const FlushName& flush) {
    ++ended;
    owner_->Flushed(name_, flush);
  });
  if (!ok) core_.Trouble(plan::EvidenceCause::kLinkDown);
  return ended;
}

bool VerbsRecvLink::Mark(uint32_t immediate, uint32_t bytes) {
  if (!owner_->Alive(name_)) return true;
  ++marks_;
  const ChunkMark mark = MarkOf(immediate);
  const QueuePair& pair = *core_.pair();
  const bool tailed = pair.offer().adaptive_routing || pair.remote().adaptive_routing || !mark.last || mark.chunk != 0;
  FlowId flow = 0;
  MessageId placed_through = 0;
  if (!owner_->FindFlow(FlowSlotOf(mark.ticket), kFlowSlots, &flow, &placed_through)) return false;
  MessageId message = MessageOf(mark.ticket, placed_through);
  if (IsActive(Mutant::kTicketReused)) message = placed_through + (mark.ticket - placed_through) % 4;
  Chunk header;
  Tail tail;
  if (tailed ? !Decode(pair.TailOf(mark.ticket), mark.ticket, port_->key().tag, &tail) || !HeaderOf(mark, flow, message, tail, &header)
             : !HeaderOf(mark, flow, message, bytes, &header))
    return false;
  *carried_ += header.bytes;
  return owner_->Placed(name_, header);
}

void VerbsRecvLink::ProofCame(uint32_t crc) {
  const auto proof = core_.pair()->proof();
  proved_ = true;
  owner_->Proved(name_, (Crc32c(proof.data(), proof.size()) ^ port_->key().tag) == crc);
}

}  // namespace r2cc::net::verbs
