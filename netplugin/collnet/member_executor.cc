#include "netplugin/collnet/member_executor.h"

#include <algorithm>

#include "base/core/check.h"
#include "netplugin/collnet/mutant.h"
#include "netplugin/collnet/reduce.h"

namespace r2cc::collnet {
namespace {

constexpr uint64_t kVectorBytesMax = uint64_t{1} << 40;  // as NCCL's own
constexpr size_t kLayoutsMax = 64;                       // sizes that a job uses again and again

std::string MemberName(uint32_t member) { return "member " + std::to_string(member); }

}  // namespace

MemberExecutor::MemberExecutor(const Options& options, MakePlan make_plan, MakeSteps make_steps)
    : options_(options), make_plan_(std::move(make_plan)), make_steps_(std::move(make_steps)), states_(options.members) {
  R2CC_CHECK(options_.members >= 2 && options_.member < options_.members && options_.slots >= 1 && options_.ahead >= 1);
  own_.member = options_.member;
  if (options_.member != 0) return;
  stamper_.emplace(make_plan_(std::vector<uint64_t>(options_.members, 1), states_.ReachAll()), options_.ahead);
}

// ---- plans ----

void MemberExecutor::SetCapacity(uint64_t bytes_per_s) {
  if (failed() || (own_.number > 0 && own_.bytes_per_s == bytes_per_s)) return;
  own_.bytes_per_s = bytes_per_s;
  SendState();
}

void MemberExecutor::SetUnreachable(std::vector<uint32_t> members) {
  if (failed() || own_.unreachable == members) return;
  const std::vector<uint32_t> before = std::exchange(own_.unreachable, std::move(members));
  if (own_.number == 0) return;
  SendState();
  for (const uint32_t member : before) SendStamps(member);
}

void MemberExecutor::SendState() {
  ++own_.number;
  states_.Learn(own_);
  const bool to_all = states_.any_was_unreachable();
  for (uint32_t peer = 0; peer < options_.members; ++peer)
    if (peer != options_.member && (peer == 0 || to_all)) Send(peer, own_);
  StateChanged(own_);
}

// Members report their state before they are connected: nothing is stamped for ever before that.
void MemberExecutor::Replan() {
  stamper_->SetPlan(make_plan_(states_.BytesPerSecond(), states_.ReachAll()));
  StampMore();
}

void MemberExecutor::StateChanged(const MemberState& state) {
  if (stamper_.has_value()) return Replan();
  if (state.member != 0 && state.member != options_.member && !states_.HavePath(state.member, 0)) {
    Send(0, state);
    SendStamps(state.member);
  }
  if (state.member != 0) return;
  for (const uint32_t member : state.unreachable)
    if (member != options_.member) SendStamps(member);
}

void MemberExecutor::SendStamps(uint32_t member) {
  if (member == 0) return;
  for (const Stamp& stamp : book_.stamps()) Send(member, stamp);
}

void MemberExecutor::Forward(const Stamp& stamp) {
  if (IsActive(CollNetMutant::kStampNotForwarded)) return;
  for (uint32_t member = 1; member < options_.members; ++member)
    if (member != options_.member && !states_.HavePath(member, 0)) Send(member, stamp);
}

void MemberExecutor::StampMore() {
  if (called_ == 0) return;
  while (const std::optional<Stamp> stamp = stamper_->Next(called_)) {
    const std::string wrong = book_.Add(*stamp);
    R2CC_CHECK(wrong.empty() || IsActive(CollNetMutant::kStampChanged));
    for (uint32_t peer = 1; peer < options_.members; ++peer) Send(peer, *stamp);
  }
}

std::shared_ptr<const MemberLayout> MemberExecutor::LayoutFor(const Stamp& stamp, uint64_t bytes) {
  if (layouts_.size() >= kLayoutsMax) layouts_.clear();
  std::shared_ptr<const MemberLayout>& layout = layouts_[{stamp.epoch, bytes}];
  if (layout == nullptr) layout = std::make_shared<MemberLayout>(make_steps_(stamp.plan, bytes), options_.member);
  return layout;
}

// ---- operations ----

std::optional<OperationId> MemberExecutor::Call(uint64_t count, abi::DataType type, abi::RedOp op, Nanos now) {
  R2CC_CHECK(CanReduce(type, op));
  if (failed() || count > kVectorBytesMax / ElementBytes(type)) return std::nullopt;
  if (open_.empty()) last_event_ = now;
  const OperationId number = called_++;
  open_[number] = {number, 0, count, type, op};
  if (stamper_.has_value()) StampMore();
  BeginOperations();
  return number;
}

void MemberExecutor::BeginOperations() {
  while (begun_ < called_) {
    const Stamp* const stamp = book_.Find(begun_);
    if (stamp == nullptr) return;
    const bool slot_taken = begun_ >= options_.slots && open_.count(begun_ - options_.slots) > 0;
    if (slot_taken && !IsActive(CollNetMutant::kSlotNotAwaited)) return;
    Begin(begun_++, *stamp);
  }
}

void MemberExecutor::Begin(OperationId number, const Stamp& stamp) {
  OperationOffer& offer = open_[number];
  offer.epoch = stamp.epoch;
  const uint64_t bytes = offer.count * ElementBytes(offer.type);
  if (bytes > 0) {
    auto run = std::make_unique<Operation>(offer, static_cast<Slot>(number % options_.slots), LayoutFor(stamp, bytes), &actions_);
    run->Begin();
    runs_[number] = std::move(run);
  }
  EndIfDone(number);
}

// An operation of no elements is done when its turn has come.
void MemberExecutor::EndIfDone(OperationId number) {
  const auto run = runs_.find(number);
  if (run != runs_.end() && !run->second->finished()) return;
  if (run != runs_.end()) runs_.erase(run);
  open_.erase(number);
  MemberAction done;
  done.kind = MemberAction::Kind::kDone;
  done.operation = number;
  actions_.push_back(std::move(done));
  if (!open_.empty()) book_.ForgetBefore(open_.begin()->first);
}

// The oldest operation in the slot: the only one, as others wait for it.
Operation* MemberExecutor::Of(Slot slot) {
  for (const auto& [number, run] : runs_)
    if (run->slot() == slot) return run.get();
  return nullptr;
}

void MemberExecutor::OfferReceived(const FlowName& flow, std::span<const std::byte> bytes, Nanos now) {
  if (failed()) return;
  last_event_ = now;
  Operation* const run = Of(flow.slot);
  R2CC_CHECK(run != nullptr);
  const std::string differs = run->OfferReceived(flow, bytes);
  if (differs.empty()) return;
  Fail(MemberName(flow.peer) + " and " + MemberName(options_.member) + " do not do the same in operation " +
           std::to_string(run->offer().operation) + ": " + differs,
       true);
}

void MemberExecutor::SendDone(const FlowName& flow, Nanos now) {
  if (failed()) return;
  last_event_ = now;
  Operation* const run = Of(flow.slot);
  if (run == nullptr && IsActive(CollNetMutant::kDoneWhenSent)) return;
  R2CC_CHECK(run != nullptr);
  run->SendDone(flow);
  EndIfDone(run->offer().operation);
  BeginOperations();
}

void MemberExecutor::ReceiveDone(const FlowName& flow, Nanos now) {
  if (failed()) return;
  last_event_ = now;
  Operation* const run = Of(flow.slot);
  R2CC_CHECK(run != nullptr);
  run->ReceiveDone(flow);
  EndIfDone(run->offer().operation);
  BeginOperations();
}

void MemberExecutor::ReduceDone(OperationId operation, uint32_t block, Nanos now) {
  if (failed()) return;
  last_event_ = now;
  const auto run = runs_.find(operation);
  R2CC_CHECK(run != runs_.end());
  run->second->ReduceDone(block);
  EndIfDone(operation);
  BeginOperations();
}

// ---- members ----

void MemberExecutor::MessageReceived(uint32_t peer, std::span<const std::byte> bytes, Nanos now) {
  if (failed()) return;
  R2CC_CHECK(peer < options_.members && peer != options_.member);
  std::string why;
  const std::optional<Message> message = Decode(bytes, options_.members, &why);
  if (!message.has_value()) return Fail("a message of " + MemberName(peer) + ": " + why, true);
  // Who has given up moves nothing any more, and may be the only one between two others.
  if (const auto* const failure = std::get_if<GroupFailure>(&*message)) return Fail(failure->text, states_.any_was_unreachable());
  if (const auto* const stamp = std::get_if<Stamp>(&*message)) {
    if (options_.member == 0) return Fail(MemberName(peer) + " stamps operations, which only member 0 may", true);
    const OperationId before = book_.through();
    if (const std::string wrong = book_.Add(*stamp); !wrong.empty()) return Fail(MemberName(peer) + " stamps " + wrong, true);
    if (book_.through() == before) return;  // told again
    last_event_ = now;                      // a state is none: a capacity that flaps must not keep a deadline from coming
    Forward(*stamp);
    return BeginOperations();
  }
  const auto& state = std::get<MemberState>(*message);
  if (state.member != peer && options_.member != 0)
    return Fail(MemberName(peer) + " reports the state of " + MemberName(state.member) + " to " + MemberName(options_.member), true);
  if (state.member != options_.member && states_.Learn(state)) StateChanged(state);
  BeginOperations();
}

void MemberExecutor::PeerFailed(uint32_t peer, const std::string& why) {
  if (!failed()) Fail(MemberName(options_.member) + " has lost " + MemberName(peer) + ": " + why, true);
}

void MemberExecutor::GiveUp(const std::string& why) {
  if (!failed()) Fail(why, true);
}

void MemberExecutor::Tick(Nanos now) {
  if (failed() || options_.deadline == 0 || open_.empty() || now - last_event_ < options_.deadline) return;
  const auto& [number, offer] = *open_.begin();
  const auto run = runs_.find(number);
  Fail("operation " + std::to_string(number) + " made no progress for " + std::to_string(options_.deadline / kNanosPerMs) +
           " ms: " + (run == runs_.end() ? "member 0 has not called it" : run->second->Waiting()),
       true);
}

// Whom this member has no path to hears it from others.
void MemberExecutor::Send(uint32_t peer, const Message& message) {
  if (std::binary_search(own_.unreachable.begin(), own_.unreachable.end(), peer)) return;
  MemberAction notify;
  notify.kind = MemberAction::Kind::kMessage;
  notify.peer = peer;
  notify.message = Encode(message);
  actions_.push_back(std::move(notify));
}

void MemberExecutor::Fail(const std::string& why, bool notify) {
  error_ = why;
  if (notify)
    for (uint32_t peer = 0; peer < options_.members; ++peer)
      if (peer != options_.member) Send(peer, GroupFailure{why});
  MemberAction fail;
  fail.kind = MemberAction::Kind::kFail;
  fail.text = why;
  actions_.push_back(std::move(fail));
}

}  // namespace r2cc::collnet
