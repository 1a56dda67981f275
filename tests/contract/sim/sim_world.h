// The world in simulated time: the production peers in two of tests/sim's processes, over its network; or over other rails that obey its
// faults.
#ifndef R2CC_TESTS_CONTRACT_SIM_SIM_WORLD_H_
#define R2CC_TESTS_CONTRACT_SIM_SIM_WORLD_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/contract/world.h"
#include "tests/sim/network.h"
#include "tests/sim/process.h"
#include "tests/sim/tap.h"
#include "tests/sim/timeline.h"

namespace r2cc::contract {

class SimWorld final : public World, private sim::Tap {
 public:
  // `keys`: the sender places, by keys to registered memory.
  // `eager`: small messages may travel so.
  explicit SimWorld(const Options& options, bool keys = false, const sim::Process::MakeRails& make_rails = nullptr, bool eager = true);
  ~SimWorld() override { timeline_.Clear(); }

  // Where rails are devices: what joins the ports reports nothing from now on, and sends what it is given, or does not.
  std::function<void(sim::Port from, sim::Port to, bool sends)> stall;

  std::string Node(End end) const override { return "host" + std::to_string(end); }
  Nanos Now() const override { return timeline_.now(); }
  void Pass() override { RunFor(kNanosPerMs); }
  std::byte* Allocate(End end, size_t bytes) override;
  int Open(End from, int rail) override;
  FlowState sender(int flow) const override { return At(flow).send.state; }
  FlowState receiver(int flow) const override { return At(flow).receive.state; }
  std::string SenderError(int flow) const override { return At(flow).send.error; }
  std::string ReceiverError(int flow) const override { return At(flow).receive.error; }
  void Send(int flow, const std::byte* data, size_t bytes) override;
  void Receive(int flow, std::byte* data, size_t capacity) override;
  uint64_t Sent(int flow) const override { return At(flow).send.done; }
  uint64_t Received(int flow) const override { return At(flow).receive.done; }
  size_t SizeOf(int flow, uint64_t number) const override { return At(flow).sizes[number]; }
  void CloseSend(int flow) override;
  void CloseReceive(int flow) override;
  void EndProcess(End end) override;

  void Cut(End end, int rail) override;
  void Silence(End end, int rail) override;
  void Heal(End end, int rail) override;
  void Slow(End end, int rail, int divisor) override { network_.Slow({end, rail}, divisor); }
  void StopProcess(End end) override { processes_[end]->Stop(); }
  void ContinueProcess(End end) override { processes_[end]->Continue(); }
  void KillProcess(End end, bool child_holds_sockets) override;
  bool Lose(End end, int rail, Loss loss) override;
  bool HasEagerMessages() const override { return eager_; }
  bool FailCloses(End end, bool fails) override {
    processes_[end]->io().closing.fails = fails;
    return true;
  }

  void Publish(End end, const std::vector<Verdict>& verdicts) override;
  void LoseDaemon(End end) override { Publish(end, {}); }

  uint64_t LeftBytes(End end, int rail) const override { return processes_[end]->sent_bytes(rail); }
  const std::vector<RailReport>& reports(End end) const override { return reports_[end]; }

 private:
  struct Side {
    FlowState state = FlowState::kOpening;
    std::string error;
    uint64_t done = 0;
  };
  struct Flow {
    End from = 0;
    Side send, receive;
    bool connected = false;
    bool accepted = false;
    sim::Process::SendFlow sender;
    sim::Process::RecvFlow receiver;
    std::vector<size_t> sizes;  // of received messages
  };
  struct PortState {
    bool cut = false;
    bool large_lost = false;  // of what it sends to the same rail of the other end
    bool silenced = false;
  };

  // ---- the tap ----
  void Recorded(int sender, int receiver, int rail, const net::SessionAction& action) override;

  const Flow& At(int flow) const { return flows_[static_cast<size_t>(flow)]; }
  void RunFor(Nanos time);
  void Await(const std::function<bool()>& condition, const char* what);
  // The process's job does it in its next turn.
  void Ask(End end, std::function<void()> what);
  // And it is waited for, however long that takes.
  void Call(End end, std::function<void()> what);
  void Progress(End end);
  void Look(End end, Flow* flow);
  // The link monitor reports it a moment later.
  void ReportLink(End end, int rail, bool up);

  const bool eager_;
  sim::Timeline timeline_;
  sim::Network network_;
  std::unique_ptr<sim::Process> processes_[2];
  std::vector<std::function<void()>> asked_[2];
  std::vector<Flow> flows_;
  std::map<std::pair<End, int>, PortState> ports_;
  plan::Plan pages_[2];
  std::vector<RailReport> reports_[2];
  // What was allocated is registered.
  net::Buffer BufferAt(End end, const std::byte* data) const;
  std::vector<std::unique_ptr<std::byte[]>> memory_;
  std::map<const std::byte*, const net::Memory*> registered_[2];
};

Transport SimTransport();
Transport SimKeysTransport();

}  // namespace r2cc::contract

#endif  // R2CC_TESTS_CONTRACT_SIM_SIM_WORLD_H_
