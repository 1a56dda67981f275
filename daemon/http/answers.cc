#include "daemon/http/answers.h"

#include <string>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "daemon/http/map.h"
#include "daemon/http/process_facts.h"
#include "daemon/metrics/table.h"
#include "proto/json.h"
#include "proto/pages.h"
#include "proto/ready.h"

namespace r2cc::daemon {
namespace {

HttpResponse Failed(const absl::Status& status) {
  int code = 500;
  if (absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) || absl::IsResourceExhausted(status)) code = 503;
  if (absl::IsInvalidArgument(status)) code = 400;
  if (absl::IsNotFound(status)) code = 404;
  if (absl::IsPermissionDenied(status)) code = 403;
  return HttpError(code, std::string(status.message()));
}

HttpResponse Document(const google::protobuf::Message& message) {
  absl::StatusOr<std::string> json = ToJsonDocument(message);
  if (!json.ok()) return Failed(json.status());
  return {.type = kJson, .body = *std::move(json)};
}

HttpResponse TooLarge() {
  return HttpError(503, absl::StrCat("the answer has more than ", HttpAnswers::kDocumentBytesMax >> 20,
                                     " MiB: ask for a part of it, with ?node=GLOB or ?bad=1"));
}

}  // namespace

// HTTP's server has judged who asks before a route is asked about. So most requests of the table, which are judged at the door, come with
// no caller.
template <typename Reply>
Answer<Reply> HttpAnswers::OnLoop(std::function<void(absl::StatusOr<Reply>)> take) {
  return [way = way_, alive = alive_, take = std::move(take)](absl::StatusOr<Reply> reply) {
    way->Post([alive, take, reply = std::move(reply)]() mutable {
      if (*alive) take(std::move(reply));
    });
  };
}

void HttpAnswers::InTurn(Done done, std::function<void(Done)> make) {
  if (waiting_.size() >= kWaitingMax)
    return loop_->Post([done = std::move(done)] { done(HttpError(503, "many documents are asked for")); });
  waiting_.push_back({loop_->Now() + kWaitMax, std::move(done), std::move(make)});
  if (!making_) Next();
}

void HttpAnswers::Next() {
  making_ = !waiting_.empty();
  if (!making_) return;
  Waiting first = std::move(waiting_.front());
  waiting_.pop_front();
  const auto then = [this, alive = alive_, done = std::move(first.done)](HttpResponse response) {
    loop_->Post([this, alive] {
      if (*alive) Next();
    });
    done(std::move(response));
  };
  // The client has gone by now.
  if (loop_->Now() > first.until) return then(HttpError(503, "many documents are asked for"));
  first.make(then);
}

template <typename Request>
void HttpAnswers::Gather(Request request, Done done, std::function<HttpResponse(const ReplyTo<Request>&)> render) {
  using Reply = ReplyTo<Request>;
  struct Gathered {
    Request request;
    Reply all;
    size_t bytes = 0;
    bool first = true;
    std::function<void()> next;
  };
  auto gathered = std::make_shared<Gathered>(Gathered{.request = std::move(request)});
  gathered->next = [this, weak = std::weak_ptr<Gathered>(gathered), done = std::move(done), render = std::move(render)] {
    const auto held = weak.lock();
    backend_->Ask(held->request, Caller(), OnLoop<Reply>([held, done, render](absl::StatusOr<Reply> page) {
                    if (!page.ok()) return done(Failed(page.status()));
                    held->bytes += page->ByteSizeLong();
                    if (held->bytes > kDocumentBytesMax) return done(TooLarge());
                    const std::string next_after = page->next_after();
                    if (std::exchange(held->first, false))
                      held->all = *std::move(page);
                    else
                      AddPage(*page, &held->all);
                    if (next_after > held->request.after_node()) {
                      held->request.set_after_node(next_after);
                      return held->next();
                    }
                    held->all.clear_next_after();
                    done(render(held->all));
                  }));
  };
  gathered->next();
}

template <typename Request>
void HttpAnswers::GatherInTurn(const Request& request, Done done) {
  InTurn(std::move(done), [this, request](Done made) {
    Gather<Request>(request, std::move(made), [](const ReplyTo<Request>& all) { return Document(all); });
  });
}

