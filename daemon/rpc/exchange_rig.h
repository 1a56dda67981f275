// One daemon's end of its streams to others, over real connections: all of daemon/rpc and nothing behind it.
#ifndef R2CC_DAEMON_RPC_EXCHANGE_RIG_H_
#define R2CC_DAEMON_RPC_EXCHANGE_RIG_H_

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/event_loop.h"
#include "daemon/rpc/free_port.h"
#include "daemon/rpc/grpc_peer_transport.h"
#include "daemon/rpc/servers.h"

namespace r2cc::daemon {

constexpr absl::Duration kWait = absl::Seconds(20);

inline v1::NodeView View(const std::string& node, uint64_t counter) {
  v1::NodeView view;
  view.set_node(node);
  view.mutable_epoch()->set_counter(counter);
  return view;
}

// Messages that arrived, by their counter.
class Arrived {
 public:
  void Add(const v1::NodeView& view) {
    absl::MutexLock lock(&mutex_);
    ++times_[view.epoch().counter()];
  }
  int Times(uint64_t counter) const {
    absl::MutexLock lock(&mutex_);
    return TimesLocked(counter);
  }
  // False: it did not within kWait.
  bool Await(uint64_t counter) const {
    const auto there = [this, counter] { return TimesLocked(counter) > 0; };
    absl::MutexLock lock(&mutex_);
    return mutex_.AwaitWithTimeout(absl::Condition(&there), kWait);
  }

 private:
  int TimesLocked(uint64_t counter) const {
    const auto found = times_.find(counter);
    return found == times_.end() ? 0 : found->second;
  }
  mutable absl::Mutex mutex_;
  std::map<uint64_t, int> times_;
};

// In /tmp: the name of a Unix socket has room for 107 bytes, and a test's own folder may need more.
class ShortFolder {
 public:
  ShortFolder() { EXPECT_NE(mkdtemp(path_.data()), nullptr); }
  ~ShortFolder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_ = "/tmp/r2cc-exchange-XXXXXX";
};

class End final : public Backend {
 public:
  End(std::string node, int port)
      : node_(std::move(node)),
        credentials_(LoadCredentials(std::nullopt, /*insecure=*/true, "test").value()),
        servers_(RpcServers::Start({this, &authenticator_, &refusals_, nullptr}, absl::StrCat(folder_.path(), "/", node_, ".sock"),
                                   absl::StrCat("127.0.0.1:", port), credentials_)
                     .value()),
        loop_("peers-" + node_),
        transport_(&loop_.loop(), credentials_) {
    broadcaster_.Set(View(node_, 1));
  }
  ~End() override { Hang(); }

  void Call(const std::vector<PeerSpec>& peers) {
    loop_.loop().RunAndWait([&] {
      transport_.Start(&broadcaster_, {[this](const std::string&, const v1::NodeView& view) { by_own_stream.Add(view); },
                                       [](const std::string&) {}, [](const std::string&, const std::string&) {}});
      transport_.SetPeers(peers);
    });
  }
  // After Call().
  void SetPeers(const std::vector<PeerSpec>& peers) {
    loop_.loop().RunAndWait([&] { transport_.SetPeers(peers); });
  }
  void Hang() {
    loop_.loop().RunAndWait([this] { transport_.Stop(); });
  }
  const ControlTable& control() const override { return control_; }
  void ReceiveView(v1::NodeView view, uint64_t, const Caller&, std::function<void()> taken) override {
    by_peers_stream.Add(view);
    if (taken) taken();
  }
  void EndStream(uint64_t) override {}
  EventLog& events() override { return events_; }
  ViewBroadcaster& broadcaster() override { return broadcaster_; }

  PeerSpec spec() const { return {node_, absl::StrCat("127.0.0.1:", servers_->peer_port())}; }
  // That this end holds now, to all others.
  size_t channels() const { return credentials_.channels->open(); }

  Arrived by_own_stream;
  Arrived by_peers_stream;

 private:
  const ShortFolder folder_;
  const std::string node_;
  EventLog events_;
  ViewBroadcaster broadcaster_;
  // Without rows: nobody asks.
  const ControlTable control_{{.node = node_,
                               .core = nullptr,
                               .alive = std::make_shared<const bool>(true),
                               .allow = [](const Caller&, Role) { return absl::OkStatus(); },
                               .on_refused = nullptr}};
  const Credentials credentials_;
  Refusals refusals_{[] { return int64_t{1}; }};
  const Authenticator authenticator_{nullptr, /*insecure=*/true, &refusals_};
  const std::unique_ptr<RpcServers> servers_;
  ScopedLoopThread loop_;
  GrpcPeerTransport transport_;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_RPC_EXCHANGE_RIG_H_
