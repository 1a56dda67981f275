#include "tests/contract/sim/sim_world.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace r2cc::contract {
namespace {

constexpr uint64_t kSeed = 1;
constexpr Nanos kDelay = 25'000;
constexpr Nanos kJitter = 15'000;
// A call into an end that is stopped, or an end that does not end, would wait for ever.
constexpr Nanos kCallLimit = 60 * kNanosPerSecond;

sim::ProcessOptions ProcessOptionsOf(const Options& options, bool keys, bool eager) {
  sim::ProcessOptions process;
  process.rails = kRails;
  process.keys = keys;
  process.chunk_bytes = options.chunk_bytes.value_or(128 * 1024);
  process.eager_bytes = eager ? kEagerBytes : 0;
  process.silence = options.silence;
  process.deadline = options.deadline;
  process.turn_bytes = 256 * 1024;
  return process;
}

FlowState StateOf(net::Comm::State state) {
  switch (state) {
    case net::Comm::State::kOpening: return FlowState::kOpening;
    case net::Comm::State::kOpen: return FlowState::kOpen;
    case net::Comm::State::kFailed: return FlowState::kFailed;
  }
  return FlowState::kFailed;
}

}  // namespace

SimWorld::SimWorld(const Options& options, bool keys, const sim::Process::MakeRails& make_rails, bool eager)
    : eager_(eager), timeline_(kSeed), network_(&timeline_) {
  network_.set_send_buffer_bytes(256 * 1024);
  network_.set_receive_buffer_bytes(256 * 1024);
  for (End from = 0; from < 2; ++from)
    for (int a = kOob; a < kRails; ++a)
      for (int b = kOob; b < kRails; ++b) {
        sim::PathOptions path{.delay = kDelay, .jitter = kJitter, .rate_bytes_per_s = options.rail_bytes_per_s};
        path.reachable = a == b || (options.full_fabric && a != kOob && b != kOob);
        network_.SetPath({from, a}, {1 - from, b}, path);
      }
  for (End end = 0; end < 2; ++end) {
    processes_[end] =
        std::make_unique<sim::Process>(&network_, static_cast<sim::Tap*>(this), end, ProcessOptionsOf(options, keys, eager), make_rails);
    processes_[end]->progress = [this, end] { Progress(end); };
    processes_[end]->page = [this, end] { return pages_[end]; };
  }
  for (const auto& [end, rail] : options.cut_at_start) Cut(end, rail);
  RunFor(10 * kNanosPerMs);
}

void SimWorld::RunFor(Nanos time) {
  const Nanos end = timeline_.now() + time;
  bool over = false;
  timeline_.At(end, [&over] { over = true; });
  while (!over) timeline_.RunNext();
}

void SimWorld::Await(const std::function<bool()>& condition, const char* what) {
  const Nanos limit = timeline_.now() + kCallLimit;
  while (!condition() && timeline_.now() < limit && timeline_.RunNext()) continue;
  EXPECT_TRUE(condition()) << what;
}

// ---- the job ----

void SimWorld::Ask(End end, std::function<void()> what) {
  asked_[end].push_back(std::move(what));
  processes_[end]->Wake();
}

void SimWorld::Call(End end, std::function<void()> what) {
  bool done = false;
  Ask(end, [&done, what = std::move(what)] {
    what();
    done = true;
  });
  Await([&] { return done; }, "a process does not answer");
}

void SimWorld::Progress(End end) {
  for (Flow& flow : flows_) {
    const auto number = static_cast<uint64_t>(&flow - flows_.data());
    if (flow.from != end && !flow.accepted && processes_[end]->Accept(number, &flow.receiver)) {
      flow.accepted = true;
      processes_[end]->CloseListen(number);
    }
  }
  for (const auto& what : std::exchange(asked_[end], {})) what();
  for (Flow& flow : flows_) Look(end, &flow);
}

void SimWorld::Look(End end, Flow* flow) {
  if (flow->from == end && flow->connected && flow->send.state != FlowState::kClosed) {
    const net::Comm& comm = *flow->sender.comm;
    flow->sender.peer->Progress(flow->sender.id);
    flow->send.state = StateOf(comm.state.load());
    flow->send.error = comm.error();
    flow->send.done = comm.done_through.load();
  }
  if (flow->from != end && flow->accepted && flow->receive.state != FlowState::kClosed) {
    const net::Comm& comm = *flow->receiver.comm;
    flow->receiver.peer->Progress(flow->receiver.id);
    flow->receive.state = StateOf(comm.state.load());
    flow->receive.error = comm.error();
    flow->receive.done = comm.done_through.load();
    for (uint64_t number = flow->sizes.size(); number < flow->receive.done; ++number)
      flow->sizes.push_back(comm.sizes[number % net::kRequestsMax]);
  }
}

std::byte* SimWorld::Allocate(End end, size_t bytes) {
  memory_.push_back(std::make_unique<std::byte[]>(bytes));
  std::byte* const data = memory_.back().get();
  registered_[end][data] = processes_[end]->Register(data, bytes, false);
  return data;
}

net::Buffer SimWorld::BufferAt(End end, const std::byte* data) const {
  const auto it = registered_[end].upper_bound(data);
  return {data, it == registered_[end].begin() ? nullptr : std::prev(it)->second};
}

