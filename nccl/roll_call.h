// RollCalls over sockets: the note in a communicator's ID leads to the process that made it.
#ifndef R2CC_NCCL_ROLL_CALL_H_
#define R2CC_NCCL_ROLL_CALL_H_

#include <memory>
#include <optional>

#include "base/core/mutex.h"
#include "nccl/roll.h"
#include "nccl/seams.h"
#include "nccl/unique_id.h"

namespace r2cc::nccl {

class SocketRollCall final : public RollCall {
 public:
  // `limit`: how long the process that decides may be unreachable.
  SocketRollCall(const RollAddress& address, const Attendee& self, Nanos limit) : address_(address), self_(self), limit_(limit) {}

  // MAY BLOCK for four seconds: two to connect, two for the answer. False: there was no connection.
  bool CheckIn();
  void Ask() override { Exchange(false); }
  Verdict Await() override;
  void End() override;

  const RollAddress& address() const { return address_; }

 private:
  enum class Exchanged { kNothing, kSent, kAnswered };
  // Keeps a verdict that is final.
  Exchanged Exchange(bool wants);

  const RollAddress address_;
  const Attendee self_;
  const Nanos limit_;
  Mutex mutex_;
  CondVar changed_;
  std::optional<Verdict> decided_ R2CC_GUARDED_BY(mutex_);
  bool ended_ R2CC_GUARDED_BY(mutex_) = false;
};

class SocketRollCalls final : public RollCalls {
 public:
  SocketRollCalls(uint32_t every, uint64_t release, Nanos limit) : every_(every), release_(release), limit_(limit) {}
  void Note(UniqueId* id) override;
  std::shared_ptr<RollCall> CheckIn(const UniqueId& id, int ranks, int rank) override;
  std::shared_ptr<RollCall> CheckInSplit(const RollCall& parent, uint32_t number, int color, int ranks, int rank) override;

 private:
  std::shared_ptr<RollCall> Begin(const RollAddress& address, int ranks, int rank);

  const uint32_t every_;
  const uint64_t release_;
  const Nanos limit_;
  Mutex mutex_;
  std::optional<RollAddress> server_ R2CC_GUARDED_BY(mutex_);  // of this process
  bool has_failed_ R2CC_GUARDED_BY(mutex_) = false;
};

}  // namespace r2cc::nccl

#endif  // R2CC_NCCL_ROLL_CALL_H_
