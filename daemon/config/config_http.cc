#include <string>

#include "absl/strings/str_cat.h"
#include "base/names.h"
#include "daemon/config/config_text.h"

namespace r2cc::daemon {
namespace {

constexpr int kHttpHostsMax = 64;
// The limit of a host's name in DNS.
constexpr size_t kHostBytesMax = 253;

bool IsHostPattern(const std::string& text) {
  return !text.empty() && text.size() <= kHostBytesMax &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._*") == std::string::npos;
}

}  // namespace

absl::Status ReadHttp(const v1::DaemonConfig& file, const ConfigPlaces& places, Config* config) {
  const v1::HttpConfig& http = file.http();
  const int line = places.Line(file, "http");
  if (http.off()) {
    if (!http.listen().empty()) return places.Wrong(line, "http is either off or has listen, not both");
    config->http.listen.clear();
  } else if (!http.listen().empty()) {
    const auto listen = ParseHostPort(http.listen(), /*allow_port_zero=*/true);
    if (!listen.ok()) return places.Wrong(line, absl::StrCat("http.listen: ", listen.status().message()));
    if (!IsLoopback(listen->host) && !config->tls.has_value() && !config->insecure)
      return places.Wrong(line, absl::StrCat("http.listen: ", listen->host,
                                             " is not loopback: it needs tls { directory: ... } (`r2ccctl certs` makes it), or insecure: "
                                             "true, with which everybody who can reach the port may read all that r2ccctl shows"));
    config->http.listen = http.listen();
  }
  if (http.hosts_size() > kHttpHostsMax) return places.Wrong(line, absl::StrCat("http: more than ", kHttpHostsMax, " hosts"));
  for (const std::string& host : http.hosts()) {
    if (!IsHostPattern(host))
      return places.Wrong(line, absl::StrCat("http.hosts: '", host, "' is no name of a host, such as node0.example.org or *.example.org"));
    config->http.hosts.push_back(host);
  }
  return absl::OkStatus();
}

}  // namespace r2cc::daemon