int SimWorld::Open(End from, int rail) {
  const int number = static_cast<int>(flows_.size());
  flows_.push_back({.from = from});
  Call(1 - from, [&] { processes_[1 - from]->Listen(static_cast<uint64_t>(number)); });
  Call(from, [&] {
    Flow& flow = flows_[static_cast<size_t>(number)];
    flow.sender = processes_[from]->Connect(1 - from, static_cast<uint64_t>(number), rail);
    flow.connected = true;
  });
  return number;
}

void SimWorld::Send(int number, const std::byte* data, size_t bytes) {
  Ask(At(number).from,
      [this, number, data, bytes] { At(number).sender.peer->Submit(At(number).sender.id, BufferAt(At(number).from, data), bytes); });
}

void SimWorld::Receive(int number, std::byte* data, size_t capacity) {
  Ask(1 - At(number).from, [this, number, data, capacity] {
    At(number).receiver.peer->Submit(At(number).receiver.id, BufferAt(1 - At(number).from, data), capacity);
  });
}

void SimWorld::CloseSend(int number) {
  Call(At(number).from, [this, number] {
    Flow& flow = flows_[static_cast<size_t>(number)];
    const net::PeerLock lock(*flow.sender.peer);
    flow.sender.peer->Close(flow.sender.id);
    flow.send.state = FlowState::kClosed;
  });
  Await([&] { return !At(number).sender.peer->Holds(At(number).sender.id); }, "a link keeps a buffer");
}

void SimWorld::CloseReceive(int number) {
  Call(1 - At(number).from, [this, number] {
    Flow& flow = flows_[static_cast<size_t>(number)];
    const net::PeerLock lock(*flow.receiver.peer);
    flow.receiver.peer->Close(flow.receiver.id);
    flow.receive.state = FlowState::kClosed;
  });
  Await([&] { return !At(number).receiver.peer->Holds(At(number).receiver.id); }, "a link keeps a buffer");
}

void SimWorld::EndProcess(End end) {
  processes_[end]->Exit();
  Await([&] { return processes_[end]->dead(); }, "a process does not end");
}

// ---- faults ----

void SimWorld::ReportLink(End end, int rail, bool up) {
  if (rail == kOob) return;
  timeline_.After(timeline_.random().Between(50'000, 1'000'000), [this, end, rail, up] { processes_[end]->RailState(rail, up); });
}

void SimWorld::Cut(End end, int rail) {
  ports_[{end, rail}].cut = true;
  network_.BlockPort({end, rail});
  ReportLink(end, rail, false);
}

void SimWorld::Silence(End end, int rail) {
  ports_[{end, rail}].silenced = true;
  network_.BlockPort({end, rail});
}

void SimWorld::Heal(End end, int rail) {
  PortState& port = ports_[{end, rail}];
  if (std::exchange(port.silenced, false)) network_.UnblockPort({end, rail});
  if (!std::exchange(port.cut, false)) return;
  network_.UnblockPort({end, rail});
  ReportLink(end, rail, true);
}

bool SimWorld::Lose(End end, int rail, Loss loss) {
  const sim::Port from{end, rail}, to{1 - end, rail};
  bool& large_lost = ports_[{end, rail}].large_lost;
  if (large_lost != (loss == Loss::kLargePackets)) {
    large_lost = !large_lost;
    large_lost ? network_.BlockLarge(from, to) : network_.UnblockLarge(from, to);
  }
  if (loss != Loss::kOneConnection && loss != Loss::kCompletions) return true;
  if (stall != nullptr) return stall(from, to, loss == Loss::kCompletions), true;
  return loss == Loss::kOneConnection && network_.LosePackets(from, to, static_cast<int>(timeline_.random().Pick(64)), 1000);
}

void SimWorld::KillProcess(End end, bool child_holds_sockets) {
  // That a forked child keeps none of them is for a transport with real descriptors to show.
  static_cast<void>(child_holds_sockets);
  processes_[end]->Kill(false);
}

void SimWorld::Publish(End end, const std::vector<Verdict>& verdicts) {
  pages_[end] = {};
  for (const Verdict& verdict : verdicts)
    pages_[end].nics.push_back({sim::HostName(verdict.node), sim::RailName(verdict.rail), verdict.state, verdict.weight_permille});
  processes_[end]->ApplyVerdicts();
}

// ---- observation ----

void SimWorld::Recorded(int sender, int, int rail, const net::SessionAction& action) {
  RailReport report{.rail = rail};
  switch (action.kind) {
    case net::SessionAction::Kind::kLinkUp: break;
    case net::SessionAction::Kind::kLinkFenced:
      report.what = RailReport::What::kLinkFenced;
      report.cause = plan::CauseName(action.report.cause);
      report.replayed_bytes = action.report.replayed_bytes;
      break;
    case net::SessionAction::Kind::kLinkSlow:
      report.what = action.number < plan::kFullWeightPermille ? RailReport::What::kRailSlow : RailReport::What::kRailSteady;
      break;
    default: return;
  }
  reports_[sender].push_back(report);
}

Transport SimTransport() {
  return {.name = "Sim",
          .missing = [] { return std::string(); },
          .make = [](const Options& options) -> std::unique_ptr<World> { return std::make_unique<SimWorld>(options, false); }};
}

Transport SimKeysTransport() {
  return {.name = "SimKeys",
          .missing = [] { return std::string(); },
          .make = [](const Options& options) -> std::unique_ptr<World> { return std::make_unique<SimWorld>(options, true); }};
}

}  // namespace r2cc::contract
