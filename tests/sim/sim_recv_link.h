// One incarnation of a link at the acceptor's end, over the simulated network. Until its close has ended it places what comes, as a device
// does; and a worker may move bytes between two holders of the lock.
#ifndef R2CC_TESTS_SIM_SIM_RECV_LINK_H_
#define R2CC_TESTS_SIM_SIM_RECV_LINK_H_

#include <memory>
#include <string>
#include <vector>

#include "tests/sim/ending.h"
#include "tests/sim/sim_transport.h"

namespace r2cc::sim {

class SimRecvLink final : public net::RecvLink {
 public:
  SimRecvLink(SimPort* port, const net::LinkName& name, net::RecvOwner* owner, net::Counter* carried);
  ~SimRecvLink() override;

  net::ControlChannel* control() override { return &channel_; }
  bool Close() override;
  bool Attach(const net::Hello& hello, const net::HelloReply& reply, std::unique_ptr<net::Connection>* greeted, bool* control,
              std::string* reason) override;
  bool Poll(net::FlowId wanted) override;
  void ReadMore() override;
  bool Forget(net::FlowId flow) override;

  // May destroy this.
  void FinishClose();
  void DeviceLost(uint16_t rail);

 private:
  struct Bulk {
    std::unique_ptr<BulkIn> in;
    std::shared_ptr<Socket> socket;
    ReadySet::Token token = 0;
    bool more = false;
    bool working = false;  // a worker is on its way, or at its call
  };
  // Read() by whoever holds the lock, or a worker's call and then Read().
  void BulkReady(size_t index);
  bool Read(size_t index);
  void Work(size_t index);
  void Worked(size_t index, const std::shared_ptr<void>& keep_alive);
  void Trouble(plan::EvidenceCause cause) { owner_->Trouble(name_, cause); }
  Carrying Who() const { return {io_->host, peer_, name_.link, name_.incarnation}; }
  // The device looks at the key by which a chunk comes that goes to `destination`.
  void Judge(const net::Chunk& chunk, const SimKey& key, const std::byte* destination);
  void Prove(bool ok);
  void KeepStale();
  void DeliverStale();
  void EndSockets();

  SimPort* const port_;
  Io* const io_;
  const net::LinkName name_;
  net::RecvOwner* const owner_;
  net::Counter* const carried_;
  int peer_ = 0;
  SimChannel channel_;
  std::vector<Bulk> bulk_;
  size_t proofs_ = 0;
  bool proved_ = true;
  Ending ending_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // for what the timeline holds
};

}  // namespace r2cc::sim

#endif  // R2CC_TESTS_SIM_SIM_RECV_LINK_H_
