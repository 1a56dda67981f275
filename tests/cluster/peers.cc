#include "tests/cluster/peers.h"

#include <optional>
#include <utility>

namespace r2cc::cluster {
namespace {

// As daemon/rpc's calls to other daemons.
constexpr Nanos kActLimit = 3 * kNanosPerSecond;

}  // namespace

// One connection, shared by its two ends. Each end leaves by itself; the other hears of it, or finds out when nothing comes any more.
struct Peers::Stream {
  struct End {
    Peers* who = nullptr;  // null: it has left
    int node = 0;
    daemon::ViewBroadcaster::ListenerId listener = 0;
    Network::Lane lane;  // towards the other
    Nanos silent_since = 0;
  };
  uint64_t number = 0;
  const uint64_t speaker = daemon::NextStream();
  std::string name;  // of the called one, as the caller knows it
  End caller;
  End called;

  void Write(End* from, End* to, const std::shared_ptr<Stream>& self) const {
    const auto view = from->who->broadcaster_->Get();
    auto bytes = std::make_shared<const std::string>(view->SerializeAsString());
    constexpr size_t kFieldBytes = 4;  // the view's place in PushRequest and PushReply
    from->who->network()->Send(Kind::kPush, bytes->size() + kFieldBytes, from->node, to->node, &from->lane, [self, to, bytes] {
      v1::NodeView parsed;
      if (to->who == nullptr || !parsed.ParseFromString(*bytes)) return;
      if (to == &self->called)
        to->who->backend_->ReceiveView(std::move(parsed), self->speaker,
                                       {.address = self->caller.who != nullptr ? self->caller.who->address_ : "gone"});
      else
        to->who->OnView(self->name, std::move(parsed));
    });
  }
};

Peers::Peers(int node, std::string address, SimExecutor* executor, PeerDirectory* directory)
    : node_(node), address_(std::move(address)), executor_(executor), directory_(directory) {}

Peers::~Peers() { Stop(); }

void Peers::Serve(daemon::Backend* backend) {
  backend_ = backend;
  directory_->Listen(address_, this);
}

void Peers::Start(daemon::ViewBroadcaster* broadcaster, Callbacks callbacks) {
  broadcaster_ = broadcaster;
  callbacks_ = std::move(callbacks);
  running_ = true;
  CheckStreams();
}

void Peers::SetPeers(const std::vector<daemon::PeerSpec>& peers) {
  std::map<std::string, Link> before = std::exchange(links_, {});
  for (const daemon::PeerSpec& peer : peers) {
    const auto known = before.find(peer.node);
    if (known != before.end() && known->second.spec == peer) {
      links_.insert(before.extract(known));
      continue;
    }
    links_[peer.node].spec = peer;
    Connect(peer.node);
  }
  for (auto& [name, gone] : before) Retire(&gone);
}

void Peers::Retire(Link* link) {
  if (link->timer != 0) executor_->Cancel(std::exchange(link->timer, 0));
  if (link->stream != nullptr) Leave(std::exchange(link->stream, nullptr));
}

void Peers::Connect(const std::string& peer) {
  Link& link = links_.at(peer);
  link.answered = false;
  // There and back, and half of that again for the first request.
  const Nanos delay = 3 * network()->ManagementLatency();
  link.timer = executor_->RunAfter(delay, [this, peer] {
    Link& link = links_.at(peer);
    link.timer = 0;
    Peers* const server = directory_->Find(link.spec.address);
    if (server != nullptr && network()->Answers(node_, server->node_)) return Open(peer, server);
    OnEnd(peer, server == nullptr ? "Connection refused" : "no route");
  });
}

void Peers::Open(const std::string& peer, Peers* server) {
  auto stream = std::make_shared<Stream>();
  stream->number = directory_->NextStream();
  stream->name = peer;
  stream->caller.who = this;
  stream->caller.node = node_;
  stream->called.who = server;
  stream->called.node = server->node_;
  links_.at(peer).stream = stream;
  streams_.emplace(stream->number, stream);
  server->streams_.emplace(stream->number, stream);
  const std::weak_ptr<Stream> weak = stream;
  const auto writer = [weak](Stream::End Stream::*from, Stream::End Stream::*to) {
    return [weak, from, to] {
      const auto open = weak.lock();
      if (open != nullptr) open->Write(&((*open).*from), &((*open).*to), open);
    };
  };
  stream->caller.listener = broadcaster_->Listen(writer(&Stream::caller, &Stream::called));
  stream->called.listener = server->backend_->broadcaster().Listen(writer(&Stream::called, &Stream::caller));
  stream->Write(&stream->caller, &stream->called, stream);
  stream->Write(&stream->called, &stream->caller, stream);
}

void Peers::OnView(const std::string& peer, v1::NodeView view) {
  const auto link = links_.find(peer);
  if (link == links_.end()) return;
  if (!std::exchange(link->second.answered, true)) {
    link->second.backoff.Reset();
    link->second.last_error.clear();
    callbacks_.on_connected(peer);
  }
  callbacks_.on_view(peer, std::move(view));
}

void Peers::OnEnd(const std::string& peer, const std::string& why) {
  Link& link = links_.at(peer);
  link.stream = nullptr;
  if (link.answered || link.last_error != why) callbacks_.on_lost(peer, why);
  link.answered = false;
  link.last_error = why;
  link.timer = executor_->RunAfter(link.backoff.Next(), [this, peer] {
    links_.at(peer).timer = 0;
    Connect(peer);
  });
}

void Peers::Leave(const std::shared_ptr<Stream>& stream) {
  Stream::End* const own = stream->caller.who == this ? &stream->caller : &stream->called;
  Stream::End* const other = own == &stream->caller ? &stream->called : &stream->caller;
  if (own->listener != 0) broadcaster_->Unlisten(std::exchange(own->listener, 0));
  own->who = nullptr;
  streams_.erase(stream->number);
  if (own == &stream->called) backend_->EndStream(stream->speaker);
  if (other->who == nullptr) return;
  network()->Send(Kind::kPush, 0, own->node, other->node, &own->lane, [stream, other] {
    Peers* const who = other->who;
    if (who == nullptr) return;
    who->Leave(stream);
    if (other == &stream->caller && who->links_.contains(stream->name)) who->OnEnd(stream->name, "its daemon stopped");
  });
}

// What pings are for: a connection over a way that is cut ends after its time.
void Peers::CheckStreams() {
  constexpr Nanos kCheckInterval = 250 * kNanosPerMs;
  const Nanos now = executor_->Now();
  std::vector<std::shared_ptr<Stream>> lost;
  for (const auto& [number, stream] : streams_) {
    const bool calls = stream->caller.who == this;
    Stream::End& own = calls ? stream->caller : stream->called;
    const Stream::End& other = calls ? stream->called : stream->caller;
    if (other.who != nullptr && network()->Answers(own.node, other.node)) {
      own.silent_since = 0;
    } else if (own.silent_since == 0) {
      own.silent_since = now;
    } else if (now - own.silent_since >= kConnectionLost) {
      lost.push_back(stream);
    }
  }
  for (const auto& stream : lost) {
    const bool calls = stream->caller.who == this;
    Leave(stream);
    if (calls && links_.contains(stream->name)) OnEnd(stream->name, "keepalive watchdog timeout");
  }
  executor_->RunAfter(kCheckInterval, [this] { CheckStreams(); });
}

void Peers::Stop() {
  if (!std::exchange(running_, false)) return;
  directory_->Leave(address_);
  for (auto& [peer, link] : links_) Retire(&link);
  links_.clear();
  while (!streams_.empty()) Leave(std::shared_ptr(streams_.begin()->second));
  calls_.clear();
}

void Peers::Act(const daemon::PeerSpec& peer, const v1::NicActionRequest& request, daemon::Answer<v1::NicActionReply> answer) {
  const Peers* const found = directory_->Find(peer.address);
  if (found == nullptr) return answer(absl::UnavailableError("Connection refused"));
  const uint64_t call = directory_->NextStream();
  calls_.emplace(call, std::move(answer));
  executor_->RunAfter(kActLimit, [this, call] { Answered(call, absl::UnavailableError("it does not answer")); });
  network()->Send(Kind::kPush, request.ByteSizeLong(), node_, found->node_, &call_lanes_[peer.address],
                  [directory = directory_, from = node_, own = address_, to = peer.address, request, call] {
                    Peers* const server = directory->Find(to);
                    if (server == nullptr) return;
                    const auto back = [directory, at = server->node_, from, own, call](const absl::StatusOr<v1::NicActionReply>& reply) {
                      Network::Lane lane;
                      directory->network()->Send(Kind::kPush, reply.ok() ? reply->ByteSizeLong() : 0, at, from, &lane,
                                                 [directory, own, call, reply] {
                                                   if (Peers* const caller = directory->Find(own)) caller->Answered(call, reply);
                                                 });
                    };
                    server->backend_->Ask(request, daemon::FromAsker(request.asker(), {.kind = daemon::Caller::Kind::kNode}), back);
                  });
}

void Peers::Answered(uint64_t call, const absl::StatusOr<v1::NicActionReply>& reply) {
  if (const auto answer = calls_.extract(call)) answer.mapped()(reply);
}

// Only r2ccctl asks for these.
void Peers::ForgetNode(const daemon::PeerSpec&, const v1::ForgetNodeRequest&, daemon::Answer<v1::ForgetNodeReply> answer) {
  answer(absl::UnimplementedError("nobody asks the simulated cluster"));
}
void Peers::ExplainNic(const daemon::PeerSpec&, const v1::ExplainNicRequest&, daemon::Answer<v1::ExplainNicReply> answer) {
  answer(absl::UnimplementedError("nobody asks the simulated cluster"));
}
void Peers::ProbePaths(const daemon::PeerSpec&, const v1::ProbePathsRequest&, daemon::Answer<v1::ProbePathsReply> answer) {
  answer(absl::UnimplementedError("nobody asks the simulated cluster"));
}
void Peers::ReportJobs(const daemon::PeerSpec&, const v1::ReportJobsRequest&, daemon::Answer<v1::ReportJobsReply> answer) {
  answer(absl::UnimplementedError("nobody asks the simulated cluster"));
}

}  // namespace r2cc::cluster
