// Owns one queue pair, for one incarnation of a link, with all that ends with it: its completion queue, the memory that the other end may
// write, slots for frames. It has a completion queue of its own, so that the device's control thread can drain it while other links are
// polled, and so that a queue that breaks ends only one link.
//
// Create(), Join(), and the fence run in the device's control thread. The holder of the lock makes all other calls until the link is
// closed, and the control thread from then on. Nothing throws; a call that fails returns an errno.
#ifndef R2CC_NETPLUGIN_TRANSPORT_VERBS_QUEUE_PAIR_H_
#define R2CC_NETPLUGIN_TRANSPORT_VERBS_QUEUE_PAIR_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "netplugin/transport/verbs/device.h"
#include "netplugin/transport/verbs/fence.h"
#include "netplugin/transport/verbs/offer.h"
#include "netplugin/transport/verbs/site_settings.h"
#include "netplugin/transport/verbs/tail.h"

namespace r2cc::net::verbs {

// Posted at all times; each holds a frame. 128 KiB a link.
constexpr uint32_t kReceives = 128;
constexpr uint32_t kFrameSlotBytes = 1024;
// Size of the send queue. More than the credit, because a chunk may take two.
constexpr uint32_t kSends = 256;
// Frames in flight.
constexpr uint32_t kFrameSlots = 32;
// Tail records by ticket, 64 KiB a link: 64 flows do not collide. A flow that collides waits for the other one's message.
constexpr uint32_t kTailSlots = 4096;
constexpr uint32_t kQueuePairProofBytes = 4096;
// Slots of the memory into which the other end writes records, each of kRecordPlaceBytes: see record_channel.h.
constexpr uint32_t kRecordPlaces = 129;
constexpr size_t kRecordPlaceBytes = 64;

struct QueuePairOptions {
  uint32_t number = 0;  // unique among the queue pairs of the process, so that late completions of another one are recognised
  uint8_t port = 1;
  GidWish gid;
  uint32_t psn = 0;  // random, 24 bits
  SiteSettings site;
};

// What a completion was for.
enum class WorkKind : uint8_t { kReceive = 1, kSend, kFence };

class QueuePair {
 public:
  QueuePair(std::shared_ptr<Domain> domain, const QueuePairOptions& options)
      : domain_(std::move(domain)), device_(domain_->device().get()), options_(options) {}
  // Releases what is left; what the device does not give back stays with it for good.
  ~QueuePair();
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;

  // ---- the control thread ----

  // Makes it in INIT, with all receives posted, and its offer, from the port's present state. On failure false, and one line in `*error`.
  bool Create(std::string* error);
  const Offer& offer() const { return offer_; }
  // Joins it to the other end, ready to send.
  bool Join(const Offer& remote, std::string* error);
  // Something may be placed through it: Join() was called. A pair that was never joined needs no fence.
  bool may_place() const { return may_place_; }
  // The fence of this queue pair, which destroys it; see Fence::Calls for the second line.
  std::unique_ptr<Fence> NewFence(std::function<int()> second_line);

  // ---- the lock holder ----

  QueuePairId id() const { return info_.id; }
  CompletionQueueId completions() const { return queue_; }
  // Readable once something has completed since Arm(); -1: it has no such descriptor.
  int completion_fd() const { return channel_fd_; }
  // Only Poll() shows what completed before: poll once more after this.
  int Arm();
  const Offer& remote() const { return remote_; }
  // The packet size once it is joined: the smaller of both ends' MTU.
  uint32_t mtu_bytes() const { return std::min(offer_.mtu_bytes, remote_.mtu_bytes); }
  Device* device() const { return device_; }

  // How many more receives of the other end may be used up.
  uint32_t credit() const { return credit_through_ - used_; }
  // The other end has posted `receives` receives in total. A count that is older, or more than there can be, is ignored.
  void Credit(uint32_t receives) {
    if (receives - credit_through_ <= kReceives) credit_through_ = receives;
  }
  // The total of this end's receives, which the caller now sends to the other end; and how many the other end does not know of.
  uint32_t AnnounceReceives() { return announced_ = received_; }
  uint32_t unannounced_receives() const { return received_ - announced_; }
  // Free entries of the send queue. An unsignaled request keeps its entry until something later has completed.
  uint32_t room() const { return static_cast<uint32_t>(kSends - (posted_ - retired_)); }
  // A control message: at most kFrameSlotBytes with its header of kControlHeaderBytes. False: no room or credit now.
  bool CanSendControl() const { return credit() > 0 && room() > 1 && controls_out_ < kFrameSlots; }
  int SendControl(uint8_t kind, std::span<const uint8_t> bytes);
  // Posts writes, in one list; `uses` of them consume a receive of the other end. `signaled`: their completion is reported. Otherwise it
  // may show when something later has completed, or not at all. 0 or an errno.
  int Write(std::span<SendRequest> requests, uint32_t uses, bool signaled);

