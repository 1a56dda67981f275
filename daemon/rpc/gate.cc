#include "daemon/rpc/gate.h"

#include <malloc.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "daemon/rpc/http2_answer.h"

namespace r2cc::daemon {
namespace {

constexpr size_t kChunkBytes = 16 << 10;
// The bytes that one conversation may move before the others have their turn: 256 KiB in each direction, as much as the largest message. It
// takes some 40 us, measured, so that a thousand conversations in full flow have a turn each 40 ms.
constexpr int kRoundsPerTurn = 16;
constexpr Nanos kSweepInterval = kNanosPerSecond;

std::string HostOf(const std::string& address) { return address.substr(0, address.rfind(':')); }

}  // namespace

struct Gate::Relay {
  enum class State { kGreeting, kOpen, kLeaving };

  uint64_t id = 0;
  State state = State::kGreeting;
  std::unique_ptr<ClientEnd> client;
  std::shared_ptr<Origin> origin;
  std::string host;
  GatePolicy::Share* share = nullptr;  // that it counts in
  int server = -1;                     // our end
  int server_fd = -1;                  // the number of gRPC's end
  bool server_over = false;
  std::string to_server;
  std::string to_client;
  uint32_t client_events = 0;
  uint32_t server_events = 0;
  Nanos deadline = 0;  // 0: none
  absl::Status why;    // not OK: the status to send to the client
  bool answered = false;
  Http2Allowance alone{{1, 4}};  // if it counts in no share
  std::optional<Http2Meter> meter;
};

Gate::Gate(Parts parts) : parts_(std::move(parts)) {}

Gate::~Gate() {
  if (sweep_ != 0) parts_.loop->Cancel(sweep_);
  while (!relays_.empty()) End(relays_.begin()->second.get());
}

void Gate::Take(std::unique_ptr<ClientEnd> client, Caller caller) {
  if (client == nullptr) return;
  const std::string host = HostOf(caller.address);
  // A local client has proved who it is by now.
  if (caller.kind != Caller::Kind::kLocal) {
    const GatePolicy::Greeting greeting = policy_.JudgeGreeting(host);
    if (greeting == GatePolicy::Greeting::kAddressHasMany) {
      parts_.refusals->Count(parts_.listener, "too-many", caller.address, "more connections of one address without a valid certificate");
      return;
    }
    if (greeting == GatePolicy::Greeting::kTakeForOldest) {
      const auto oldest =
          std::find_if(relays_.begin(), relays_.end(), [](const auto& entry) { return entry.second->state == Relay::State::kGreeting; });
      if (oldest != relays_.end()) {
        parts_.refusals->Count(parts_.listener, "too-many", oldest->second->origin->caller.address,
                               "a connection without a valid certificate, closed for others that wait");
        End(oldest->second.get());
      }
    }
    policy_.BeginGreeting(host);
  }
  auto relay = std::make_unique<Relay>();
  relay->id = ++last_id_;
  relay->client = std::move(client);
  relay->host = host;
  relay->origin = std::make_shared<Origin>(Origin{std::move(caller), ""});
  relay->deadline = parts_.loop->Now() + kGreetingFor;
  Relay* const raw = relay.get();
  relays_.emplace(raw->id, std::move(relay));
  raw->client_events = EPOLLIN;
  if (!parts_.loop->AddFd(raw->client->fd(), EPOLLIN, [this, id = raw->id](uint32_t) { Pump(id); }).ok()) return End(raw);
  ArmSweep(kSweepInterval);
  Pump(raw->id);
}

void Gate::Pump(uint64_t id) {
  const auto found = relays_.find(id);
  if (found == relays_.end()) return;
  Relay* const relay = found->second.get();
  if (relay->state == Relay::State::kGreeting && !Greet(relay)) return;
  bool moved = true;
  for (int round = 0; moved && round < kRoundsPerTurn; ++round) {
    moved = false;
    if (!FromClient(relay, &moved) || !FromServer(relay, &moved)) return;
  }
  // TLS may hold bytes that no descriptor announces.
  if (moved)
    parts_.loop->Post([this, alive = std::weak_ptr<bool>(alive_), id] {
      if (!alive.expired()) Pump(id);
    });
  Watch(relay);
}

bool Gate::Greet(Relay* relay) {
  const absl::Status greeted = relay->client->Greet();
  if (absl::IsUnavailable(greeted)) return false;
  if (!greeted.ok()) {
    parts_.refusals->Count(parts_.listener, "greeting", relay->origin->caller.address, std::string(greeted.message()));
    End(relay);
    return false;
  }
  relay->origin->pem = relay->client->Pem();
  return Admit(relay);
}

bool Gate::Admit(Relay* relay) {
  auto admission = parts_.admit(*relay->origin);
  if (!admission.ok()) {
    TurnAway(relay, admission.status());
    return false;
  }
  const GatePolicy::Admitted admitted = policy_.Admit(*admission, parts_.loop->Now());
  if (admitted.share == nullptr) {
    Refuse(relay, admitted.refusal.reason, admitted.refusal.why);
    return false;
  }
  if (relay->origin->caller.kind != Caller::Kind::kLocal) EndGreeting(relay);
  relay->state = Relay::State::kOpen;
  relay->share = admitted.share;
  relay->meter.emplace(parts_.bounds, &admitted.share->allowance);
  return true;
}

bool Gate::ConnectServer(Relay* relay) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) != 0) return false;
  relay->server = pair[0];
  relay->server_fd = pair[1];
  relay->server_events = EPOLLIN;
  if (!parts_.loop->AddFd(pair[0], EPOLLIN, [this, id = relay->id](uint32_t) { Pump(id); }).ok()) {
    close(pair[1]);
    return false;
  }
  parts_.origins->Add(pair[1], relay->origin);
  parts_.to_server(pair[1]);
  return true;
}

