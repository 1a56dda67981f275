#include "tests/cluster/store.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace r2cc::cluster {
namespace {

constexpr Nanos kTickInterval = 250 * kNanosPerMs;
constexpr Nanos kCallTimeout = 2 * kNanosPerSecond;
constexpr size_t kPageEntries = 256;
// Of an entry in etcd's messages beside key and value: revisions, lease, tags, the header's share.
constexpr size_t kEntryOverheadBytes = 48;
constexpr size_t kAnswerBytes = 32;
constexpr size_t kLeaseBytes = 24;

size_t EntryBytes(const daemon::StoreChange& change) { return change.key.size() + change.value.size() + kEntryOverheadBytes; }

}  // namespace

StoreServer::StoreServer(Network* network) : network_(network), timeline_(network->timeline()) { Expire(); }

void StoreServer::SetUp(bool up) {
  if (std::exchange(up_, up) == up) return;
  if (up) {
    for (const auto& [key, lease_ms] : lease_ms_) KeepAlive(key, lease_ms);
    return;
  }
  for (auto& [node, watcher] : watchers_)
    network_->Send(Kind::kStoreEvent, 0, kStoreNode, node, &watcher.lane,
                   watcher.client->Mine([client = watcher.client] { client->Lose("connection reset"); }));
  watchers_.clear();
}

void StoreServer::Watch(StoreClient* client, const std::string& prefix) {
  Watcher& watcher = watchers_[client->node_];
  watcher.client = client;
  Network::Lane& lane = watcher.lane;
  const std::vector<daemon::StoreChange> entries = table_.Snapshot(prefix);
  for (size_t first = 0; first < entries.size(); first += kPageEntries) {
    const auto begin = entries.begin() + static_cast<std::ptrdiff_t>(first);
    const auto end = begin + static_cast<std::ptrdiff_t>(std::min(kPageEntries, entries.size() - first));
    const auto page = std::make_shared<const std::vector<daemon::StoreChange>>(begin, end);
    size_t bytes = kAnswerBytes;
    for (const daemon::StoreChange& entry : *page) bytes += EntryBytes(entry);
    network_->Send(Kind::kStoreEvent, bytes, kStoreNode, client->node_, &lane, client->Mine([client, page] {
      for (const daemon::StoreChange& entry : *page) client->callbacks_.on_change(entry);
    }));
  }
  network_->Send(Kind::kStoreEvent, kAnswerBytes, kStoreNode, client->node_, &lane, client->Mine([client] { client->OnConnected(); }));
}

void StoreServer::Leave(StoreClient* client) {
  const auto watcher = watchers_.find(client->node_);
  if (watcher != watchers_.end() && watcher->second.client == client) watchers_.erase(watcher);
}

void StoreServer::Put(const std::string& key, const std::string& value, int64_t lease_ms, Task done) {
  committed_ = std::max(committed_, timeline_->now() + network_->CommitLatency());
  timeline_->At(committed_, [this, key, value, lease_ms, done = std::move(done)] {
    if (!up_) return;
    lease_ms_[key] = lease_ms;
    const auto change = table_.Put(key, value, lease_ms, timeline_->now());
    if (change.ok() && change->has_value()) Publish(**change);
    done();
  });
}

void StoreServer::KeepAlive(const std::string& key, int64_t lease_ms) {
  const std::vector<daemon::StoreChange> entry = table_.Snapshot(key);
  if (!entry.empty() && entry.front().key == key) (void)table_.Put(key, entry.front().value, lease_ms, timeline_->now());
}

void StoreServer::Publish(const daemon::StoreChange& change) {
  const auto shared = std::make_shared<const daemon::StoreChange>(change);
  for (auto& [node, watcher] : watchers_)
    network_->Send(Kind::kStoreEvent, EntryBytes(change), kStoreNode, node, &watcher.lane,
                   watcher.client->Mine([client = watcher.client, shared] { client->callbacks_.on_change(*shared); }));
}

void StoreServer::Expire() {
  if (up_) {
    for (const daemon::StoreChange& change : table_.Expire(timeline_->now())) {
      lease_ms_.erase(change.key);
      Publish(change);
    }
  }
  timeline_->After(kTickInterval, [this] { Expire(); });
}

