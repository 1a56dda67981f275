// The verbs transport as one peer uses it. With the peer's lock.
#ifndef R2CC_NETPLUGIN_TRANSPORT_VERBS_VERBS_PORT_H_
#define R2CC_NETPLUGIN_TRANSPORT_VERBS_VERBS_PORT_H_

#include <algorithm>
#include <memory>
#include <vector>

#include "netplugin/transport/links.h"
#include "netplugin/transport/verbs/link_core.h"

namespace r2cc::net::verbs {

class VerbsPort final : public Port {
 public:
  VerbsPort(VerbsShared* shared, const SessionKey& key) : shared_(shared), key_(key) {}

  std::unique_ptr<SendLink> NewSend(const LinkName& name, SendOwner* owner, Counter* carried) override;
  std::unique_ptr<RecvLink> NewRecv(const LinkName& name, RecvOwner* owner, Counter* carried) override;
  std::unique_ptr<Connection> Offered(const Endpoint& endpoint) override;
  bool Poll() override;

  // ---- for its links ----

  VerbsShared* shared() const { return shared_; }
  const SessionKey& key() const { return key_; }
  void Add(LinkCore* core) { cores_.push_back(core); }
  void Remove(LinkCore* core) { std::erase(cores_, core); }

 private:
  VerbsShared* const shared_;
  const SessionKey key_;
  std::vector<LinkCore*> cores_;
};

}  // namespace r2cc::net::verbs

#endif  // R2CC_NETPLUGIN_TRANSPORT_VERBS_VERBS_PORT_H_
