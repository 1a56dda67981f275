// Connects one peer to the verbs transport. With the peer's lock.
#ifndef R2CC_NETPLUGIN_TRANSPORT_VERBS_VERBS_PORT_H_
#define R2CC_NETPLUGIN_TRANSPORT_VERBS_VERBS_PORT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "netplugin/transport/links.h"
#include "netplugin/transport/os/poller.h"
#include "netplugin/transport/verbs/link_core.h"

namespace r2cc::net::verbs {

class VerbsRecvLink;

class VerbsPort final : public Port {
 public:
  VerbsPort(VerbsShared* shared, const SessionKey& key, const PeerState* state) : shared_(shared), key_(key), state_(state) {}

  std::unique_ptr<SendLink> NewSend(const LinkName& name, SendOwner* owner, Counter* carried) override;
  std::unique_ptr<RecvLink> NewRecv(const LinkName& name, RecvOwner* owner, Counter* carried) override;
  std::unique_ptr<Connection> Offered(const Endpoint& endpoint) override;
  int fd() const override { return poller_.fd(); }
  // NCCL's threads poll the completion queues. Any other thread sleeps afterwards, so for it the queues are armed.
  bool Poll() override;

  // ---- for its links ----

  VerbsShared* shared() const { return shared_; }
  const SessionKey& key() const { return key_; }
  void Add(LinkCore* core) { links_.push_back({core, 0, -1}); }
  void Remove(LinkCore* core);
  // A link that may have flushes outstanding.
  void AddFlushing(VerbsRecvLink* link) { flushing_.push_back(link); }
  void RemoveFlushing(VerbsRecvLink* link) { std::erase(flushing_, link); }
  // Returns how many have ended. No event wakes a sleeper for them, because they take microseconds; the tick polls them.
  size_t LookAtFlushes();
  std::shared_ptr<LinkHistory> HistoryOf(LinkCore::End end, LinkId link);

 private:
  struct Watched {
    LinkCore* core = nullptr;
    Poller::Token token = 0;  // 0: its completion queue is not in the poller yet
    int fd = -1;
  };
  void ArmAll();

  VerbsShared* const shared_;
  const SessionKey key_;
  const PeerState* const state_;
  Poller poller_;
  std::vector<Watched> links_;
  std::vector<VerbsRecvLink*> flushing_;
  std::map<std::pair<LinkCore::End, LinkId>, std::shared_ptr<LinkHistory>> histories_;
};

}  // namespace r2cc::net::verbs

#endif  // R2CC_NETPLUGIN_TRANSPORT_VERBS_VERBS_PORT_H_
