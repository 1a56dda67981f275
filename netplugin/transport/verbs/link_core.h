// Holds what both ends of a verbs link have in common: its queue pair from creation to end, its control channel, and its close.
//
// Grants and acknowledgements go as records into the other end's memory, where they cost it neither a receive nor a completion. They go as
// frames when its ring is full, or when a record cannot carry them. A record may overtake a frame; if it continues that frame, it waits for
// it.
//
// The queue pair is made, joined and fenced in the device's control thread, whose jobs own all that they need: the link may be gone by
// then. Only the holder of the lock touches anything else.
#ifndef R2CC_NETPLUGIN_TRANSPORT_VERBS_LINK_CORE_H_
#define R2CC_NETPLUGIN_TRANSPORT_VERBS_LINK_CORE_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/core/mutex.h"
#include "netplugin/config/log.h"
#include "netplugin/transport/links.h"
#include "netplugin/transport/verbs/device.h"
#include "netplugin/transport/verbs/grant_ring.h"
#include "netplugin/transport/verbs/queue_pair.h"
#include "netplugin/transport/verbs/record_channel.h"
#include "netplugin/transport/verbs/region_table.h"
#include "netplugin/transport/verbs/traffic_class.h"

namespace r2cc::net::verbs {

// Shared by the links of a process; it outlives them.
struct VerbsShared {
  const Clock* clock = nullptr;
  std::function<uint32_t()> random;
  std::function<void(LogLevel, const std::string&)> log;
  // The keys of a rail's regions are void: register them again, without a lock of a peer. Any thread.
  std::function<void(uint16_t rail)> keys_revoked;
  SiteSettings site;
  TrafficClass traffic_class;
  std::atomic<uint32_t> queue_pairs_made{0};  // how many queue pairs were made
  RegionTable regions;
  struct RailDevice {
    std::shared_ptr<Domain> domain;  // everything of the rail is made in it; null: it has no device now
    uint8_t port = 1;
    GidWish gid;
    Device* device() const { return domain == nullptr ? nullptr : domain->device().get(); }
  };
  Mutex mutex;
  std::vector<RailDevice> rails R2CC_GUARDED_BY(mutex);

  RailDevice Of(uint16_t rail) {
    const MutexLock lock(mutex);
    return rail < rails.size() ? rails[rail] : RailDevice{};
  }
  // The second line of a fence: nothing in the domain of the rail reaches a region any more. The rail gets a new domain, and what the job
  // has registered is registered there. 0 or an errno. In a control thread, MAY BLOCK.
  int Revoke(uint16_t rail, const std::shared_ptr<Domain>& domain);
};

// What one incarnation of one end of a link passes to the next. Any thread.
struct LinkHistory {
  // The last queue pair's. The next one gets another number, so that late packets in the fabric find no queue pair.
  std::atomic<uint32_t> number{0};
  // The other host did not answer when the queue pair was joined.
  std::atomic<bool> silent{false};
  // The line that both ends' MTU differ is logged.
  std::atomic<bool> mtu_logged{false};
};

class LinkCore final : public ControlChannel {
 public:
  // The link that has this core.
  class User {
   public:
    virtual ~User() = default;
    virtual void Created() = 0;
    virtual void Joined() = 0;
    virtual void FrameReceived(const Frame& frame) = 0;
    // See SendOwner::IsOpen().
    virtual bool IsOpen(FlowId flow) = 0;
    // There is credit again.
    virtual void Credited() = 0;
    // False: what came breaks the protocol.
    virtual bool Mark(uint32_t immediate, uint32_t bytes) = 0;
    virtual void Retired(uint64_t through) = 0;
    virtual void ProofCame(uint32_t crc) = 0;
  };

  // kReceives: the other end's data is placed in memory of the job.
  enum class End : uint8_t { kSends, kReceives };
  LinkCore(VerbsShared* shared, const SessionKey& key, const LinkName& name, End end, std::shared_ptr<LinkHistory> history,
           LinkOwner* owner, User* user);
  ~LinkCore() override;

  // Created() or trouble follows; then Join(), and Joined() or trouble.
  void Create();
  void Join(const Offer& remote);
  // The other end has its queue pair ready: frames may be sent.
  void OtherIsReady() { other_ready_ = true; }
  // As SendLink::Close(), but never done at once.
  bool Close();

  // Null: not created yet, or closed.
  QueuePair* pair() const { return state_->closed.load() ? nullptr : ready_ ? state_->pair.get() : nullptr; }
  bool joined() const { return joined_ != 0; }
  const VerbsShared::RailDevice& rail() const { return rail_; }
  void Trouble(plan::EvidenceCause cause);
  void SendProof(uint32_t crc);
  // Handles what has completed, and sends what waits.
  void Look();

  // ControlChannel:
  void Queue(const Frame& frame) override;
  bool Flush() override;
  bool flushed() const override { return out_.empty() && records_out_.empty(); }
  void HalfClose() override {}
  void Poll() override { Look(); }

 private:
  // Shared by the control thread and the link. `core` is read and set with the peer's lock.
  struct State {
    std::unique_ptr<QueuePair> pair;
    std::atomic<bool> closed{false};
    std::atomic<int> opening{0};  // jobs that make or join the pair; the closer waits for them
    LinkCore* core = nullptr;
  };
  struct Control {
    uint8_t kind = 0;
    std::vector<uint8_t> bytes;
  };
  // In the control thread: calls `what` with the lock if the link is still alive.
  static void CallAlive(const std::shared_ptr<State>& state, LinkOwner* owner, const std::function<void(LinkCore*)>& what);
  // The options of a queue pair of the rail as it is now.
  QueuePairOptions Options() const;
  void OnControl(uint8_t kind, std::span<const uint8_t> bytes);
  void ReadRecords();
  // How many more records can be queued.
  size_t RecordRoom() const;
  // Frames wait, and the device has reported no completion for longer than its retries take.
  bool IsSilent(const QueuePair& pair);
  // Writes all that is queued, as far as the other end takes it. 0 or an errno.
  int WriteRecords();

  VerbsShared* const shared_;
  const SessionKey key_;
  const LinkName name_;
  const End end_;
  const std::shared_ptr<LinkHistory> history_;
  LinkOwner* const owner_;
  User* const user_;
  const VerbsShared::RailDevice rail_;
  const std::shared_ptr<State> state_ = std::make_shared<State>();
  Device::Token listening_ = 0;
  Nanos joined_ = 0;  // when; 0: not yet
  bool ready_ = false, other_ready_ = false, broken_ = false;
  bool repeats_wait_ = false;
  std::deque<Control> out_;
  Nanos silent_since_ = 0;   // since when frames wait and nothing completes; 0: none wait
  uint64_t silent_at_ = 0;   // what had completed by then
  std::vector<uint8_t> in_;  // parts of a frame
  // Carries grants and acknowledgements, while the other end's ring takes them. Nothing: the queue pair is not created yet.
  std::optional<RecordChannel> records_;
  GrantWriter writer_;
  GrantReader reader_;
  std::vector<Record> records_out_;
};

}  // namespace r2cc::net::verbs

#endif  // R2CC_NETPLUGIN_TRANSPORT_VERBS_LINK_CORE_H_
