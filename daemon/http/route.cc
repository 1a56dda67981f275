#include "daemon/http/route.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/core/clock.h"
#include "base/core/glob.h"
#include "base/event_kinds.h"
#include "daemon/config/config.h"

namespace r2cc::daemon {
namespace {

// A longer value is no name.
constexpr size_t kValueBytesMax = 256;
constexpr size_t kParametersMax = 32;
// As r2ccctl fail-nic --for.
constexpr uint32_t kDrillSecondsMax = 24 * 3600;
constexpr char kDrillPath[] = "/api/v1/drill";

using Parameters = std::vector<std::pair<std::string, std::string>>;
// Takes the value of a parameter; false: it is none.
using Setter = std::function<bool(const std::string&)>;
using Setters = std::map<std::string, Setter>;

HttpRefusal Wrong(std::string text) { return {400, "", std::move(text)}; }

Setter Flag(std::function<void(bool)> set) {
  return [set = std::move(set)](const std::string& value) {
    if (value != "0" && value != "1") return false;
    set(value == "1");
    return true;
  };
}
Setter Text(std::function<void(const std::string&)> set) {
  return [set = std::move(set)](const std::string& value) {
    if (value.empty() || value.size() > kValueBytesMax) return false;
    set(value);
    return true;
  };
}
template <typename Number>
Setter Count(std::function<void(Number)> set) {
  return [set = std::move(set)](const std::string& value) {
    Number number = 0;
    if (!absl::SimpleAtoi(value, &number)) return false;
    set(number);
    return true;
  };
}

std::optional<HttpRefusal> Apply(const Parameters& parameters, const Setters& setters) {
  for (const auto& [name, value] : parameters) {
    const auto setter = setters.find(name);
    if (setter == setters.end()) {
      std::vector<std::string> known;
      for (const auto& [one, set] : setters) known.push_back(one);
      return Wrong(known.empty() ? "this path takes no parameters" : absl::StrCat("this path takes ", absl::StrJoin(known, ", ")));
    }
    if (!setter->second(value)) return Wrong(absl::StrCat("the value of ", name, " is not understood"));
  }
  return std::nullopt;
}

// Applies the parameters to `request`, which `setters` refer to.
template <typename Request>
std::variant<Route, HttpRefusal> Built(const Parameters& parameters, Request* request, const Setters& setters) {
  if (auto refusal = Apply(parameters, setters)) return *std::move(refusal);
  return Route(std::move(*request));
}

std::variant<Route, HttpRefusal> StatusOf(const Parameters& parameters) {
  v1::StatusRequest request;
  return Built(parameters, &request,
               {{"bad", Flag([&](bool on) { request.set_bad(on); })},
                {"node", Text([&](const std::string& glob) { request.set_node_glob(glob); })}});
}

std::variant<Route, HttpRefusal> NicsOf(const Parameters& parameters) {
  v1::ListNicsRequest request;
  const Setter state = [&](const std::string& value) {
    v1::NicState parsed;
    if (!v1::NicState_Parse(absl::AsciiStrToUpper(value), &parsed) || parsed == v1::NIC_STATE_UNSPECIFIED) return false;
    request.add_states(parsed);
    return true;
  };
  return Built(parameters, &request,
               {{"bad", Flag([&](bool on) { request.set_bad(on); })},
                {"node", Text([&](const std::string& glob) { request.set_node_glob(glob); })},
                {"state", state}});
}

std::variant<Route, HttpRefusal> JobsOf(const Parameters& parameters) {
  v1::ListJobsRequest request;
  return Built(parameters, &request,
               {{"ended", Flag([&](bool on) { request.set_ended(on); })},
                {"all_ended", Flag([&](bool on) { request.set_all_ended(on); })},
                {"bad", Flag([&](bool on) { request.set_bad(on); })},
                {"job", Text([&](const std::string& glob) { request.set_job_glob(glob); })},
                {"uid", Count<uint32_t>([&](uint32_t uid) { request.set_uid(uid); })},
                {"nic", Text([&](const std::string& nic) { request.set_nic(nic); })},
                {"node", Text([&](const std::string& glob) { request.set_node_glob(glob); })}});
}

std::variant<Route, HttpRefusal> EventsOf(const HttpRequest& http, const Parameters& parameters) {
  v1::EventsRequest request;
  request.set_follow(true);
  const Setter kind = [&](const std::string& value) {
    if (!IsEventKind(value)) return false;
    request.add_kinds(value);
    return true;
  };
  auto built = Apply(parameters, {{"follow", Flag([&](bool on) { request.set_follow(on); })},
                                  {"last", Count<uint32_t>([&](uint32_t last) { request.set_last(last); })},
                                  {"since_ns", Count<int64_t>([&](int64_t since) { request.set_since_ns(since); })},
                                  {"node", Text([&](const std::string& node) { request.set_node(node); })},
                                  {"nic", Text([&](const std::string& nic) { request.set_nic(nic); })},
                                  {"kind", kind}});
  if (built.has_value()) return *std::move(built);
  if (http.last_event_id.empty()) return Route(std::move(request));
  const auto place = ParseEventId(http.last_event_id);
  if (!place.has_value()) return Wrong("the header Last-Event-ID is no id of these events");
  request.set_after_instance(place->instance);
  request.set_after_sequence(place->sequence);
  request.clear_last();  // a client that resumes misses nothing
  return Route(std::move(request));
}

std::variant<Route, HttpRefusal> ReadyOf(const Parameters& parameters, bool json) {
  ReadyzRoute route{.json = json};
  const Setter rails = [&](const std::string& value) {
    uint32_t number = 0;
    if (!absl::SimpleAtoi(value, &number) || number == 0) return false;
    route.rails_min = number;
    return true;
  };
  return Built(parameters, &route, {{"min_rails", rails}});
}

std::variant<Route, HttpRefusal> MapOf(const Parameters& parameters) {
  MapRoute route;
  return Built(parameters, &route, {{"node", Text([&](const std::string& glob) { route.node_glob = glob; })}});
}

std::variant<Route, HttpRefusal> WhyOf(const Parameters& parameters) {
  v1::ExplainNicRequest request;
  auto built = Apply(parameters, {{"node", Text([&](const std::string& node) { request.set_node(node); })},
                                  {"nic", Text([&](const std::string& nic) { request.set_nic(nic); })}});
  if (built.has_value()) return *std::move(built);
  if (request.node().empty() || request.nic().empty()) return Wrong("this path needs node=NODE and nic=NIC");
  return Route(std::move(request));
}

// A page of another origin cannot send it: the browser adds that page's Origin, and asks this daemon first whether the page may send such a
// header, which this daemon never allows.
std::variant<Route, HttpRefusal> DrillOf(const HttpRequest& http, const Parameters& parameters) {
  v1::NicActionRequest request;
  const Setter action = [&](const std::string& value) {
    if (value != "fail" && value != "restore") return false;
    request.set_action(value == "fail" ? v1::FAIL : v1::RESTORE);
    return true;
  };
  const Setter seconds = [&](const std::string& value) {
    uint32_t number = 0;
    if (!absl::SimpleAtoi(value, &number) || number == 0 || number > kDrillSecondsMax) return false;
    request.set_drill_ns(int64_t{number} * kNanosPerSecond);
    return true;
  };
  auto built = Apply(parameters, {{"node", Text([&](const std::string& node) { request.set_node(node); })},
                                  {"nic", Text([&](const std::string& nic) { request.set_nic(nic); })},
                                  {"action", action},
                                  {"seconds", seconds}});
  if (built.has_value()) return *std::move(built);
  if (request.node().empty() || request.nic().empty() || request.action() == v1::NIC_ACTION_UNSPECIFIED)
    return Wrong("a drill needs node=NODE, nic=NIC and action=fail or action=restore");
  if (http.origin.empty()) return HttpRefusal{403, "origin", "drills come from this daemon's own page only: the header Origin is missing"};
  if (http.confirm != absl::StrCat(request.node(), "/", request.nic()))
    return Wrong("the header R2CC-Confirm has to name the NIC, as NODE/NIC");
  return Route(std::move(request));
}

template <typename Request>
std::variant<Route, HttpRefusal> Plain(const Parameters& parameters) {
  Request request;
  return Built(parameters, &request, {});
}

// The host of "host:port"; empty: it is malformed.
std::string HostOf(std::string_view text) {
  if (text.empty()) return "";
  std::string_view port;
  if (text.front() == '[') {
    const size_t end = text.find(']');
    if (end == std::string_view::npos) return "";
    port = text.substr(end + 1);
    text = text.substr(1, end - 1);
  } else if (const size_t colon = text.find(':'); colon != std::string_view::npos) {
    port = text.substr(colon);
    text = text.substr(0, colon);
  }
  if (!port.empty() && (port.front() != ':' || port.find_first_not_of("0123456789", 1) != std::string_view::npos)) return "";
  return absl::AsciiStrToLower(std::string(text));
}

bool IsOwnName(std::string host, const HostNames& names) {
  if (host == "localhost" || !CanonicalAddress(host).empty()) return true;
  if (absl::EndsWith(host, ".")) host.pop_back();
  return !host.empty() &&
         std::any_of(names.begin(), names.end(), [&](const std::string& name) { return GlobFits(absl::AsciiStrToLower(name), host); });
}

// The request may come from a web page that has no business here.
std::optional<HttpRefusal> Misled(const HttpRequest& request, const HostNames& names) {
  const std::string host = HostOf(request.host);
  if (host.empty()) return HttpRefusal{400, "host", "the header Host is missing, or malformed"};
  if (!IsOwnName(host, names))
    return HttpRefusal{421, "host",
                       "the header Host is no name of this node: call it by its address, or set http { hosts } in its configuration"};
  if (request.origin.empty()) return std::nullopt;
  const std::string own = absl::AsciiStrToLower(request.host), origin = absl::AsciiStrToLower(request.origin);
  if (origin == absl::StrCat("http://", own) || origin == absl::StrCat("https://", own)) return std::nullopt;
  return HttpRefusal{403, "origin", "a page of another origin may not ask this daemon"};
}

}  // namespace

bool DecodeQuery(std::string_view text, std::string* decoded) {
  decoded->clear();
  const auto hex = [](char c) { return absl::ascii_isdigit(c) ? c - '0' : absl::ascii_tolower(c) - 'a' + 10; };
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+') {
      *decoded += ' ';
    } else if (text[i] != '%') {
      *decoded += text[i];
    } else {
      if (i + 2 >= text.size() || !absl::ascii_isxdigit(text[i + 1]) || !absl::ascii_isxdigit(text[i + 2])) return false;
      *decoded += static_cast<char>(hex(text[i + 1]) * 16 + hex(text[i + 2]));
      i += 2;
    }
  }
  return true;
}