void HttpAnswers::GatherMap(const MapRoute& route, Done done) {
  v1::StatusRequest health;
  health.set_health(true);
  backend_->Ask(health, Caller(), OnLoop<v1::StatusReply>([this, route, done = std::move(done)](absl::StatusOr<v1::StatusReply> status) {
                  if (!status.ok()) return done(Failed(status.status()));
                  v1::ListNicsRequest request;
                  request.set_node_glob(route.node_glob);
                  Gather<v1::ListNicsRequest>(std::move(request), done, [asked = *std::move(status)](const v1::ListNicsReply& nics) {
                    const absl::StatusOr<std::string> json = ToJsonLine(MapOf(nics, asked));
                    return json.ok() ? HttpResponse{.type = kJson, .body = *json} : Failed(json.status());
                  });
                }));
}

void HttpAnswers::GatherJobs(const v1::ListJobsRequest& request, Done done) {
  struct Gathered {
    v1::ListJobsRequest request;
    v1::ListJobsReply all;
    std::function<void()> next;
  };
  auto gathered = std::make_shared<Gathered>(Gathered{.request = request});
  gathered->next = [this, weak = std::weak_ptr<Gathered>(gathered), done = std::move(done)] {
    const auto held = weak.lock();
    backend_->Ask(held->request, Caller(), OnLoop<v1::ListJobsReply>([held, done](absl::StatusOr<v1::ListJobsReply> page) {
                    if (!page.ok()) return done(Failed(page.status()));
                    held->all.mutable_jobs()->MergeFrom(page->jobs());
                    if (page->has_summary()) *held->all.mutable_summary() = page->summary();
                    held->all.set_release(page->release());
                    if (held->all.ByteSizeLong() > kDocumentBytesMax) return done(TooLarge());
                    if (page->more() && page->jobs_size() > 0) {
                      held->request.set_skip(static_cast<uint32_t>(held->all.jobs_size()));
                      return held->next();
                    }
                    done(Document(held->all));
                  }));
  };
  gathered->next();
}

void HttpAnswers::AskHealth(Done done) {
  v1::StatusRequest request;
  request.set_health(true);
  backend_->Ask(request, Caller(), OnLoop<v1::StatusReply>([done = std::move(done)](absl::StatusOr<v1::StatusReply> reply) {
                  if (!reply.ok()) return done(Failed(reply.status()));
                  done({.body = absl::StrCat("ok: r2ccd of node ", reply->node(), " serves plan ", reply->plan_epoch().counter(), "\n")});
                }));
}

void HttpAnswers::AskMetrics(Done done) {
  if (metrics_at_ != 0 && loop_->Now() - metrics_at_ < kMetricsFreshFor)
    return loop_->Post([this, done] { done({.type = kMetricsText, .body = metrics_}); });
  metrics_asked_.push_back(std::move(done));
  if (metrics_asked_.size() > 1) return;  // the core is asked
  using Facts = std::shared_ptr<const MetricFacts>;
  backend_->Ask(MetricsRequest(), Caller(), OnLoop<Facts>([this](const absl::StatusOr<Facts>& facts) {
                  if (facts.ok()) {
                    metrics_ = RenderMetrics(**facts, ReadProcessFacts());
                    metrics_at_ = loop_->Now();
                  }
                  for (const Done& asked : std::exchange(metrics_asked_, {}))
                    asked(facts.ok() ? HttpResponse{.type = kMetricsText, .body = metrics_} : Failed(facts.status()));
                }));
}

void HttpAnswers::AskReady(const ReadyzRoute& route, Done done) {
  const auto judge = [route, done](const absl::StatusOr<v1::NodeView>& own) {
    const v1::ReadyReport report = JudgeReady(own, route.rails_min);
    if (route.json) return done(Document(report));
    done({.status = report.exit_code() == kReady ? 200 : 503, .body = absl::StrCat(report.text(), "\n")});
  };
  v1::StatusRequest health;
  health.set_health(true);
  backend_->Ask(health, Caller(), OnLoop<v1::StatusReply>([this, judge](absl::StatusOr<v1::StatusReply> status) {
                  if (!status.ok()) return judge(status.status());
                  v1::ListNicsRequest request;
                  request.set_node(status->node());
                  backend_->Ask(request, Caller(), OnLoop<v1::ListNicsReply>([judge](absl::StatusOr<v1::ListNicsReply> nics) {
                                  if (!nics.ok()) return judge(nics.status());
                                  if (nics->nodes().empty())
                                    return judge(absl::UnavailableError("r2ccd has not looked at its own NICs yet"));
                                  judge(nics->nodes(0));
                                }));
                }));
}

