// The fake driver, the fake roll call and the fake plugin.
#include "tests/seat/fake_nccl.h"

#include <utility>

namespace r2cc::nccl {

FakeCuda::~FakeCuda() = default;

bool FakeCuda::IsCaptured(Stream stream) { return own().captured.count(stream) > 0; }

bool FakeCuda::MakeEvent(Event* event) {
  *event = reinterpret_cast<Event>(++events_);
  return true;
}

bool FakeCuda::Record(Event event, Stream stream) {
  if (IsCaptured(stream)) world_.Fail("an event is recorded in a capture");
  const uint64_t number = ++own().events[event].first;
  own().streams[stream].push_back({.record = event, .number = number});
  return true;
}

bool FakeCuda::Wait(Stream stream, Event event) {
  if (IsCaptured(stream)) world_.Fail("a capture waits for an event of outside");
  own().streams[stream].push_back({.wait = event, .number = own().events[event].first});
  return true;
}

bool FakeCuda::MayWait() {
  if (!own().captured.empty()) world_.Fail("the host waits in a capture");
  if (own().in_group) world_.Fail("the host waits in a group");
  return true;
}

bool FakeCuda::Finish(Event event, const std::function<void()>&) {
  if (!MayWait()) return false;
  // An abort ends what the event waits for.
  world_.scheduler().Block([&] { return own().events[event].second >= own().events[event].first || own().gave_up; });
  return true;
}

bool FakeCuda::Finish(Stream stream) {
  if (!MayWait()) return false;
  world_.scheduler().Block([&] { return own().streams[stream].empty() || own().gave_up; });
  return true;
}

uint32_t* FakeCuda::AllocateWords(size_t words) {
  words_.push_back(std::make_unique<uint32_t[]>(words));
  own().words.insert(words_.back().get());
  return words_.back().get();
}

void FakeCuda::Free(Event event) { own().events.erase(event); }
void FakeCuda::FreeWords(uint32_t* words) {
  if (own().words.erase(words) == 0) world_.Fail("memory that is not there is freed");
}

// ---- the roll call ----

FakeRollCall::FakeRollCall(World* world, const Group* group, int rank, uint32_t every) : world_(*world), group_(group), rank_(rank) {
  world_.roll(group_).CheckIn({static_cast<uint32_t>(rank), static_cast<uint32_t>(group_->members.size()), every, 1});
}

Verdict FakeRollCall::Await() {
  if (world_.plan().cut_off == rank_) return {};
  Verdict verdict;
  const auto decide = [&] { return (verdict = world_.roll(group_).Decide(world_.roll_now())).kind != Verdict::Kind::kNone; };
  world_.roll(group_).Want(world_.roll_now());
  world_.Want(group_);
  world_.scheduler().Block([&] { return ended_ || decide(); });
  return ended_ ? Verdict() : verdict;
}

// ---- the plugin ----

Rails::State FakeRails::Look() {
  const auto node = static_cast<size_t>(world_.plan_.node_of[static_cast<size_t>(rank_)]);
  return {.is_there = world_.plan_.unable != rank_,
          .node_key = 1000 + node,
          .kept_permille = world_.kept_[node],
          .rails = 4,
          .bytes_per_s = world_.plan_.bytes_per_s,
          .offers_collnet = world_.plan_.offers_collnet};
}

bool FakeRails::MarkChild() {
  if (own().last_split != nullptr) own().last_split->way = plan::Way::kTree;
  return world_.plan_.mark_fails.count({own().marks++, rank_}) == 0;
}

uint64_t FakeRails::WatchedCommunicator() {
  own().watched_bytes.reset();
  const FakeComm* const watched = std::exchange(own().watched, nullptr);
  if (watched == nullptr) return 0;
  // It was not the only one, now and then.
  if (own().unclear < 2 && world_.scheduler().Random(3) == 0) {
    ++own().unclear;
    return 0;
  }
  return watched->number;
}

bool FakeRails::SetWay(uint64_t number, plan::Way way) {
  if (number == 0 || number > world_.comms_.size()) {
    world_.Fail("a communicator that the tuner has not identified gets a way");
    return false;
  }
  FakeComm* const comm = world_.comms_[number - 1].get();
  if (comm->aborted) return false;
  comm->way = way;
  return true;
}

}  // namespace r2cc::nccl
