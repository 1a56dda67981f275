// Lists every request that a daemon answers: its reply, the role that its caller needs, and its handler. services/ fills the table; gRPC
// and HTTP serve it. A new request is a line of ControlRows and a row of services/control_rows.cc.
#ifndef R2CC_DAEMON_CORE_CONTROL_TABLE_H_
#define R2CC_DAEMON_CORE_CONTROL_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "base/executor.h"
#include "daemon/core/answer.h"
#include "daemon/core/caller.h"
#include "daemon/core/roles.h"
#include "proto/r2cc.pb.h"

namespace r2cc::daemon {

struct MetricFacts;

// Asks for the present values of the metrics. Only HTTP sends it.
struct MetricsRequest {};

// The role that a request needs, and where it is checked.
struct Access {
  enum class Where : uint8_t {
    kDoor,   // by the server that receives the request, before the core gets it. The service Peer checks nothing, so it has no such request
    kHere,   // by the node that receives the request, on its core
    kOwner,  // by the node that the request names, on its core: any other node forwards it
    kKnown,  // nowhere: each authenticated caller may send it
  };
  std::string what;  // for the message of a refusal: "the NICs"
  Role role = Role::kView;
  Where judged = Where::kDoor;
  std::string more_closely = {};     // in place of `what` if the core refuses; empty: `what`
  std::optional<Role> or_role = {};  // this role suffices, too
};

template <typename RequestT, typename ReplyT>
struct ControlRow {
  using Request = RequestT;
  using Reply = ReplyT;
  std::function<Access(const Request& request)> access;
  // On the core's thread. `may`: whether the caller has the role.
  std::function<void(const Request& request, const Caller& caller, const absl::Status& may, Answer<Reply> answer)> answer;
};

using ControlRows = std::tuple<                                  //
    ControlRow<v1::StatusRequest, v1::StatusReply>,              //
    ControlRow<v1::ListNicsRequest, v1::ListNicsReply>,          //
    ControlRow<v1::NicActionRequest, v1::NicActionReply>,        //
    ControlRow<v1::ListJobsRequest, v1::ListJobsReply>,          //
    ControlRow<v1::ReportJobsRequest, v1::ReportJobsReply>,      //
    ControlRow<v1::GetPlanRequest, v1::Plan>,                    //
    ControlRow<v1::ExplainNicRequest, v1::ExplainNicReply>,      //
    ControlRow<v1::ProbePathsRequest, v1::ProbePathsReply>,      //
    ControlRow<v1::ExplainPlanRequest, v1::ExplainPlanReply>,    //
    ControlRow<v1::ForgetNodeRequest, v1::ForgetNodeReply>,      //
    ControlRow<v1::ConfigRequest, v1::ConfigReply>,              //
    ControlRow<v1::ReloadRequest, v1::ReloadReply>,              //
    ControlRow<v1::DisagreementRequest, v1::DisagreementReply>,  //
    ControlRow<MetricsRequest, std::shared_ptr<const MetricFacts>>>;

template <typename Request, size_t index = 0>
constexpr size_t ControlRowIndex() {
  if constexpr (std::is_same_v<typename std::tuple_element_t<index, ControlRows>::Request, Request>)
    return index;
  else
    return ControlRowIndex<Request, index + 1>();
}
template <typename Request>
using ControlRowOf = std::tuple_element_t<ControlRowIndex<Request>(), ControlRows>;
template <typename Request>
using ReplyTo = typename ControlRowOf<Request>::Reply;

// Thread-safe once it is filled. An answer is given exactly once, on the core's or a gRPC thread, within a bounded time, also while the
// core ends.
class ControlTable {
 public:
  struct Parts {
    std::string node;  // this one
    Executor* core;
    std::shared_ptr<const bool> alive;  // false: a request that reaches the core is not answered by a row
    // Whether this node lets the caller use the role. Thread-safe.
    std::function<absl::Status(const Caller& caller, Role role)> allow;
    // Counts a refusal on the core.
    std::function<void(const Caller& caller, const std::string& what, const absl::Status& why)> on_refused;
  };

  // The core outlives it.
  explicit ControlTable(Parts parts) : parts_(std::move(parts)) {}
  ControlTable(const ControlTable&) = delete;
  ControlTable& operator=(const ControlTable&) = delete;

  // Sets the row of `Request`. `handler` is one of
  //   (request) -> reply,
  //   (request, caller, answer),
  //   (request, caller, may, answer): it notes what was refused. The others are not called for those who may not ask.
  template <typename Request, typename Handler>
  void Set(std::function<Access(const Request&)> access, Handler handler) {
    using Reply = ReplyTo<Request>;
    ControlRowOf<Request>& row = std::get<ControlRowOf<Request>>(rows_);
    row.access = std::move(access);
    row.answer = [handler = std::move(handler)](const Request& request, const Caller& caller, const absl::Status& may,
                                                Answer<Reply> answer) {
      if constexpr (std::is_invocable_v<Handler, const Request&, const Caller&, const absl::Status&, Answer<Reply>>) {
        handler(request, caller, may, std::move(answer));
      } else if (!may.ok()) {
        answer(may);
      } else if constexpr (std::is_invocable_v<Handler, const Request&, const Caller&, Answer<Reply>>) {
        handler(request, caller, std::move(answer));
      } else {
        answer(handler(request));
      }
    };
  }
  template <typename Request, typename Handler>
  void Set(Access access, Handler handler) {
    Set<Request>(std::function<Access(const Request&)>([access = std::move(access)](const Request&) { return access; }),
                 std::move(handler));
  }

  // Each request has its row.
  bool complete() const {
    return std::apply([](const auto&... row) { return ((row.access != nullptr && row.answer != nullptr) && ...); }, rows_);
  }

  template <typename Request>
  Access AccessTo(const Request& request) const {
    return std::get<ControlRowOf<Request>>(rows_).access(request);
  }
  absl::Status Allow(const Caller& caller, Role role) const { return parts_.allow(caller, role); }

  // REQUIRES: if the role is checked at the door, the server has done so. A request without a row is UNAVAILABLE.
  template <typename Request>
  void Ask(const Request& request, const Caller& caller, Answer<ReplyTo<Request>> answer) const {
    parts_.core->Post([this, alive = parts_.alive, request, caller, answer = std::move(answer)] {
      if (!*alive) return;
      const ControlRowOf<Request>& row = std::get<ControlRowOf<Request>>(rows_);
      if (row.answer != nullptr) row.answer(request, caller, Judge(request, caller, row.access(request)), answer);
    });
  }

 private:
  template <typename Request>
  absl::Status Judge(const Request& request, const Caller& caller, const Access& access) const {
    if (access.judged == Access::Where::kDoor || access.judged == Access::Where::kKnown) return absl::OkStatus();
    if constexpr (requires { request.node(); })
      if (access.judged == Access::Where::kOwner && request.node() != parts_.node) return absl::OkStatus();
    if (access.or_role.has_value() && Allow(caller, *access.or_role).ok()) return absl::OkStatus();
    absl::Status status = Allow(caller, access.role);
    if (!status.ok()) parts_.on_refused(caller, access.more_closely.empty() ? access.what : access.more_closely, status);
    return status;
  }

  const Parts parts_;
  ControlRows rows_;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_CORE_CONTROL_TABLE_H_
