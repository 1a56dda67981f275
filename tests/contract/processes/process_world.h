// A world of two processes with an Engine each, on two nodes that somebody else has made.
#ifndef R2CC_TESTS_CONTRACT_PROCESSES_PROCESS_WORLD_H_
#define R2CC_TESTS_CONTRACT_PROCESSES_PROCESS_WORLD_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "base/core/clock.h"
#include "tests/contract/processes/nodes.h"
#include "tests/contract/processes/protocol.h"
#include "tests/contract/world.h"

namespace r2cc::contract {

class ProcessWorld : public World {
 public:
  // The nodes outlive the world.
  ProcessWorld(const Options& options, Nodes* nodes);
  ~ProcessWorld() override;

  std::string Node(End end) const override { return "n" + std::to_string(end); }
  Nanos Now() const override { return clock_.Now(); }
  void Pass() override;
  std::byte* Allocate(End end, size_t bytes) override;
  int Open(End from, int rail) override;
  FlowState sender(int flow) const override { return StateOf(flow, true); }
  FlowState receiver(int flow) const override { return StateOf(flow, false); }
  std::string SenderError(int flow) const override { return SendStatus(flow).error; }
  std::string ReceiverError(int flow) const override { return ReceiveStatus(flow).error; }
  void Send(int flow, const std::byte* data, size_t bytes) override;
  void Receive(int flow, std::byte* data, size_t capacity) override;
  uint64_t Sent(int flow) const override { return flows_[static_cast<size_t>(flow)].sent; }
  uint64_t Received(int flow) const override { return flows_[static_cast<size_t>(flow)].received; }
  size_t SizeOf(int flow, uint64_t number) const override { return ReceiveStatus(flow).sizes[number % kSizesKept]; }
  void CloseSend(int flow) override { Close(flow, true); }
  void CloseReceive(int flow) override { Close(flow, false); }
  void EndProcess(End end) override;

  void Cut(End end, int rail) override { nodes_->Cut(end, rail); }
  void Silence(End end, int rail) override { nodes_->Silence(end, rail); }
  void Heal(End end, int rail) override { nodes_->Heal(end, rail); }
  void Slow(End end, int rail, int divisor) override { nodes_->Shape(end, rail, options_.rail_bytes_per_s / divisor); }
  bool Lose(End end, int rail, Loss loss) override { return nodes_->Lose(end, rail, loss); }
  void StopProcess(End end) override;
  void ContinueProcess(End end) override;
  void KillProcess(End end, bool child_holds_sockets) override;

  void Publish(End end, const std::vector<Verdict>& verdicts) override;
  void LoseDaemon(End end) override;

  uint64_t LeftBytes(End end, int rail) const override { return processes_[end].status.left_bytes[rail]; }
  const std::vector<RailReport>& reports(End end) const override { return processes_[end].reports; }

 private:
  struct Flow {
    End from = 0;
    uint64_t sent = 0;
    uint64_t received = 0;
    bool send_closed = false;
    bool receive_closed = false;
  };
  struct Process {
    pid_t pid = -1;
    int commands = -1;
    std::byte* memory = nullptr;
    uint64_t allocated = 0;
    bool stopped = false;
    Status status{};
    std::vector<RailReport> reports;
  };

  void Start(End end);
  std::string RailsOf(End end) const;
  bool Talks(End end) const { return processes_[end].pid > 0 && !processes_[end].stopped; }
  void SendCommand(End end, const Command& command);
  // Sends the command, and waits for the answer of the process.
  template <typename T>
  bool Ask(End end, const Command& command, T* answer);
  void Poll(End end);
  void Close(int flow, bool sender);
  void Kill(End end);
  End EndOf(int flow, bool sender) const {
    const End from = flows_[static_cast<size_t>(flow)].from;
    return sender ? from : 1 - from;
  }
  const FlowStatus& SendStatus(int flow) const { return processes_[EndOf(flow, true)].status.send[flow]; }
  const FlowStatus& ReceiveStatus(int flow) const { return processes_[EndOf(flow, false)].status.receive[flow]; }
  FlowState StateOf(int flow, bool sender) const;

  const Options options_;
  Nodes* const nodes_;
  SteadyClock clock_;
  Process processes_[2];
  std::vector<Flow> flows_;
  std::vector<pid_t> holders_;
};

}  // namespace r2cc::contract

#endif  // R2CC_TESTS_CONTRACT_PROCESSES_PROCESS_WORLD_H_
