// Runs the initiator's end of one incarnation: sends chunks as RDMA writes into granted buffers.
#ifndef R2CC_NETPLUGIN_TRANSPORT_VERBS_VERBS_SEND_LINK_H_
#define R2CC_NETPLUGIN_TRANSPORT_VERBS_VERBS_SEND_LINK_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>

#include "netplugin/transport/links.h"
#include "netplugin/transport/verbs/link_core.h"

namespace r2cc::net::verbs {

class VerbsPort;

class VerbsSendLink final : public SendLink, private LinkCore::User {
 public:
  VerbsSendLink(VerbsPort* port, const LinkName& name, SendOwner* owner, Counter* carried);
  ~VerbsSendLink() override;

  ControlChannel* control() override { return &core_; }
  bool Close() override;
  void Open(const Endpoint& remote_rail, const Hello& hello) override;
  void Answered(bool accepted, const Endpoint& endpoint) override;
  void Prove() override;
  void Start() override;
  Room Pump(int most, bool retry) override;
  bool busy() const override { return waiting_.has_value(); }  // the device has what was posted
  // Every message waits for its grant.
  Sent SendNow(FunctionRef<bool(Chunk*)>) override { return Sent::kNot; }
  void Retarget(FlowId, MessageId, const std::byte*) override {}
  bool Holds(FlowId flow) override;
  bool Release(FlowId flow) override;
  LinkFacts Measure() override;
  void Advise(const LinkAdvice& advice) override { advice_ = advice; }

 private:
  struct Outstanding {
    uint64_t through = 0;  // sequence of its last request
    Chunk chunk;
  };
  // LinkCore::User:
  void Created() override;
  void Joined() override;
  void FrameReceived(const Frame& frame) override;
  bool IsOpen(FlowId flow) override { return owner_->IsOpen(flow); }
  void Credited() override { owner_->Ready(name_); }
  bool Mark(uint32_t, uint32_t) override { return false; }  // an acceptor writes no chunk
  void Retired(uint64_t through) override;
  void ProofCame(uint32_t) override {}

  // Room for one more chunk after `more` chunks, of `more_bytes`, that are about to be posted.
  bool HasRoom(size_t more, uint64_t more_bytes) const;
  bool HasRoom() const { return HasRoom(0, 0); }
  // Retires the chunks that have completed according to the device, or that were acknowledged, which proves the same.
  void Retire();
  bool NeedsTail(const Chunk& chunk) const;
  bool TailIsFree(const Chunk& chunk) const;
  // `signaled`: the device reports its completion. False: the device is in trouble.
  bool Send(const Chunk& chunk, bool signaled);
  bool Post(const Chunk& chunk, bool signaled);
  // Posts an empty write whose completion the device reports: then all before it have completed. False: the device is in trouble.
  bool AskForEnd();
  // See LinkProgress. Of the queue pair, which must exist.
  PathFacts Progress();

  VerbsPort* const port_;
  const LinkName name_;
  SendOwner* const owner_;
  Counter* const carried_;
  LinkCore core_;
  bool offered_ = false, answered_ = false, started_ = false;
  std::deque<Outstanding> outstanding_;
  uint64_t retired_ = 0;
  uint64_t outstanding_bytes_ = 0;
  uint64_t oldest_ = 0;  // `through` of the first one that was outstanding at the last Measure()
  LinkFacts facts_;
  Nanos busy_since_ = 0;  // 0: nothing is outstanding
  LinkAdvice advice_;
  std::optional<Chunk> waiting_;     // pulled, until the slot of its tail record is free
  std::map<uint32_t, Chunk> tails_;  // by slot, the last chunk that used it; never read through
};

}  // namespace r2cc::net::verbs

#endif  // R2CC_NETPLUGIN_TRANSPORT_VERBS_VERBS_SEND_LINK_H_
