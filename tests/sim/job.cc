#include "tests/sim/job.h"

#include <algorithm>
#include <utility>

namespace r2cc::sim {
Job::Job(Checker* checker, std::vector<Process*> processes, Excused excused)
    : checker_(checker),
      processes_(std::move(processes)),
      excused_(std::move(excused)),
      ends_over_(processes_.size(), kRunning),
      close_at_(processes_.size(), 0),
      closing_(processes_.size(), 0),
      failed_at_(processes_.size(), 0) {
  for (Process* process : processes_) process->progress = [this, process] { Progress(process); };
}

void Job::Add(const FlowPlan& plan) {
  Flow& flow = flows_.emplace_back();
  flow.plan = plan;
  flow.record = checker_->AddFlow(plan.sender, plan.receiver, plan.messages);
  flow.listen_id = flows_.size();
  flow.send_memory.reserve(plan.messages.size());
  flow.receive_memory.reserve(plan.messages.size());
  processes_[static_cast<size_t>(plan.receiver)]->Listen(flow.listen_id);
  for (const int host : {plan.sender, plan.receiver}) {
    Process* process = processes_[static_cast<size_t>(host)];
    process->io().network->timeline()->At(plan.start, [process] { process->Wake(); });
  }
}

// Time of the next post; the process is woken for it.
Nanos Job::Later(Process* process, Nanos most) {
  if (most == 0) return 0;
  const Nanos when = process->io().now() + process->io().random().Between(0, most);
  process->io().network->timeline()->At(when, [process] { process->Wake(); });
  return when;
}

Job::Awaited Job::AwaitedBy(const Flow& flow) const {
  const Process& receiver = *processes_[static_cast<size_t>(flow.plan.receiver)];
  Awaited awaited;
  for (const net::Memory* const memory : flow.receive_memory)
    if (memory != nullptr) awaited.push_back(receiver.RailsOf(*memory));
  return awaited;
}

void Job::Failed(Process* process, const Flow& flow, const std::string& error, bool sends) {
  const int other = sends ? flow.plan.receiver : flow.plan.sender;
  const std::string what = sends ? "a sending" : "a receiving";
  ++failures_;
  // As NCCL does: an error on one flow ends the communicator, all flows of this rank are closed as they are.
  Nanos& at = failed_at_[AsIndex(process)];
  if (at == 0) {
    at = process->io().now();
    process->io().network->timeline()->After(process->io().random().Between(0, 300 * kNanosPerMs),
                                             [this, host = process->host()] { Abort(host); });
  }
  if (process->io().logs()) process->io().Log(what + " flow with " + std::to_string(other) + " failed: " + error);
  if (!excused_(process->host(), other, sends ? AwaitedBy(flow) : Awaited()))
    checker_->Violation("false error", what + " flow of " + std::to_string(process->host()) + " with " + std::to_string(other) +
                                           " failed without a reason that the contract knows: " + error);
}

void Job::Send(Process* process, Flow* flow) {
  const Nanos now = process->io().now();
  if (!flow->connecting) {
    if (now < flow->plan.start) return;
    flow->connecting = true;
    flow->send = process->Connect(flow->plan.receiver, flow->listen_id, flow->plan.rail);
    checker_->Opened(flow->record, flow->send.id);
  }
  net::SendPeer& peer = *flow->send.peer;
  peer.Progress(flow->send.id);
  const net::Comm& comm = *flow->send.comm;
  const net::Comm::State state = comm.state.load();
  if (state == net::Comm::State::kOpening) return;
  const uint64_t count = flow->plan.messages.size();
  const uint64_t acked = peer.session().flows().at(flow->send.id).ledger.acked_through();
  checker_->AckedThrough(flow->record, acked);
  for (const uint64_t done = comm.done_through.load(); flow->send_done < done; ++flow->send_done) {
    if (flow->send_done >= flow->send_posted) return checker_->Violation("early done", "a request that was never posted is done");
    checker_->SendDone(flow->record, flow->send_done, flow->send_done >= acked);
    process->Unregister(std::exchange(flow->send_memory[flow->send_done], nullptr));
  }
  if (flow->send_done == count) {
    flow->send_over = true;
  } else if (state == net::Comm::State::kFailed) {
    flow->send_over = flow->send_failed = true;
    Failed(process, *flow, comm.error(), true);
  }
  while (!flow->send_over && flow->send_posted < count &&
         flow->send_posted - flow->send_done < static_cast<uint64_t>(flow->plan.send_window) && now >= flow->send_next &&
         MayPost(flow->plan, flow->send_posted, now) && process->CanRegister()) {
    std::byte* data = checker_->PostSend(flow->record, flow->send_posted);
    const uint64_t bytes = flow->plan.messages[flow->send_posted].first;
    flow->send_memory.push_back(process->Register(data, bytes, false));
    peer.Submit(flow->send.id, {data, flow->send_memory.back()}, bytes);
    ++flow->send_posted;
    flow->send_next = Later(process, flow->plan.send_gap_most);
  }
}

void Job::Receive(Process* process, Flow* flow) {
  const Nanos now = process->io().now();
  if (!flow->accepted && !process->Accept(flow->listen_id, &flow->receive)) {
    // Who would connect is gone, and a listener cannot know: the job itself gives up.
    const Process* sender = processes_[static_cast<size_t>(flow->plan.sender)];
    flow->receive_over = sender->dead() || sender->exiting();
    return;
  }
  flow->accepted = true;
  net::RecvPeer& peer = *flow->receive.peer;
  peer.Progress(flow->receive.id);
  const net::Comm& comm = *flow->receive.comm;
  const net::Comm::State state = comm.state.load();
  const uint64_t count = flow->plan.messages.size();
  for (const uint64_t done = comm.done_through.load(); flow->receive_done < done; ++flow->receive_done) {
    if (flow->receive_done >= flow->receive_posted) return checker_->Violation("early done", "a request that was never posted is done");
    checker_->ReceiveDone(flow->record, flow->receive_done, comm.sizes[flow->receive_done % net::kRequestsMax]);
    process->Unregister(std::exchange(flow->receive_memory[flow->receive_done], nullptr));
    ++delivered_;
  }
  if (flow->receive_done == count) {
    flow->receive_over = true;
    if (flow->record % 2 == 1 && state != net::Comm::State::kFailed) PostSpare(process, flow);
  } else if (state == net::Comm::State::kFailed) {
    flow->receive_over = flow->receive_failed = true;
    Failed(process, *flow, comm.error(), false);
  }
  while (!flow->receive_over && flow->receive_posted < count &&
         flow->receive_posted - flow->receive_done < static_cast<uint64_t>(flow->plan.receive_window) && now >= flow->receive_next &&
         MayPost(flow->plan, flow->receive_posted, now) && process->CanRegister()) {
    std::byte* data = checker_->PostReceive(flow->record, flow->receive_posted);
    const uint64_t bytes = flow->plan.messages[flow->receive_posted].second;
    flow->receive_memory.push_back(process->Register(data, bytes, true));
    peer.Submit(flow->receive.id, {data, flow->receive_memory.back()}, bytes);
    ++flow->receive_posted;
    flow->receive_next = Later(process, flow->plan.receive_gap_most);
  }
}

void Job::PostSpare(Process* process, Flow* flow) {
  constexpr size_t kBytes = 4096;
  flow->spare.resize(kBytes);
  flow->spare_memory = process->Register(flow->spare.data(), kBytes, true);
  flow->receive.peer->Submit(flow->receive.id, {flow->spare.data(), flow->spare_memory}, kBytes);
}

bool Job::CloseSend(Flow* flow) {
  if (flow->send_closed) return true;
  if (!std::exchange(flow->send_closing, true) && flow->connecting) {
    const net::PeerLock lock(*flow->send.peer);
    flow->send.peer->Close(flow->send.id);
  }
  flow->send_over = true;
  flow->send_closed = !flow->connecting || !flow->send.peer->Holds(flow->send.id);
  if (flow->send_closed) checker_->ClosedSend(flow->record);
  return flow->send_closed;
}

bool Job::CloseReceive(Process* process, Flow* flow) {
  if (flow->receive_closed) return true;
  if (!std::exchange(flow->receive_closing, true)) {
    if (!flow->accepted) flow->accepted = process->Accept(flow->listen_id, &flow->receive);
    process->CloseListen(flow->listen_id);
    if (flow->accepted) {
      process->io().tap->At(Moment::kRecvClosing, flow->plan.sender, flow->plan.receiver, 0);
      const net::PeerLock lock(*flow->receive.peer);
      flow->receive.peer->Close(flow->receive.id);
    }
  }
  flow->receive_over = true;
  flow->receive_closed = !flow->accepted || !flow->receive.peer->Holds(flow->receive.id);
  if (flow->receive_closed) checker_->ClosedReceive(flow->record);
  if (flow->receive_closed) process->Unregister(std::exchange(flow->spare_memory, nullptr));
  return flow->receive_closed;
}

void Job::Progress(Process* process) {
  const int host = process->host();
  bool over = true;
  Nanos linger = 0;
  for (Flow& flow : flows_) {
    if (flow.plan.sender == host && !flow.send_over) Send(process, &flow);
    if (flow.plan.receiver == host && !flow.receive_over) Receive(process, &flow);
    if ((flow.plan.sender == host && !flow.send_over) || (flow.plan.receiver == host && !flow.receive_over)) over = false;
    linger = std::max(linger, flow.plan.linger_most);
  }
  const bool aborted = ends_over_[AsIndex(process)] == kAborted;
  if (!over && !aborted) return;
  if (!aborted && stays && stays(*process)) return;
  Nanos& close_at = close_at_[AsIndex(process)];
  if (close_at == 0) close_at = aborted ? process->io().now() : std::max(process->io().now(), Later(process, linger));
  if (process->io().now() < close_at && !aborted) return;
  bool closed = true;
  for (Flow& flow : flows_) {
    if (flow.plan.sender == host) closed &= CloseSend(&flow);
    if (flow.plan.receiver == host) closed &= CloseReceive(process, &flow);
  }
  Nanos& closing = closing_[AsIndex(process)];
  if (closing == 0) closing = process->io().now();
  if (closed) return process->Exit();
  if (process->io().now() - closing < kCloseLimit) return;
  ends_over_[AsIndex(process)] = kAborted;
  process->Kill(false);
}

void Job::Abort(int host) {
  if (processes_[static_cast<size_t>(host)]->dead()) return;
  ends_over_[static_cast<size_t>(host)] = kAborted;
  processes_[static_cast<size_t>(host)]->Wake();
}

bool Job::done() const {
  const auto gone = [this](int host) { return processes_[static_cast<size_t>(host)]->dead(); };
  return std::all_of(flows_.begin(), flows_.end(), [&](const Flow& flow) {
    return (flow.send_over || gone(flow.plan.sender)) && (flow.receive_over || gone(flow.plan.receiver));
  });
}

Nanos Job::FirstStart(int a, int b) const {
  Nanos first = 0;
  for (const Flow& flow : flows_)
    if (std::minmax(flow.plan.sender, flow.plan.receiver) == std::minmax(a, b))
      first = first == 0 ? flow.plan.start : std::min(first, flow.plan.start);
  return first;
}

bool Job::over() const {
  return std::all_of(processes_.begin(), processes_.end(), [](const Process* process) { return process->dead(); });
}

std::vector<std::string> Job::Unfinished() const {
  std::vector<std::string> lines;
  for (const Flow& flow : flows_) {
    const auto dead = [&](int host) { return processes_[static_cast<size_t>(host)]->dead(); };
    const std::string name =
        "flow " + std::to_string(flow.record) + " " + std::to_string(flow.plan.sender) + " -> " + std::to_string(flow.plan.receiver);
    const std::string count = std::to_string(flow.plan.messages.size());
    if (!flow.send_over && !dead(flow.plan.sender))
      lines.push_back(name + ": sent " + std::to_string(flow.send_done) + " of " + count + ", posted " + std::to_string(flow.send_posted));
    if (!flow.receive_over && !dead(flow.plan.receiver))
      lines.push_back(name + ": received " + std::to_string(flow.receive_done) + " of " + count + ", posted " +
                      std::to_string(flow.receive_posted));
  }
  for (const Process* process : processes_)
    if (!process->dead())
      lines.push_back("process " + std::to_string(process->host()) + " has not ended" + (process->exiting() ? ", it is draining" : ""));
  return lines;
}

}  // namespace r2cc::sim
