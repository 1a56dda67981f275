// What both ends of a verbs link have in common: the life of its queue pair, its control channel, and its close.
//
// Grants and acknowledgements go as records into the other end's memory, where they cost it neither a receive nor a completion; as frames
// when its ring is full, or when they say what a record cannot. A record may overtake a frame, and waits for it if it says what follows.
//
// The queue pair is made, joined and fenced in the device's control thread, which holds what it needs by itself: a link may be gone by
// then. Everything else is the lock holder's.
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

// What the links of a process share; it outlives them.
struct VerbsShared {
  const Clock* clock = nullptr;
  std::function<uint32_t()> random;
  std::function<void(LogLevel, const std::string&)> log;
  // The keys of a rail's regions are void: they are to be registered anew, without a lock of a peer. Any thread.
  std::function<void(uint16_t rail)> keys_revoked;
  SiteSettings site;
  TrafficClass traffic_class;
  std::atomic<uint32_t> lives{0};  // of queue pairs, until now
  RegionTable regions;
  struct RailDevice {
    std::shared_ptr<Domain> domain;  // in which all of the rail is made; null: it has no device now
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
  // The second line of a fence: nothing that is in the domain of the rail reaches a region any more. The rail gets another domain, and what
  // the job has registered is registered there. 0 or an errno. In a control thread, MAY BLOCK.
  int Revoke(uint16_t rail, const std::shared_ptr<Domain>& domain);
};

// What one incarnation of one end of a link leaves to the next. Any thread.
struct LinkHistory {
  // Of the last queue pair: the next one has another number, so that packets that are late in the fabric find nobody.
  std::atomic<uint32_t> number{0};
  // The other host did not answer when it was joined.
  std::atomic<bool> silent{false};
  // It is said that both ends' MTU differ.
  std::atomic<bool> mtu_said{false};
};

class LinkCore final : public ControlChannel {
 public:
  // The link that it is in.
  class User {
   public:
    virtual ~User() = default;
    virtual void Created() = 0;
    virtual void Joined() = 0;
    virtual void Heard(const Frame& frame) = 0;
    // See SendOwner::IsOpen().
    virtual bool IsOpen(FlowId flow) = 0;
    // There is credit again.
    virtual void Credited() = 0;
    // False: what came breaks the protocol.
    virtual bool Mark(uint32_t immediate, uint32_t bytes) = 0;
    virtual void Retired(uint64_t through) = 0;
    virtual void ProofCame(uint32_t crc) = 0;
  };

  // kReceives: what the other end sends is placed in memory of the job's.
  enum class End : uint8_t { kSends, kReceives };
  LinkCore(VerbsShared* shared, const SessionKey& key, const LinkName& name, End end, std::shared_ptr<LinkHistory> history,
           LinkOwner* owner, User* user);
  ~LinkCore() override;

  // Created() or trouble follows; then Join(), and Joined() or trouble.
  void Create();
  void Join(const Offer& remote);
  // The other end has its queue pair ready: words may go.
  void OtherIsReady() { other_ready_ = true; }
  // As SendLink::Close(); never at once.
  bool Close();

  // Null: not created yet, or closed.
  QueuePair* pair() const { return state_->closed.load() ? nullptr : ready_ ? state_->pair.get() : nullptr; }
  bool joined() const { return joined_ != 0; }
  const VerbsShared::RailDevice& rail() const { return rail_; }
  void Trouble(plan::EvidenceCause cause);
  void SendProof(uint32_t crc);
  // Handles what has completed, sends what waits.
  void Look();

  // ControlChannel:
  void Queue(const Frame& frame) override;
  bool Flush() override;
  bool flushed() const override { return out_.empty() && records_out_.empty(); }
  void HalfClose() override {}
  void Poll() override { Look(); }

 private:
  // What the control thread shares with the link. `core` is read and set with the peer's lock.
  struct State {
    std::unique_ptr<QueuePair> pair;
    std::atomic<bool> closed{false};
    std::atomic<int> opening{0};  // jobs that make or join the pair; who closes it waits for them
    LinkCore* core = nullptr;
  };
  struct Word {
    uint8_t kind = 0;
    std::vector<uint8_t> bytes;
  };
  // In the control thread: calls `what` with the lock if the link is still alive.
  static void Tell(const std::shared_ptr<State>& state, LinkOwner* owner, const std::function<void(LinkCore*)>& what);
  // Of a queue pair of the rail as it is now.
  QueuePairOptions Options() const;
  void OnWord(uint8_t kind, std::span<const uint8_t> bytes);
  void ReadRecords();
  // So many more records can be queued.
  size_t RecordRoom() const;
  // Words wait, and the device has not reported the end of anything for longer than its retries take.
  bool IsMute(const QueuePair& pair);
  // All that is queued, as far as the other end takes it. 0 or an errno.
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
  std::deque<Word> out_;
  Nanos mute_since_ = 0;     // words wait since then, and nothing has ended; 0: they do not
  uint64_t mute_at_ = 0;     // what had ended by then
  std::vector<uint8_t> in_;  // parts of a frame
  // Grants and acknowledgements, while the other end's ring takes them. Nothing: the queue pair is not created yet.
  std::optional<RecordChannel> records_;
  GrantWriter writer_;
  GrantReader reader_;
  std::vector<Record> records_out_;
};

}  // namespace r2cc::net::verbs

#endif  // R2CC_NETPLUGIN_TRANSPORT_VERBS_LINK_CORE_H_