  struct Event {
    enum class Kind {
      kControl,  // `bytes` came, of `control_kind`
      kMark,     // an immediate came
      kRetired,  // all sends through `through` are complete
      kFailed,   // `status`
    };
    Kind kind = Kind::kFailed;
    uint8_t control_kind = 0;
    std::span<const uint8_t> bytes{};  // until the next call
    uint32_t immediate = 0;
    uint32_t immediate_bytes = 0;
    uint64_t through = 0;
    Status status = Status::kSuccess;
    uint32_t vendor_error = 0;
  };
  // Calls `report` for each event; stops when it returns false. False: the queue or the device is broken.
  bool Poll(const std::function<bool(const Event&)>& report);
  // Sequence numbers: of the last request that was posted, and of the last that is known to be complete.
  uint64_t posted() const { return posted_; }
  uint64_t retired() const { return retired_; }
  // The device has to report the completion of a request, and has not.
  bool awaits() const { return !signaled_.empty(); }

  // Memory that the other end has written: records by slot, the tail record of a ticket, the data check.
  std::span<const std::byte, kRecordPlaceBytes> RecordAt(uint32_t place) const;
  RemoteMemory RemoteRecord(uint32_t place) const;
  std::span<const std::byte, kTailBytes> TailOf(uint32_t ticket) const;
  std::span<const std::byte> proof() const { return memory().subspan(kProofAt, kQueuePairProofBytes); }
  RemoteMemory RemoteTail(uint32_t ticket) const;
  // The data check to send.
  std::span<std::byte> own_proof() const { return memory().subspan(kProofAt, kQueuePairProofBytes); }
  uint32_t local_key() const { return region_.local_key; }

 private:
  static constexpr size_t kReceivesAt = 0;
  static constexpr size_t kFramesAt = kReceivesAt + size_t{kReceives} * kFrameSlotBytes;
  static constexpr size_t kTailsAt = kFramesAt + size_t{kFrameSlots} * kFrameSlotBytes;
  static constexpr size_t kProofAt = kTailsAt + size_t{kTailSlots} * kTailBytes;
  // Each in a cache line of its own, so that it arrives whole.
  static constexpr size_t kRecordsAt = kProofAt + kQueuePairProofBytes;
  static_assert(kRecordsAt % kRecordPlaceBytes == 0);
  // Whole pages: memory that the device may write shares no page with anything else.
  static constexpr size_t kPageBytes = 4096;
  static constexpr size_t kMemoryBytes = (kRecordsAt + kRecordPlaces * kRecordPlaceBytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };

  std::span<std::byte> memory() const { return {memory_.get(), kMemoryBytes}; }
  uint64_t WorkId(WorkKind kind, uint32_t index) const {
    return uint64_t{options_.number} << 32 | uint64_t{static_cast<uint8_t>(kind)} << 24 | (index & 0xffffff);
  }
  // The name of a send, in its wr_id. Far fewer are outstanding than there are names.
  static uint32_t NameOf(uint64_t sequence) { return static_cast<uint32_t>(sequence & 0xffffff); }
  int PostReceives(std::span<const uint32_t> slots);
  bool Handle(const Completion& completion, const std::function<bool(const Event&)>& report);
  // Reposts a receive after its bytes were read.
  int Reuse(uint32_t slot);

  bool Make(std::string* error);

  const std::shared_ptr<Domain> domain_;
  Device* const device_;
  const QueuePairOptions options_;
  CompletionChannelId channel_{};
  int channel_fd_ = -1;
  CompletionQueueId queue_{};
  QueuePairInfo info_;
  std::unique_ptr<std::byte, Free> memory_;
  MemoryRegion region_;
  Offer offer_, remote_;
  GidEntry gid_;
  bool may_place_ = false, fenced_ = false;

  uint32_t received_ = 0;        // receives posted, in all
  uint32_t announced_ = 0;       // the other end knows of these
  uint64_t newest_receive_ = 0;  // wr_id
  uint32_t credit_through_ = 0;  // receives that the other end has posted, in all
  uint32_t used_ = 0;            // of them
  std::vector<uint32_t> to_post_;

  uint64_t posted_ = 0, retired_ = 0;
  size_t unsignaled_ = 0;          // since the last signaled one
  std::deque<uint64_t> signaled_;  // sequences of requests that complete
  std::deque<uint64_t> controls_;  // sequence numbers of control messages
  uint32_t controls_out_ = 0;
  uint32_t next_slot_ = 0;
};

}  // namespace r2cc::net::verbs

#endif  // R2CC_NETPLUGIN_TRANSPORT_VERBS_QUEUE_PAIR_H_
