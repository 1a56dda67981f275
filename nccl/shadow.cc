#include "nccl/shadow.h"

#include <cstdio>
#include <span>
#include <utility>

#include "nccl/mutant.h"

namespace r2cc::nccl {
namespace {

constexpr int kOwnOperators = 5;  // sum, product, maximum, minimum, average; others belong to one communicator

bool Went(Result result) { return result == Result::kSuccess || result == Result::kInProgress; }

}  // namespace

uint64_t BytesOf(DataType type, size_t count) {
  switch (type) {
    case DataType::kInt32:
    case DataType::kUint32:
    case DataType::kFloat32: return count * 4;
    case DataType::kInt64:
    case DataType::kUint64:
    case DataType::kFloat64: return count * 8;
    case DataType::kFloat16:
    case DataType::kBfloat16: return count * 2;
    default: return count;
  }
}

Shadow::Shadow(const Parts& parts, Comm parent, uint32_t number, std::shared_ptr<RollCall> roll, NoRoll no_roll)
    : parts_(parts), parent_(parent), number_(number), roll_(std::move(roll)), no_roll_(no_roll) {
  is_alone_ = parts_.nccl->Count(parent_, &ranks_) != Result::kSuccess || parts_.nccl->Rank(parent_, &rank_) != Result::kSuccess ||
              ranks_ < kRanksLeast || rank_ < 0 || rank_ >= ranks_;
}

Shadow::~Shadow() {
  if (leaves_memory_) return;
  if (words_ != nullptr) parts_.cuda->FreeWords(words_);
  if (vector_done_ != nullptr) parts_.cuda->Free(vector_done_);
  if (order_ != nullptr) parts_.cuda->Free(order_);
}

Comm Shadow::child() {
  const MutexLock lock(mutex_);
  return child_;
}

bool Shadow::HasEnded() {
  const MutexLock lock(mutex_);
  return ended_ && !IsActive(SeatMutant::kGoesOnAfterAbort);
}

void Shadow::Log(const std::string& line) {
  if (rank_ == 0) parts_.log("R2CC: AllReduce of communicator " + std::to_string(number_) + " " + line);
}

void Shadow::LogLate() {
  parts_.log("R2CC: AllReduce of communicator " + std::to_string(number_) + ", rank " + std::to_string(rank_) + ": at call " +
             std::to_string(calls_) + " the agreement of call " + std::to_string(calls_ - parts_.every) +
             " has not ended. The job hangs until all ranks take part: one has stopped, or has made fewer AllReduces");
}

Result Shadow::CallRoll() {
  const std::string stays = "R2CC: AllReduce of communicator " + std::to_string(number_) + " stays NCCL's own: ";
  if (roll_ == nullptr) {
    is_alone_ = true;
    // Rank 0 has mostly made the ID, so it may be the one that lacks the library.
    if (rank_ < 2 && no_roll_ == NoRoll::kNoMaker)
      parts_.log(stays + "the process that made its ID has no libr2cc-nccl.so with R2CC_SEAT=1, or cannot be reached");
    if (rank_ == 0 && no_roll_ == NoRoll::kNotFollowed)
      parts_.log(stays + "it was begun neither by ncclCommInitRank nor by a blocking ncclCommSplit outside of a group");
    return Result::kSuccess;
  }
  const Verdict verdict = IsActive(SeatMutant::kCallsNoRoll) ? Verdict{Verdict::Kind::kAll} : roll_->Await();
  if (HasEnded()) return Result::kInternalError;
  const std::string rank = "rank " + std::to_string(verdict.rank);
  switch (verdict.kind) {
    case Verdict::Kind::kAll: is_complete_ = true; return Result::kSuccess;
    case Verdict::Kind::kNone:
      if (!IsActive(SeatMutant::kGoesOnWithoutVerdict)) break;
      is_alone_ = true;
      return Result::kSuccess;
    case Verdict::Kind::kMissing:
    case Verdict::Kind::kDiffers:
      is_complete_ = verdict.kind == Verdict::Kind::kDiffers && IsActive(SeatMutant::kIgnoresDifferences);
      is_alone_ = !is_complete_;
      if (static_cast<uint32_t>(rank_) == verdict.speaker)
        parts_.log(stays + rank +
                   (verdict.kind == Verdict::Kind::kMissing ? " has no libr2cc-nccl.so with R2CC_SEAT=1"
                                                            : " has another release of libr2cc-nccl.so, or another R2CC_SEAT_EVERY"));
      return Result::kSuccess;
    case Verdict::Kind::kNoRoom:
      is_alone_ = true;
      if (rank_ == 0) parts_.log(stays + "the process that made its ID has decided for too many communicators");
      return Result::kSuccess;
  }
  // The others may have learned that all are there, and wait for this rank.
  parts_.log("R2CC: communicator " + std::to_string(number_) + ", rank " + std::to_string(rank_) +
             ": the process that made the communicator's ID does not answer; AllReduce returns an error");
  return Result::kRemoteError;
}

bool Shadow::IsCounted(const AllReduceCall& call, bool in_group) {
  if (is_alone_ || machine_.is_off()) return false;
  if (in_group && !IsActive(SeatMutant::kSplitsInGroup)) return false;
  if ((call.operation < 0 || call.operation >= kOwnOperators) && !IsActive(SeatMutant::kRedirectsCustomOperators)) return false;
  return IsActive(SeatMutant::kCountsCaptured) || !parts_.cuda->IsCaptured(call.stream);
}

Result Shadow::AllReduce(const AllReduceCall& call, bool in_group) {
  Comm comm = parent_;
  bool by_collnet = false;
  if (IsCounted(call, in_group)) {
    if (++calls_ % parts_.every == 0) {
      const Result result = Boundary(call.stream);
      if (!Went(result)) return result;
    }
    if (machine_.is_switched() && BytesOf(call.type, call.count) >= machine_.bytes_min()) {
      by_collnet = machine_.wanted().way == plan::Way::kCollNet;
      // Abort() may have taken it; the parent reports that, too.
      if (const Comm used = child(); used != nullptr && !by_collnet) comm = used;
    }
  }
  Before(call.stream);
  Result result = by_collnet ? ByCollNet(call) : parts_.nccl->AllReduce(call, comm);
  if (in_group) return result;
  if (result == Result::kInProgress && machine_.uses_child()) result = parts_.nccl->Settle(comm);
  After(call.stream);
  return result;
}

Result Shadow::ByCollNet(const AllReduceCall& call) {
  // The other ranks use CollNet for this call, so without the tuner there is no way to take part.
  if (!IsActive(SeatMutant::kSetsNoWay) && !parts_.rails->SetWay(tuner_number_, plan::Way::kCollNet)) {
    parts_.log("R2CC: AllReduce of communicator " + std::to_string(number_) + ", rank " + std::to_string(rank_) +
               ": NCCL has closed its tuner, so this rank cannot use CollNet as the others do: it returns an error");
    return Result::kInternalError;
  }
  Result result = parts_.nccl->AllReduce(call, parent_);
  // NCCL chooses before the call is under way.
  if (result == Result::kInProgress && !IsActive(SeatMutant::kDoesNotSettle)) result = parts_.nccl->Settle(parent_);
  if (!IsActive(SeatMutant::kKeepsWay)) parts_.rails->SetWay(tuner_number_, plan::Way::kUsual);
  return result;
}

void Shadow::Before(Stream stream) {
  if (!ordered_ || stream == last_ || IsActive(SeatMutant::kForgetsOrder) || parts_.cuda->IsCaptured(stream)) return;
  parts_.cuda->Wait(stream, order_);
}

void Shadow::After(Stream stream) {
  if (!machine_.uses_child()) {
    ordered_ = false;
    return;
  }
  if (parts_.cuda->IsCaptured(stream)) return;
  ordered_ = parts_.cuda->Record(order_, stream);
  last_ = stream;
}

Result Shadow::Boundary(Stream stream) {
  if (!is_complete_)
    if (const Result result = CallRoll(); result != Result::kSuccess || !is_complete_) return result;
  Before(stream);
  const bool used = machine_.uses_child();
  if (vector_pending_) {
    const Result result = ReadVector(stream);
    if (result != Result::kSuccess || machine_.is_off()) return result;
  }
  const Result result = BeginVector(stream);
  // If both are used from now on or were until now, later work on other streams waits for this.
  if (Went(result) && (used || machine_.uses_child())) {
    ordered_ = parts_.cuda->Record(order_, stream);
    last_ = stream;
  }
  return result;
}

Result Shadow::ReadVector(Stream stream) {
  vector_pending_ = false;
  if (!IsActive(SeatMutant::kDecidesEarly) && !parts_.cuda->Finish(vector_done_, [this] { LogLate(); })) return Result::kUnhandledCudaError;
  // An abort ends the kernel, too, and what it leaves is no vector.
  if (HasEnded()) return Result::kInternalError;
  if (IsActive(SeatMutant::kDecidesFromOwnState)) {
    const Rails::State state = parts_.rails->Look();
    uint32_t* const own = words_ + static_cast<size_t>(rank_) * kRecordWords;
    own[3] = state.kept_permille | state.rails << 16;
  }
  vector_ = Decode(std::span(words_, static_cast<size_t>(ranks_) * kRecordWords), machine_.child());
  const ShadowAction action = machine_.Step(vector_);
  if (parts_.debug && rank_ == 0) {
    std::string kept;
    for (const uint32_t permille : vector_.nodes.kept_permille) kept += " " + std::to_string(permille);
    parts_.debug("R2CC: communicator " + std::to_string(number_) + ", call " + std::to_string(calls_) + ": nodes keep" + kept +
                 " permille, state " + std::to_string(static_cast<int>(machine_.state())));
  }
  switch (action) {
    case ShadowAction::kNothing: break;
    case ShadowAction::kMake: Make(stream); break;
    case ShadowAction::kUse:
      Log(Describe(vector_));
      Report(machine_.wanted());
      break;
    case ShadowAction::kLeave:
      Log("is NCCL's own again since call " + std::to_string(calls_) + ": nothing else gains enough now");
      Report({});
      break;
    case ShadowAction::kDrop:
      // Within one or two nodes there is nothing to gain, and nothing to log.
      if (machine_.is_off() && !vector_.is_small) Log("stays NCCL's own: " + vector_.problem);
      if (machine_.state() == ShadowState::kRefused) Log("stays NCCL's own for now: a rank could not make the second communicator");
      Drop();
      break;
  }
  return HasEnded() ? Result::kInternalError : Result::kSuccess;
}

void Shadow::Report(const plan::WayDecision& decision) {
  if (rank_ == 0) parts_.rails->Report(number_, calls_, decision);
}

std::string Shadow::Describe(const Vector& vector) const {
  const plan::WayDecision& wanted = machine_.wanted();
  std::string losers;
  for (size_t node = 0; node < vector.nodes.kept_permille.size(); ++node)
    if (vector.nodes.kept_permille[node] < 1000) {
      size_t rank = 0;
      while (vector.node_of[rank] != node) ++rank;
      losers += (losers.empty() ? "" : ", ") + std::string("that of rank ") + std::to_string(rank) + " has " +
                std::to_string((vector.nodes.kept_permille[node] + 5) / 10) + " % of its rails";
    }
  char ratio[32];
  std::snprintf(ratio, sizeof(ratio), "%.2f", wanted.over_usual);
  const std::string way = wanted.way == plan::Way::kCollNet ? "uses CollNet" : "uses NCCL's tree in another order of nodes";
  return way + " since call " + std::to_string(calls_) + ", from " + std::to_string(wanted.bytes_min >> 20) + " MiB on: " + losers +
         "; expected " + ratio + " of the usual time for large vectors";
}

Result Shadow::BeginVector(Stream stream) {
  const size_t words = static_cast<size_t>(ranks_) * kRecordWords;
  // Without memory there is no way to take part, and the others would wait: that is an error as any of NCCL's for want of memory.
  if (words_ == nullptr && (words_ = parts_.cuda->AllocateWords(words)) == nullptr) return Result::kUnhandledCudaError;
  if (vector_done_ == nullptr && !parts_.cuda->MakeEvent(&vector_done_)) return Result::kUnhandledCudaError;
  if (order_ == nullptr && !parts_.cuda->MakeEvent(&order_)) return Result::kUnhandledCudaError;
  const Rails::State state = parts_.rails->Look();
  Encode({.node_key = state.node_key,
          .kept_permille = state.kept_permille,
          .rails = state.rails,
          .free_mib = static_cast<uint32_t>(std::min<uint64_t>(parts_.cuda->FreeBytes() >> 20, INT32_MAX)),
          .child = ready_for_ == machine_.child() ? ready_for_ : 0,
          .able = state.is_there,
          .node_mbps = static_cast<uint32_t>(std::min<uint64_t>(state.bytes_per_s / 125'000, UINT32_MAX - 1)),
          .offers_collnet = tuner_number_ != 0,
          .collnet_min_bytes = parts_.collnet_min_bytes},
         static_cast<uint32_t>(rank_), std::span(words_, words));
  const bool is_watched = state.offers_collnet && tuner_number_ == 0;
  if (is_watched) parts_.rails->WatchAllReduce(words * sizeof(*words_));
  Result result = parts_.nccl->AllReduce({.send = words_,
                                          .receive = words_,
                                          .count = words,
                                          .type = DataType::kUint32,
                                          .operation = static_cast<int>(abi::RedOp::kMin),
                                          .stream = stream},
                                         parent_);
  // The next call of the program is no earlier than this one's end.
  if (result == Result::kInProgress && !IsActive(SeatMutant::kDoesNotSettle)) result = parts_.nccl->Settle(parent_);
  if (is_watched) tuner_number_ = parts_.rails->WatchedCommunicator();
  if (!Went(result)) return result;
  vector_pending_ = parts_.cuda->Record(vector_done_, stream);
  return vector_pending_ ? Result::kSuccess : Result::kUnhandledCudaError;
}

void Shadow::Make(Stream stream) {
  // CollNet is the parent's: all ranks have it, as each has reported.
  if (machine_.wanted().way == plan::Way::kCollNet) {
    ready_for_ = machine_.child();
    return;
  }
  // A split wants no work of its parent under way. NCCL begins what is enqueued for a communicator after all that was enqueued for it
  // before, on any stream: so when this one is done, all is.
  if (!IsActive(SeatMutant::kSplitsWithWorkUnderWay) && (!Went(BeginVector(stream)) || !parts_.cuda->Finish(stream))) return;
  if (HasEnded()) return;
  const std::vector<uint32_t>& order = machine_.wanted().order;
  // All ranks that have a child have one of the same order, as all of them made it at the same call. One that has none, because it failed,
  // is why the others dropped theirs.
  if (child() != nullptr && child_order_ == order) {
    ready_for_ = machine_.child();
    return;
  }
  Drop();
  std::vector<uint32_t> position(order.size());
  for (uint32_t at = 0; at < order.size(); ++at) position[order[at]] = at;
  const uint32_t node = vector_.node_of[static_cast<size_t>(rank_)];
  parts_.rails->WatchForChild(static_cast<size_t>(ranks_));
  Comm made = nullptr;
  const Result result = parts_.nccl->Split(parent_, static_cast<int>(position[node]), &made);
  const bool marked = parts_.rails->MarkChild();
  if (result != Result::kSuccess) made = nullptr;
  if (made == nullptr) return;
  MutexLock lock(mutex_);
  if (ended_) {
    lock.Unlock();
    parts_.nccl->Abort(made, nullptr);
    return;
  }
  child_ = made;
  child_order_ = order;
  ready_for_ = marked ? machine_.child() : 0;
  if (IsActive(SeatMutant::kForgetsRegistration)) return;
  // NCCL wants the buffers of a call registered on all ranks or on none: a child that lacks one is no child.
  for (auto& [handle, registration] : registrations_)
    if (parts_.nccl->Register(made, registration.buffer, registration.bytes, &registration.with_child) != Result::kSuccess) {
      registration.with_child = nullptr;
      ready_for_ = 0;
    }
}

void Shadow::Drop() {
  Comm dropped = nullptr;
  {
    const MutexLock lock(mutex_);
    dropped = std::exchange(child_, nullptr);
    ready_for_ = 0;
    // NCCL forgets them with the communicator.
    for (auto& [handle, registration] : registrations_) registration.with_child = nullptr;
  }
  if (dropped != nullptr && !IsActive(SeatMutant::kLeaksChild)) parts_.nccl->Destroy(dropped);
}

Result Shadow::Register(void* buffer, size_t bytes, void** handle) {
  const Result result = parts_.nccl->Register(parent_, buffer, bytes, handle);
  if (result != Result::kSuccess || handle == nullptr || *handle == nullptr) return result;
  const MutexLock lock(mutex_);
  Registration registration{buffer, bytes, nullptr};
  if (child_ != nullptr && !IsActive(SeatMutant::kForgetsRegistration)) {
    const Result with_child = parts_.nccl->Register(child_, buffer, bytes, &registration.with_child);
    if (with_child != Result::kSuccess) {
      parts_.nccl->Deregister(parent_, std::exchange(*handle, nullptr));
      return with_child;
    }
  }
  registrations_[*handle] = registration;
  return result;
}

Result Shadow::Deregister(void* handle) {
  {
    const MutexLock lock(mutex_);
    if (const auto found = registrations_.find(handle); found != registrations_.end()) {
      if (child_ != nullptr && found->second.with_child != nullptr) parts_.nccl->Deregister(child_, found->second.with_child);
      registrations_.erase(found);
    }
  }
  return parts_.nccl->Deregister(parent_, handle);
}

Result Shadow::AsyncError(Result* error) {
  const Result result = parts_.nccl->AsyncError(parent_, error);
  if (result != Result::kSuccess || error == nullptr || *error != Result::kSuccess || IsActive(SeatMutant::kHidesChildsError))
    return result;
  const MutexLock lock(mutex_);
  return child_ == nullptr ? result : parts_.nccl->AsyncError(child_, error);
}

Comm Shadow::TakeChild() {
  if (roll_ != nullptr) roll_->End();
  const MutexLock lock(mutex_);
  ended_ = true;
  return std::exchange(child_, nullptr);
}

}  // namespace r2cc::nccl
