// Drives one direction of one connection as NCCL's proxy does: eight slots of one slice, at most four requests in flight, test() only on
// the oldest. Memory that the plugin must not touch any more is filled with a guard pattern: a send slot after its request is done (a
// plugin that still reads it sends garbage, which the data check finds), a receive slot after its data was used (checked just before the
// slot is posted again).
#ifndef R2CC_TOOLS_PERF_FLOW_H_
#define R2CC_TOOLS_PERF_FLOW_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "tools/perf/net.h"
#include "tools/perf/status.h"
#include "tools/perf/trace.h"

namespace r2cc::perf {

constexpr int kSlots = 8;
constexpr int kInFlightMax = 4;
constexpr size_t kFlowSlotBytes = 1 << 20;

// The part that both directions share. Progress thread only, except where noted.
class Flow {
 public:
  Flow(Net* net, Trace* trace, bool slot_checks, int rank, int channel, int peer, bool sends);
  ~Flow();
  Flow(const Flow&) = delete;
  Flow& operator=(const Flow&) = delete;

  // The service thread sets these before the progress thread starts.
  void* comm = nullptr;
  void* mhandle = nullptr;
  void* memory() { return memory_; }
  static constexpr size_t kMemoryBytes = kSlots * kFlowSlotBytes;

  int channel() const { return channel_; }
  int peer() const { return peer_; }
  const std::string& name() const { return name_; }
  bool outstanding() const { return posted_ > completed_; }
  // Since when nothing has completed although a request was outstanding.
  int64_t waits_since_ns() const { return waits_since_ns_; }
  // "send to rank 2 on channel 0 (message 17, 4 requests outstanding)".
  std::string Describe() const;
  // Writes the trace's row of a flow that ends with a request outstanding.
  void TraceIfOpen(int64_t now_ns);

 protected:
  uint8_t* Slot(int64_t message) { return memory_ + message % kSlots * kFlowSlotBytes; }
  void NotePosted();
  void NoteCompleted(int64_t bytes);
  Status CallFailed(const char* call, abi::Result result) const;

  Net* const net_;
  Trace* const trace_;
  const bool slot_checks_;
  const bool sends_;
  int64_t posted_ = 0;     // messages given to the plugin
  int64_t completed_ = 0;  // messages that it has reported done
  std::array<void*, kSlots> requests_{};

 private:
  const int channel_;
  const int peer_;
  const std::string name_;
  int64_t waits_since_ns_ = 0;
  uint8_t* memory_;
};

class SendFlow : public Flow {
 public:
  SendFlow(Net* net, Trace* trace, bool slot_checks, int rank, int channel, int peer);

  bool HasRoom() const { return filled_ - completed_ < kSlots; }
  // The next slot to write; Commit() marks it as written. Needs HasRoom().
  float* NextSlot() { return reinterpret_cast<float*>(Slot(filled_)); }
  void Commit(size_t bytes) { sizes_[filled_++ % kSlots] = bytes; }

  // Posts what is filled and takes completions; sets *moved if anything happened.
  Status Progress(bool* moved);
  bool idle() const { return completed_ == filled_; }

 private:
  const int tag_;
  int64_t filled_ = 0;
  std::array<size_t, kSlots> sizes_{};
};

class ReceiveFlow : public Flow {
 public:
  ReceiveFlow(Net* net, Trace* trace, bool slot_checks, int rank, int channel, int peer);

  // `messages` more messages will come; receives are posted ahead for no more than that.
  void Expect(int64_t messages) { expected_ += messages; }
  Status Progress(bool* moved);

  bool HasData() const { return completed_ > consumed_; }
  // The oldest unread message. Needs HasData().
  const float* Data() { return reinterpret_cast<const float*>(Slot(consumed_)); }
  size_t DataBytes() const { return sizes_[consumed_ % kSlots]; }
  void Consume();

  // Checks the whole of every slot that is not posted; for moments without traffic.
  void CheckAllSlots();
  // Messages whose slot was found changed after the plugin had reported it done.
  int64_t late_writes() const { return late_writes_; }

 private:
  void CheckSlot(int64_t message, size_t bytes);

  int64_t expected_ = 0;
  int64_t consumed_ = 0;
  int64_t late_writes_ = 0;
  std::array<size_t, kSlots> sizes_{};
  std::array<size_t, kSlots> guarded_{};  // the longest message of each slot since CheckAllSlots: the place of a late write
};

}  // namespace r2cc::perf

#endif  // R2CC_TOOLS_PERF_FLOW_H_