StoreClient::StoreClient(int node, SimExecutor* executor, Network* network, StoreServer* server)
    : node_(node),
      executor_(executor),
      network_(network),
      server_(server),
      puts_(executor,
            [this](const auto& key, const auto& value, int64_t lease_ms, auto done) { SendPut(key, value, lease_ms, std::move(done)); }) {}

Task StoreClient::Mine(Task task) const {
  return [session = session_, task = std::move(task)] {
    if (*session) task();
  };
}

void StoreClient::Start(const std::string& prefix, Callbacks callbacks) {
  prefix_ = prefix;
  callbacks_ = std::move(callbacks);
  running_ = true;
  SetState("connecting to the store");
  Connect();
  Tick();
}

void StoreClient::Connect() {
  session_ = std::make_shared<bool>(true);
  // There and back, and the request.
  executor_->RunAfter(3 * network_->ManagementLatency(), Mine([this] {
                        if (!network_->Reaches(node_, kStoreNode)) return Lose("no route");
                        if (!server_->up()) return Lose("Connection refused");
                        server_->Watch(this, prefix_);
                      }));
}

void StoreClient::OnConnected() {
  connected_ = true;
  SetState("connected to the store");
  backoff_.Reset();
  puts_.PutAllAgain();
}

void StoreClient::Lose(const std::string& why) {
  *session_ = false;
  connected_ = false;
  unreachable_since_ = 0;
  server_->Leave(this);
  SetState("lost: " + why);
  executor_->RunAfter(backoff_.Next(), [this] {
    if (running_) Connect();
  });
}

void StoreClient::SetState(const std::string& state) {
  if (std::exchange(state_, state) != state) callbacks_.on_state(state);
}

void StoreClient::Put(const std::string& key, const std::string& value, int64_t lease_ms) {
  leases_[key] = lease_ms;
  puts_.Put(key, value, lease_ms);
}

void StoreClient::SendPut(const std::string& key, const std::string& value, int64_t lease_ms, std::function<void(bool)> done) {
  if (!connected_) return done(false);
  // Answered whatever becomes of the connection: the next put of this key waits for it.
  const auto answered = std::make_shared<bool>(false);
  const auto answer = [answered, done = std::move(done)](bool ok) {
    if (!std::exchange(*answered, true)) done(ok);
  };
  executor_->RunAfter(kCallTimeout, [answer] { answer(false); });
  network_->Send(Kind::kStoreWrite, key.size() + value.size() + kEntryOverheadBytes, node_, kStoreNode, &lane_,
                 [server = server_, network = network_, node = node_, key, value, lease_ms, mine = Mine([answer] { answer(true); })] {
                   if (!server->up()) return;
                   server->Put(key, value, lease_ms, [network, node, mine] {
                     Network::Lane lane;
                     network->Send(Kind::kStoreWrite, kAnswerBytes, kStoreNode, node, &lane, mine);
                   });
                 });
}

void StoreClient::Tick() {
  if (!running_) return;
  const Nanos now = executor_->Now();
  if (connected_) {
    puts_.Retry(/*renew_leases=*/false);
    if (network_->Reaches(node_, kStoreNode)) {
      // What was sent meanwhile is lost here, where TCP would send it again: the connection is taken for a broken one.
      if (unreachable_since_ != 0) Lose("connection reset");
    } else if (unreachable_since_ == 0) {
      unreachable_since_ = now;
    } else if (now - unreachable_since_ >= kCallTimeout) {
      Lose("it does not answer");
    }
  }
  for (const auto& [key, lease_ms] : leases_) {
    if (!connected_ || now - kept_alive_ < lease_ms * kNanosPerMs / 3) continue;
    kept_alive_ = now;
    network_->Send(Kind::kStoreLease, kLeaseBytes, node_, kStoreNode, &lane_,
                   [server = server_, network = network_, node = node_, key, lease_ms] {
                     if (!server->up()) return;
                     server->KeepAlive(key, lease_ms);
                     Network::Lane lane;
                     network->Send(Kind::kStoreLease, kLeaseBytes, kStoreNode, node, &lane, [] {});
                   });
  }
  executor_->RunAfter(kTickInterval, [this] { Tick(); });
}

void StoreClient::Stop() {
  if (!std::exchange(running_, false)) return;
  *session_ = false;
  server_->Leave(this);
}

}  // namespace r2cc::cluster