v1::WhoAmI HttpAnswers::JudgeDrills(const Caller& caller) const {
  v1::WhoAmI who;
  const bool proven = caller.kind == Caller::Kind::kOperator;
  if (proven) who.set_name(caller.name);
  const absl::Status may = proven
                               ? backend_->Allow(caller, Role::kDrill)
                               : absl::PermissionDeniedError("a drill over HTTP needs TLS and the certificate of an operator with DRILL");
  who.set_may_drill(may.ok());
  who.set_why_not(std::string(may.message()));
  return who;
}

void HttpAnswers::AskDrill(const v1::NicActionRequest& request, const Caller& caller, Done done) {
  if (const v1::WhoAmI who = JudgeDrills(caller); !who.may_drill())
    return loop_->Post([done = std::move(done), why = who.why_not()] { done(HttpError(403, why)); });
  backend_->Ask(request, caller, OnLoop<v1::NicActionReply>([done = std::move(done)](absl::StatusOr<v1::NicActionReply> reply) {
                  done(reply.ok() ? Document(*reply) : Failed(reply.status()));
                }));
}

void HttpAnswers::Ask(const Route& route, const Caller& caller, Done done) {
  struct Asker {
    HttpAnswers* answers;
    const Caller& caller;
    Done done;
    void operator()(const HealthzRoute&) { answers->AskHealth(std::move(done)); }
    void operator()(const ReadyzRoute& ready) { answers->AskReady(ready, std::move(done)); }
    void operator()(const MetricsRoute&) { answers->AskMetrics(std::move(done)); }
    void operator()(const PageRoute& page) {
      answers->loop_->Post([done = std::move(done), file = page.file] {
        done({.type = std::string(file->type), .body = std::string(file->body), .page = true});
      });
    }
    void operator()(const WhoRoute&) {
      answers->loop_->Post([done = std::move(done), who = answers->JudgeDrills(caller)] { done(Document(who)); });
    }
    void operator()(const MapRoute& route) {
      answers->InTurn(std::move(done), [answers = answers, route](Done made) { answers->GatherMap(route, std::move(made)); });
    }
    void operator()(const v1::StatusRequest& request) { answers->GatherInTurn(request, std::move(done)); }
    void operator()(const v1::ListNicsRequest& request) { answers->GatherInTurn(request, std::move(done)); }
    void operator()(const v1::ListJobsRequest& request) {
      answers->InTurn(std::move(done), [answers = answers, request](Done made) { answers->GatherJobs(request, std::move(made)); });
    }
    void operator()(const v1::GetPlanRequest& request) { answers->GatherInTurn(request, std::move(done)); }
    void operator()(const v1::ExplainPlanRequest& request) { answers->GatherInTurn(request, std::move(done)); }
    void operator()(const v1::ExplainNicRequest& request) {
      answers->backend_->Ask(request, caller,
                             answers->OnLoop<v1::ExplainNicReply>([done = std::move(done)](absl::StatusOr<v1::ExplainNicReply> reply) {
                               done(reply.ok() ? Document(*reply) : Failed(reply.status()));
                             }));
    }
    void operator()(const v1::NicActionRequest& request) { answers->AskDrill(request, caller, std::move(done)); }
    void operator()(const v1::ConfigRequest& request) {
      answers->backend_->Ask(request, caller,
                             answers->OnLoop<v1::ConfigReply>([done = std::move(done)](absl::StatusOr<v1::ConfigReply> reply) {
                               done(reply.ok() ? Document(*reply) : Failed(reply.status()));
                             }));
    }
    void operator()(const v1::EventsRequest&) { done(HttpError(500, "events are a stream")); }
  };
  std::visit(Asker{this, caller, std::move(done)}, route);
}

}  // namespace r2cc::daemon
