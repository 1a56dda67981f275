#include "nccl/interposer.h"

#include <utility>
#include <vector>

#include "nccl/mutant.h"

namespace r2cc::nccl {
namespace {

struct Noted {
  std::shared_ptr<Shadow> shadow;
  Comm comm;
  Stream stream;
};

struct Group {
  int depth = 0;
  std::vector<Noted> noted;
};

Group& OwnGroup() {
  static thread_local Group group;
  return group;
}

}  // namespace

thread_local bool Interposer::Inside::is_inside_ = false;

std::shared_ptr<Shadow> Interposer::Find(Comm comm) {
  const MutexLock lock(mutex_);
  const auto found = known_.find(comm);
  return found == known_.end() ? nullptr : found->second.shadow;
}

std::shared_ptr<Shadow> Interposer::FindOrMake(Comm comm) {
  const MutexLock lock(mutex_);
  Known& known = known_[comm];
  if (known.shadow == nullptr) known.shadow = std::make_shared<Shadow>(parts_, comm, ++made_, known.roll, known.no_roll);
  return known.shadow;
}

std::shared_ptr<Shadow> Interposer::Take(Comm comm) {
  const MutexLock lock(mutex_);
  const auto found = known_.find(comm);
  if (found == known_.end()) return nullptr;
  std::shared_ptr<Shadow> taken = std::move(found->second.shadow);
  known_.erase(found);
  return taken;
}

Result Interposer::Begun(const Comm& comm, std::shared_ptr<RollCall> roll, Result result, NoRoll no_roll) {
  if ((result != Result::kSuccess && result != Result::kInProgress) || comm == nullptr) return result;
  // In a group, and while it is in progress, other ranks may not have begun it.
  if (roll != nullptr && result == Result::kSuccess && OwnGroup().depth == 0) roll->Ask();
  const MutexLock lock(mutex_);
  known_[comm] = {.roll = std::move(roll), .no_roll = no_roll};
  return result;
}

Result Interposer::Split(Comm comm, int color, int key, Comm* child, void* config) {
  const Inside inside;
  const auto split = [&] { return parts_.nccl->SplitOff(comm, color, key, child, config); };
  if (inside.is_nested() || child == nullptr) return split();
  std::shared_ptr<RollCall> parent;
  NoRoll no_roll = NoRoll::kNotFollowed;
  uint32_t number = 0;
  {
    const MutexLock lock(mutex_);
    if (const auto found = known_.find(comm); found != known_.end()) {
      parent = found->second.roll;
      no_roll = found->second.no_roll;
      number = found->second.splits++;
    }
  }
  const Result result = split();
  int ranks = 0;
  int rank = 0;
  // While the split is in progress, or its group has not ended, it is not known how many ranks the child has.
  if (result != Result::kSuccess || *child == nullptr || OwnGroup().depth > 0 || parts_.nccl->Count(*child, &ranks) != Result::kSuccess ||
      parts_.nccl->Rank(*child, &rank) != Result::kSuccess)
    return result;
  if (parent == nullptr || ranks < kRanksLeast) return Begun(*child, nullptr, result, no_roll);
  return Begun(*child, parts_.rolls->CheckInSplit(*parent, number, color, ranks, rank), result);
}

Result Interposer::Enqueued(const std::shared_ptr<Shadow>& shadow, Comm comm, Stream stream, Result result) {
  if (shadow == nullptr) return result;
  if (OwnGroup().depth > 0) {
    OwnGroup().noted.push_back({shadow, comm, stream});
    return result;
  }
  if (result == Result::kInProgress && shadow->machine().uses_child()) result = parts_.nccl->Settle(comm);
  shadow->After(stream);
  return result;
}

Result Interposer::AllReduce(const AllReduceCall& call, Comm comm) {
  const Inside inside;
  if (inside.is_nested()) return parts_.nccl->AllReduce(call, comm);
  const bool in_group = OwnGroup().depth > 0;
  // A communicator that only ever reduces in groups needs no shadow.
  const std::shared_ptr<Shadow> shadow = in_group && !IsActive(SeatMutant::kSplitsInGroup) ? Find(comm) : FindOrMake(comm);
  if (shadow == nullptr) return parts_.nccl->AllReduce(call, comm);
  const Result result = shadow->AllReduce(call, in_group);
  if (in_group) OwnGroup().noted.push_back({shadow, comm, call.stream});
  return result;
}

Result Interposer::GroupStart() {
  const Inside inside;
  if (inside.is_nested()) return parts_.nccl->GroupStart();
  const Result result = parts_.nccl->GroupStart();
  if (result == Result::kSuccess) ++OwnGroup().depth;
  return result;
}

Result Interposer::GroupEnd() {
  const Inside inside;
  if (inside.is_nested()) return parts_.nccl->GroupEnd();
  Group& group = OwnGroup();
  if (group.depth > 0) --group.depth;
  Result result = parts_.nccl->GroupEnd();
  if (group.depth > 0) return result;
  for (const auto& [shadow, comm, stream] : std::exchange(group.noted, {})) {
    if (result == Result::kInProgress && shadow->machine().uses_child()) parts_.nccl->Settle(comm);
    shadow->After(stream);
  }
  return result;
}

Result Interposer::Register(Comm comm, void* buffer, size_t bytes, void** handle) {
  const Inside inside;
  if (inside.is_nested()) return parts_.nccl->Register(comm, buffer, bytes, handle);
  return FindOrMake(comm)->Register(buffer, bytes, handle);
}

Result Interposer::Deregister(Comm comm, void* handle) {
  const Inside inside;
  if (inside.is_nested()) return parts_.nccl->Deregister(comm, handle);
  const std::shared_ptr<Shadow> shadow = Find(comm);
  return shadow == nullptr ? parts_.nccl->Deregister(comm, handle) : shadow->Deregister(handle);
}

Result Interposer::AsyncError(Comm comm, Result* error) {
  const Inside inside;
  if (inside.is_nested()) return parts_.nccl->AsyncError(comm, error);
  const std::shared_ptr<Shadow> shadow = Find(comm);
  return shadow == nullptr ? parts_.nccl->AsyncError(comm, error) : shadow->AsyncError(error);
}

Result Interposer::Finalize(Comm comm) {
  const Inside inside;
  if (inside.is_nested()) return parts_.nccl->Finalize(comm);
  // Nothing is enqueued any more. The shadow stays until the communicator is gone.
  const std::shared_ptr<Shadow> shadow = Find(comm);
  if (shadow != nullptr)
    if (const Comm child = shadow->TakeChild(); child != nullptr && !IsActive(SeatMutant::kLeaksChild)) parts_.nccl->Destroy(child);
  return parts_.nccl->Finalize(comm);
}

Result Interposer::Destroy(Comm comm) {
  const Inside inside;
  if (inside.is_nested()) return parts_.nccl->Destroy(comm);
  const std::shared_ptr<Shadow> shadow = Take(comm);
  if (shadow == nullptr) return parts_.nccl->Destroy(comm);
  if (const Comm child = shadow->TakeChild(); child != nullptr && !IsActive(SeatMutant::kLeaksChild)) parts_.nccl->Destroy(child);
  const Result result = parts_.nccl->Destroy(comm);
  // In a group nothing has been destroyed yet.
  if (OwnGroup().depth > 0 || result != Result::kSuccess) shadow->LeaveMemory();
  return result;
}

Result Interposer::Abort(Comm comm) {
  const Inside inside;
  if (inside.is_nested()) return parts_.nccl->Abort(comm, nullptr);
  const std::shared_ptr<Shadow> shadow = Take(comm);
  if (shadow == nullptr) return parts_.nccl->Abort(comm, nullptr);
  // The thread that uses the communicator may be in the shadow, and waits for what ends only now.
  shadow->LeaveMemory();
  Comm child = shadow->TakeChild();
  if (IsActive(SeatMutant::kAbortsParentAlone)) child = nullptr;
  return parts_.nccl->Abort(comm, child);
}

Result Interposer::Revoke(Comm comm, int flags) {
  const Inside inside;
  if (inside.is_nested()) return parts_.nccl->Revoke(comm, flags);
  const std::shared_ptr<Shadow> shadow = Take(comm);
  const Comm child = shadow == nullptr ? nullptr : shadow->TakeChild();
  // A revoked communicator reduces nothing any more; a child of its own has no other use.
  if (shadow != nullptr) shadow->LeaveMemory();
  if (child != nullptr) parts_.nccl->Abort(child, nullptr);
  return parts_.nccl->Revoke(comm, flags);
}

}  // namespace r2cc::nccl
