// Runs the acceptor's end of one incarnation: a chunk whose completion arrives here has been placed already.
#ifndef R2CC_NETPLUGIN_TRANSPORT_VERBS_VERBS_RECV_LINK_H_
#define R2CC_NETPLUGIN_TRANSPORT_VERBS_VERBS_RECV_LINK_H_

#include <cstdint>
#include <memory>
#include <string>

#include "netplugin/transport/links.h"
#include "netplugin/transport/verbs/flusher.h"
#include "netplugin/transport/verbs/link_core.h"

namespace r2cc::net::verbs {

class VerbsPort;

// An offer, until its link takes it.
struct VerbsConnection final : Connection {
  explicit VerbsConnection(const verbs::Offer& of) : offer(of) {}
  const verbs::Offer offer;
};

class VerbsRecvLink final : public RecvLink, private LinkCore::User {
 public:
  VerbsRecvLink(VerbsPort* port, const LinkName& name, RecvOwner* owner, Counter* carried);
  ~VerbsRecvLink() override;

  ControlChannel* control() override { return &core_; }
  bool Close() override;
  bool Attach(const Hello& hello, const HelloReply& reply, std::unique_ptr<Connection>* greeted, bool* control,
              std::string* reason) override;
  bool Poll(FlowId wanted) override;
  void Flush(const FlushName& flush, const Buffer& at) override;
  // Chunks come only after the data check.
  bool Forget(FlowId flow) override { return !proved_ || !owner_->MayBePlaced(flow); }
  // A frame follows the writes of its queue pair. A reliable connection completes its receives in order, unless it is made for out-of-order
  // receives, and none of ours is.
  bool orders() const override { return !closing_; }

  // For its port. Returns how many have ended.
  size_t LookAtFlushes();

 private:
  // LinkCore::User:
  void Created() override;
  void Joined() override;
  void FrameReceived(const Frame& frame) override { owner_->FrameReceived(name_, frame); }
  bool IsOpen(FlowId) override { return false; }  // an initiator grants nothing
  void Credited() override {}                     // only frames wait for credit
  bool Mark(uint32_t immediate, uint32_t bytes) override;
  void Retired(uint64_t) override {}
  void ProofCame(uint32_t crc) override;

  VerbsPort* const port_;
  const LinkName name_;
  RecvOwner* const owner_;
  Counter* const carried_;
  LinkCore core_;
  bool attached_ = false, proved_ = false, closing_ = false;
  uint64_t marks_ = 0;
  std::unique_ptr<Flusher> flusher_;  // null: no flush was requested
  Offer offer_;
};

}  // namespace r2cc::net::verbs

#endif  // R2CC_NETPLUGIN_TRANSPORT_VERBS_VERBS_RECV_LINK_H_