std::variant<Route, HttpRefusal> RouteOf(const HttpRequest& request, const HostNames& names) {
  if (auto misled = Misled(request, names)) return *std::move(misled);
  const std::string_view target = request.target;
  const size_t mark = target.find('?');
  const std::string path(target.substr(0, mark));
  const bool asks = request.method == "GET" || request.method == "HEAD";
  if (path == kDrillPath ? request.method != "POST" : !asks)
    return HttpRefusal{405, "", "only GET and HEAD are allowed here, and POST for a drill"};
  Parameters parameters;
  if (mark != std::string_view::npos) {
    for (const absl::string_view part : absl::StrSplit(absl::string_view(target.data() + mark + 1, target.size() - mark - 1), '&')) {
      if (part.empty()) continue;
      const size_t equals = part.find('=');
      std::string name, value;
      const std::string_view view(part.data(), part.size());
      if (!DecodeQuery(view.substr(0, equals), &name) ||
          !DecodeQuery(equals == std::string_view::npos ? "" : view.substr(equals + 1), &value) || parameters.size() >= kParametersMax)
        return Wrong("the parameters behind the question mark are malformed, or too many");
      parameters.emplace_back(std::move(name), std::move(value));
    }
  }
  if (path == kDrillPath) return DrillOf(request, parameters);
  // The page's own parameters, if any, are for the page.
  if (const PageFile* const file = FindPageFile(path); file != nullptr) return Route(PageRoute{file});
  if (path == "/metrics") return Route(MetricsRoute{});  // a scraper may have parameters of its own
  if (path == "/healthz") return Plain<HealthzRoute>(parameters);
  if (path == "/readyz") return ReadyOf(parameters, false);
  if (path == "/api/v1/ready") return ReadyOf(parameters, true);
  if (path == "/api/v1/status") return StatusOf(parameters);
  if (path == "/api/v1/nics") return NicsOf(parameters);
  if (path == "/api/v1/jobs") return JobsOf(parameters);
  if (path == "/api/v1/plan") return Plain<v1::GetPlanRequest>(parameters);
  if (path == "/api/v1/plan/why") return Plain<v1::ExplainPlanRequest>(parameters);
  if (path == "/api/v1/config") return Plain<v1::ConfigRequest>(parameters);
  if (path == "/api/v1/events") return EventsOf(request, parameters);
  if (path == "/api/v1/nic/why") return WhyOf(parameters);
  if (path == "/api/v1/map") return MapOf(parameters);
  if (path == "/api/v1/who") return Plain<WhoRoute>(parameters);
  return HttpRefusal{404, "", "there is nothing at this path; / lists what there is"};
}

bool IsOpen(const Route& route) {
  return std::holds_alternative<HealthzRoute>(route) || std::holds_alternative<ReadyzRoute>(route) ||
         std::holds_alternative<PageRoute>(route);
}

}  // namespace r2cc::daemon
