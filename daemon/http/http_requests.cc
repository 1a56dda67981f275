// Handles the requests of the HTTP server.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/core/event_filter.h"
#include "daemon/http/http_connection.h"

namespace r2cc::daemon {
namespace {

// The limit of events in one write.
constexpr size_t kFramesBytes = 64 << 10;

}  // namespace

std::variant<Caller, HttpRefusal> HttpServer::Judge(const Connection& connection) const {
  Caller caller;
  caller.address = connection.address;
  if (clear_) {
    // A client on loopback is only known to run here. So it may see what every user of this node may see.
    caller.kind = Caller::Kind::kLocal;
    caller.uid = caller.gid = UINT32_MAX;
    if (parts_.backend->Allow(caller, Role::kView).ok()) return caller;
    return HttpRefusal{403, "role",
                       "not every user of this node has the role VIEW: set grants { roles: VIEW everyone: true } in its configuration"};
  }
  const auto judged = authenticator_.Judge({caller, connection.pem}, "to ask over HTTP");
  // They are counted there.
  if (!judged.ok()) return HttpRefusal{401, "", std::string(judged.status().message())};
  if (const absl::Status status = parts_.backend->Allow(*judged, Role::kView); !status.ok())
    return HttpRefusal{403, "role", absl::StrCat(status.message(), "; show an operator's certificate")};
  return *judged;
}

// Takes one request, if there is a whole one.
bool HttpServer::Serve(Connection* connection) {
  if (connection->state == Connection::State::kStreaming) {
    connection->in.clear();  // nothing is left to answer
    return true;
  }
  if (connection->state != Connection::State::kReading || connection->in.empty()) return true;
  switch (connection->parser.Parse(&connection->in)) {
    case RequestParser::State::kMore:
      connection->deadline = std::min(connection->deadline, thread_.loop().Now() + kRequestFor);
      return true;
    case RequestParser::State::kBad:
      return Refuse(connection, {connection->parser.error_status(), "garbage", "this is no HTTP request that r2ccd understands"});
    case RequestParser::State::kDone: break;
  }
  const HttpRequest request = connection->parser.request();
  connection->head = request.head();
  connection->close = !request.keep_alive;
  ++connection->request;
  const auto routed = RouteOf(request, parts_.names);
  if (const auto* refusal = std::get_if<HttpRefusal>(&routed)) return Refuse(connection, *refusal);
  const Route& route = std::get<Route>(routed);
  Caller caller;
  if (!IsOpen(route)) {
    auto judged = Judge(*connection);
    if (const auto* refusal = std::get_if<HttpRefusal>(&judged)) return Refuse(connection, *refusal);
    caller = std::get<Caller>(std::move(judged));
  }
  TokenBucket& allowance = clear_ || !connection->pem.empty() ? requests_ : unproven_;
  if (!allowance.Take(thread_.loop().Now()))
    return Refuse(connection, {429, "too-often", absl::StrCat("more than ", kRequestsPerSecond, " requests a second")});
  if (const auto* events = std::get_if<v1::EventsRequest>(&route)) return BeginStream(connection, *events);
  connection->state = Connection::State::kAsking;
  connection->deadline = thread_.loop().Now() + kAnswerFor;
  answers_->Ask(route, caller, [this, id = connection->id, number = connection->request](HttpResponse response) {
    OnAnswer(id, number, std::move(response));
  });
  // It may be answered already.
  return connections_.contains(connection->id);
}

bool HttpServer::Refuse(Connection* connection, const HttpRefusal& refusal) {
  if (!refusal.reason.empty()) parts_.refusals->Count(kHttpListener, refusal.reason, connection->address, refusal.text);
  // Bytes after a request that is not understood are not understood either.
  if (refusal.reason == "garbage") connection->close = true;
  return Respond(connection, HttpError(refusal.status, refusal.text));
}

void HttpServer::OnAnswer(uint64_t id, uint64_t request, HttpResponse response) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  Connection* const connection = found->second.get();
  if (connection->state != Connection::State::kAsking || connection->request != request) return;
  size_t pending = response.body.size();
  for (const auto& [other, one] : connections_) pending += one->large ? 0 : one->out.size() - one->out_at;
  if (response.body.size() > kSmallBytes && response.body.size() <= kLargeBytes && pending > kPendingBytesMax) {
    parts_.refusals->Count(kHttpListener, "too-many", connection->address, "an answer while many others are not taken");
    response = HttpError(503, "many answers are under way");
  } else if (response.body.size() > kLargeBytes) {
    if (large_ > 0) {
      response = HttpError(503, "another large answer is under way");
    } else {
      ++large_;
      connection->large = true;
    }
  }
  if (!Respond(connection, std::move(response)) || !Write(connection)) return;
  Watch(connection);
}

bool HttpServer::Respond(Connection* connection, HttpResponse response) {
  connection->out = Render(response, connection->head, connection->close);
  connection->out_at = 0;
  connection->state = Connection::State::kWriting;
  connection->deadline = thread_.loop().Now() + kStalledFor;
  connection->write_by = thread_.loop().Now() + kWriteFor;
  return true;
}

bool HttpServer::BeginStream(Connection* connection, const v1::EventsRequest& request) {
  if (streams_ >= kStreamsMax)
    return Refuse(connection, {503, "too-many-streams", absl::StrCat("more than ", kStreamsMax, " clients follow events")});
  connection->close = true;
  if (connection->head) return Respond(connection, {.type = kEventStream, .stream = true});
  ++streams_;
  const EventLog& log = parts_.backend->events();
  const uint64_t instance = request.after_instance();
  connection->after = instance != 0 && instance != log.instance() ? 0 : request.after_sequence();
  if (request.last() > 0)
    connection->after =
        std::max(connection->after, log.BeforeLast(request.last(), [&](const v1::Event& event) { return Wanted(request, event); }));
  connection->wanted = request;
  connection->state = Connection::State::kStreaming;
  connection->out = Render({.type = kEventStream, .stream = true}, false, true);
  connection->out_at = 0;
  connection->deadline = thread_.loop().Now() + kStalledFor;
  connection->write_by = thread_.loop().Now() + kWriteFor;
  connection->heartbeat = thread_.loop().Now() + kHeartbeatInterval;
  return true;
}

// Puts the next events into `out`. False: the connection is gone, as there are none and none are to follow.
bool HttpServer::FeedStream(Connection* connection) {
  const EventLog::Wanted wanted = [&](const v1::Event& event) { return Wanted(connection->wanted, event); };
  while (connection->out.size() < kFramesBytes) {
    auto event = parts_.backend->events().After(connection->after, wanted, &connection->after);
    if (!event.has_value()) break;
    event->set_instance(parts_.backend->events().instance());
    connection->out += EventFrame(*event);
  }
  if (connection->out.empty()) {
    if (connection->wanted.follow()) return true;
    End(connection);
    return false;
  }
  connection->deadline = thread_.loop().Now() + kStalledFor;
  connection->write_by = thread_.loop().Now() + kWriteFor;
  return true;
}

}  // namespace r2cc::daemon
