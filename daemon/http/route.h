// Finds out what an HTTP request asks for, or why it is refused. Pure.
#ifndef R2CC_DAEMON_HTTP_ROUTE_H_
#define R2CC_DAEMON_HTTP_ROUTE_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "daemon/http/page/page_file.h"
#include "daemon/http/request.h"
#include "daemon/http/response.h"
#include "proto/r2cc.pb.h"

namespace r2cc::daemon {

// Asks whether the daemon serves: that its core answers.
struct HealthzRoute {};
// Asks whether a job may start here, as `r2ccctl ready` does. `json`: as its -o json.
struct ReadyzRoute {
  size_t rails_min = 1;
  bool json = false;
};
struct MetricsRoute {};
// A file of the page at /.
struct PageRoute {
  const PageFile* file = nullptr;
};
// The cluster as the page shows it: nodes whose names match `node_glob`; empty: all.
struct MapRoute {
  std::string node_glob;
};
// Asks for the client's identity, and whether it may start drills.
struct WhoRoute {};
// The requests behind `r2ccctl status`, `nic list`, `jobs`, `plan show`, `plan why`, `config show`, `events` and `nic why`. The action is
// the begin or the end of a drill, and the only request that changes anything.
using Route = std::variant<HealthzRoute, ReadyzRoute, MetricsRoute, PageRoute, MapRoute, WhoRoute, v1::StatusRequest, v1::ListNicsRequest,
                           v1::ListJobsRequest, v1::GetPlanRequest, v1::ExplainPlanRequest, v1::ConfigRequest, v1::EventsRequest,
                           v1::ExplainNicRequest, v1::NicActionRequest>;

// Names that clients may call this daemon by. Addresses and localhost always are. * in a name is any text.
using HostNames = std::vector<std::string>;

struct HttpRefusal {
  int status = 0;
  std::string reason;  // for the count: one of a closed list; empty: a mistake, which is not counted
  std::string text;    // one line for a person
};

// The route of `request`. A web page that made its own name lead to this machine (DNS rebinding) sends that name as Host, and a page of
// another origin sends its Origin: both are refused. A drill is a POST that this daemon's own page sends: it needs its Origin, and the name
// that a person typed, in a header that no form can set.
std::variant<Route, HttpRefusal> RouteOf(const HttpRequest& request, const HostNames& names);

// Whether the route needs no role: whether a daemon is up is no secret.
bool IsOpen(const Route& route);

// The text of "%2F" and "+" decoded; false: it is malformed.
bool DecodeQuery(std::string_view text, std::string* decoded);

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_HTTP_ROUTE_H_