bool Gate::FromClient(Relay* relay, bool* moved) {
  std::array<char, kChunkBytes> chunk;
  if (relay->state == Relay::State::kLeaving) {
    const ssize_t got = relay->client->Read(chunk.data(), chunk.size());
    if (got == ClientEnd::kAgain) return true;
    if (got == ClientEnd::kOver) {
      End(relay);
      return false;
    }
    *moved = true;
    if (relay->why.ok()) return true;
    if (relay->meter->FromClient({chunk.data(), static_cast<size_t>(got)}, parts_.loop->Now()).has_value()) {
      End(relay);
      return false;
    }
    if (relay->meter->open_streams() == 0) return true;
    relay->answered = true;
    relay->to_client += Http2Answer(relay->meter->last_opened(), std::exchange(relay->why, absl::OkStatus()));
    return true;
  }
  if (relay->server_over) return true;
  std::string_view bytes = relay->to_server;
  ssize_t got = 0;
  if (relay->to_server.empty()) {
    got = relay->client->Read(chunk.data(), chunk.size());
    if (got == ClientEnd::kAgain) return true;
    if (got == ClientEnd::kOver) {
      End(relay);
      return false;
    }
    bytes = {chunk.data(), static_cast<size_t>(got)};
    if (const auto reason = relay->meter->FromClient(bytes, parts_.loop->Now())) {
      Refuse(relay, "flood", *reason);
      return false;
    }
    if (relay->meter->begun() && relay->to_client.empty()) relay->deadline = 0;
    if (relay->server < 0 && !ConnectServer(relay)) {
      LogWarning("a connection cannot be carried to gRPC", {{"listener", parts_.listener}, {"reason", std::strerror(errno)}});
      End(relay);
      return false;
    }
  }
  const ssize_t put = send(relay->server, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (put < 0 && errno != EAGAIN && errno != EINTR) {
    relay->server_over = true;  // its last bytes are still to be forwarded
    relay->to_server.clear();
    return true;
  }
  const size_t sent = put < 0 ? 0 : static_cast<size_t>(put);
  *moved |= sent > 0;
  relay->to_server = std::string(bytes.substr(sent));
  return true;
}

bool Gate::FromServer(Relay* relay, bool* moved) {
  std::array<char, kChunkBytes> chunk;
  std::string_view bytes = relay->to_client;
  if (bytes.empty() && relay->server >= 0) {
    const ssize_t got = recv(relay->server, chunk.data(), chunk.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
      if (!relay->server_over) return true;
    } else if (got > 0) {
      bytes = {chunk.data(), static_cast<size_t>(got)};
      relay->meter->FromServer(bytes);
    }
    if (bytes.empty()) {
      Leave(relay);
      return false;
    }
  }
  if (bytes.empty()) return true;
  const ssize_t put = relay->client->Write(bytes.data(), bytes.size());
  if (put == ClientEnd::kOver) {
    End(relay);
    return false;
  }
  const size_t sent = put < 0 ? 0 : static_cast<size_t>(put);
  *moved |= sent > 0;
  const bool was_stalled = !relay->to_client.empty();
  relay->to_client = std::string(bytes.substr(sent));
  if (relay->state == Relay::State::kLeaving) {
    // A client that got its answer closes after the GOAWAY. A close by us could discard the answer while the client still writes.
    if (relay->to_client.empty() && relay->why.ok() && !relay->answered) relay->client->EndWrite();
  } else if (relay->to_client.empty()) {
    if (relay->meter->begun()) relay->deadline = 0;
  } else if (sent > 0 || !was_stalled) {
    relay->deadline = parts_.loop->Now() + kStalledFor;
    ArmSweep(kSweepInterval);
  }
  return true;
}

void Gate::Watch(Relay* relay) {
  const uint32_t client = (relay->to_server.empty() && !relay->server_over ? EPOLLIN : 0u) | (relay->to_client.empty() ? 0u : EPOLLOUT);
  if (client != relay->client_events) {
    relay->client_events = client;
    (void)parts_.loop->ModifyFd(relay->client->fd(), client);
  }
  if (relay->server < 0) return;
  const uint32_t server = (relay->to_client.empty() ? EPOLLIN : 0u) | (relay->to_server.empty() ? 0u : EPOLLOUT);
  if (server == relay->server_events) return;
  relay->server_events = server;
  (void)parts_.loop->ModifyFd(relay->server, server);
}

void Gate::Refuse(Relay* relay, const std::string& reason, const std::string& why) {
  parts_.refusals->Count(parts_.listener, reason, Describe(relay->origin->caller), why);
  TurnAway(relay, absl::ResourceExhaustedError(why));
}

void Gate::TurnAway(Relay* relay, const absl::Status& why) {
  if (relay->server >= 0 || relay->meter.has_value()) return Leave(relay);
  relay->meter.emplace(parts_.bounds, &relay->alone);
  relay->why = why;
  relay->to_client = std::string(kHttp2Settings, sizeof(kHttp2Settings));
  Leave(relay);
}

void Gate::Leave(Relay* relay) {
  CloseServer(relay);
  if (!policy_.BeginLeaving()) return End(relay);
  if (relay->state == Relay::State::kGreeting && relay->origin->caller.kind != Caller::Kind::kLocal) EndGreeting(relay);
  relay->state = Relay::State::kLeaving;
  relay->server_over = false;
  relay->to_server.clear();
  relay->deadline = parts_.loop->Now() + kLeavingFor;
  if (relay->why.ok()) relay->client->EndWrite();
  // TLS may hold bytes that no descriptor announces.
  parts_.loop->Post([this, alive = std::weak_ptr<bool>(alive_), id = relay->id] {
    if (!alive.expired()) Pump(id);
  });
  Watch(relay);
  ArmSweep(kSweepInterval);
}

void Gate::CloseServer(Relay* relay) {
  if (relay->server < 0) return;
  parts_.origins->Remove(relay->server_fd, relay->origin.get());
  parts_.loop->RemoveFd(relay->server);
  close(std::exchange(relay->server, -1));
}

void Gate::EndGreeting(Relay* relay) { policy_.EndGreeting(relay->host); }

void Gate::End(Relay* relay) {
  CloseServer(relay);
  if (relay->state == Relay::State::kGreeting && relay->origin->caller.kind != Caller::Kind::kLocal) EndGreeting(relay);
  relay->meter.reset();  // counts in the share
  if (relay->share != nullptr) policy_.End(relay->share, parts_.loop->Now());
  if (relay->state == Relay::State::kLeaving) policy_.EndLeaving();
  parts_.loop->RemoveFd(relay->client->fd());
  relays_.erase(relay->id);
  policy_.CountEnd();
}

void Gate::JudgeAll() {
  policy_.Judged(parts_.loop->Now());
  for (auto at = relays_.begin(); at != relays_.end();) {
    Relay* const relay = at->second.get();
    ++at;  // it may be erased
    if (relay->state != Relay::State::kOpen) continue;
    if (const auto admission = parts_.admit(*relay->origin); !admission.ok()) Leave(relay);
  }
}

void Gate::ArmSweep(Nanos delay) {
  const Nanos at = parts_.loop->Now() + delay;
  if (sweep_ != 0 && sweep_at_ <= at) return;
  if (sweep_ != 0) parts_.loop->Cancel(sweep_);
  sweep_at_ = at;
  sweep_ = parts_.loop->RunAfter(delay, [this] { Sweep(); });
}

void Gate::Sweep() {
  sweep_ = 0;
  const Nanos now = parts_.loop->Now();
  bool again = false;
  for (auto at = relays_.begin(); at != relays_.end();) {
    Relay* const relay = at->second.get();
    ++at;
    if (relay->deadline == 0) continue;
    if (relay->deadline > now) {
      again = true;
      continue;
    }
    if (relay->state != Relay::State::kLeaving)
      parts_.refusals->Count(parts_.listener, relay->to_client.empty() ? "silent" : "stalled", Describe(relay->origin->caller),
                             relay->to_client.empty() ? "a connection that does not come to its first request"
                                                      : "a connection that takes nothing of what is sent");
    End(relay);
  }
  policy_.ForgetShares(now);
  if (policy_.TakeJudging(now)) JudgeAll();
  if (policy_.TakeTrimming(now)) malloc_trim(0);
  if (again || policy_.WantsTrimming())
    ArmSweep(kSweepInterval);
  else if (!relays_.empty() || policy_.shares() > 0)
    ArmSweep(GatePolicy::kJudgeInterval);
}

}  // namespace r2cc::daemon
