// One incarnation of a link at the initiator's end, over the simulated network. Until its close has ended it reads what it was told to
// send, as a device does.
#ifndef R2CC_TESTS_SIM_SIM_SEND_LINK_H_
#define R2CC_TESTS_SIM_SIM_SEND_LINK_H_

#include <memory>
#include <vector>

#include "tests/sim/ending.h"
#include "tests/sim/sim_transport.h"

namespace r2cc::sim {

class SimSendLink final : public net::SendLink {
 public:
  SimSendLink(SimPort* port, const net::LinkName& name, net::SendOwner* owner, net::Counter* carried);
  ~SimSendLink() override;

  net::ControlChannel* control() override { return &channel_; }
  bool Close() override;
  void Open(const net::Endpoint& remote_rail, const net::Hello& hello) override;
  void Prove() override;
  void Start() override;
  Room Pump(int most, bool retry) override;
  bool busy() const override;
  Sent SendNow(FunctionRef<bool(net::Chunk*)> post) override;
  void Retarget(net::FlowId flow, net::MessageId message, const std::byte* copy) override;
  bool Holds(net::FlowId flow) override;
  net::LinkFacts Measure() override;

  // May destroy this.
  void FinishClose();
  void DeviceLost(uint16_t rail);

 private:
  struct Greeting {
    std::unique_ptr<FrameStream> stream;
    ReadySet::Token token = 0;
    int socket = -1;   // -1: the control channel
    net::Bytes hello;  // still to be said
  };
  struct Bulk {
    std::unique_ptr<BulkOut> out;
    std::shared_ptr<Socket> socket;
    ReadySet::Token token = 0;
  };
  void Greets(Greeting* greeting);
  void BulkReady(size_t index);
  bool PumpSocket(Bulk* bulk);
  // Of a chunk that was just pulled: it leaves.
  SimKey Carried(const net::Chunk& chunk);
  void Trouble(plan::EvidenceCause cause) { owner_->Trouble(name_, cause); }
  void EndSockets();

  SimPort* const port_;
  Io* const io_;
  const net::LinkName name_;
  net::SendOwner* const owner_;
  net::Counter* const carried_;
  int peer_ = 0;
  std::vector<std::unique_ptr<Greeting>> greetings_;
  SimChannel channel_;
  std::vector<Bulk> bulk_;
  bool started_ = false;
  Ending ending_;
};

}  // namespace r2cc::sim

#endif  // R2CC_TESTS_SIM_SIM_SEND_LINK_H_
