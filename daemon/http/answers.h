// Asks the core for the contents of a route, and renders them on the loop of HTTP.
#ifndef R2CC_DAEMON_HTTP_ANSWERS_H_
#define R2CC_DAEMON_HTTP_ANSWERS_H_

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/core/clock.h"
#include "base/executor.h"
#include "daemon/core/caller.h"
#include "daemon/http/response.h"
#include "daemon/http/route.h"
#include "daemon/rpc/backend.h"
#include "proto/map.pb.h"

namespace r2cc::daemon {

// On `loop`'s thread.
class HttpAnswers {
 public:
  // Bytes of the messages behind one document: a view of 10,000 nodes has 8 MB. As JSON it is some five times as long.
  static constexpr size_t kDocumentBytesMax = 16'777'216;

  // Documents are made one at a time, in their order: the number that may wait, and for how long.
  static constexpr size_t kWaitingMax = 128;
  static constexpr Nanos kWaitMax = 5 * kNanosPerSecond;

  // The greatest age of metrics that are handed out again: more frequent scrapes cost the core nothing.
  static constexpr Nanos kMetricsFreshFor = 100 * kNanosPerMs;

  // Both outlive it.
  HttpAnswers(Backend* backend, Executor* loop) : backend_(backend), loop_(loop), way_(std::make_shared<WayBack>(loop)) {}
  ~HttpAnswers() {
    *alive_ = false;
    way_->Close();
  }
  HttpAnswers(const HttpAnswers&) = delete;
  HttpAnswers& operator=(const HttpAnswers&) = delete;

  // Calls `done` once, later, on the loop; never if this is gone by then. REQUIRES: `route` is none of events.
  using Done = std::function<void(HttpResponse)>;
  void Ask(const Route& route, const Caller& caller, Done done);

 private:
  // Makes a document when it is its turn: `make` gets what to call with it.
  void InTurn(Done done, std::function<void(Done)> make);
  void Next();
  template <typename Reply>
  Answer<Reply> OnLoop(std::function<void(absl::StatusOr<Reply>)> take);
  // Asks for one page after the other, and renders all of them together.
  template <typename Request>
  void Gather(Request request, Done done, std::function<HttpResponse(const ReplyTo<Request>&)> render);
  template <typename Request>
  void GatherInTurn(const Request& request, Done done);
  void GatherMap(const MapRoute& route, Done done);
  void GatherJobs(const v1::ListJobsRequest& request, Done done);
  void AskHealth(Done done);
  void AskMetrics(Done done);
  void AskReady(const ReadyzRoute& route, Done done);
  v1::WhoAmI JudgeDrills(const Caller& caller) const;
  void AskDrill(const v1::NicActionRequest& request, const Caller& caller, Done done);

  // To the loop, for answers of the core: it may give them when the loop is gone. Thread-safe.
  class WayBack {
   public:
    explicit WayBack(Executor* loop) : loop_(loop) {}
    void Post(Task task) {
      absl::MutexLock lock(&mutex_);
      if (loop_ != nullptr) loop_->Post(std::move(task));
    }
    void Close() {
      absl::MutexLock lock(&mutex_);
      loop_ = nullptr;
    }

   private:
    absl::Mutex mutex_;
    Executor* loop_ ABSL_GUARDED_BY(mutex_);
  };

  Backend* const backend_;
  Executor* const loop_;
  const std::shared_ptr<WayBack> way_;
  struct Waiting {
    Nanos until;
    Done done;
    std::function<void(Done)> make;
  };
  std::deque<Waiting> waiting_;
  bool making_ = false;
  std::string metrics_;
  Nanos metrics_at_ = 0;             // when these were made; 0: never
  std::vector<Done> metrics_asked_;  // they wait for the core
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_HTTP_ANSWERS_H_
