#include "daemon/http/response.h"

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "proto/json.h"

namespace r2cc::daemon {
namespace {

const char* ReasonOf(int status) {
  switch (status) {
    case 200: return "OK";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 413: return "Content Too Large";
    case 421: return "Misdirected Request";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 500: return "Internal Server Error";
    case 503: return "Service Unavailable";
    case 505: return "HTTP Version Not Supported";
    default: return "Unknown";
  }
}

// A response may not run, load or frame anything. The page at / may load and ask what this daemon serves, and its scripts cannot make
// markup of text (trusted types).
constexpr char kNothing[] = "default-src 'none'";
constexpr char kOwnFiles[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; require-trusted-types-for 'script'; "
    "trusted-types 'none'";
// No page of another origin gets a response.
constexpr char kSecurityFields[] =
    "; frame-ancestors 'none'; base-uri 'none'; form-action 'none'\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "Cache-Control: no-store\r\n";

}  // namespace

HttpResponse HttpError(int status, std::string_view text) { return {.status = status, .body = absl::StrCat(std::string(text), "\n")}; }

std::string Render(const HttpResponse& response, bool head, bool close) {
  std::string bytes = absl::StrCat("HTTP/1.1 ", response.status, " ", ReasonOf(response.status), "\r\nContent-Type: ", response.type,
                                   "\r\nContent-Security-Policy: ", response.page ? kOwnFiles : kNothing, kSecurityFields);
  if (response.status == 405) absl::StrAppend(&bytes, "Allow: GET, HEAD\r\n");
  if (response.status == 429 || response.status == 503) absl::StrAppend(&bytes, "Retry-After: 1\r\n");
  if (!response.stream) absl::StrAppend(&bytes, "Content-Length: ", response.body.size(), "\r\n");
  if (close || response.stream) absl::StrAppend(&bytes, "Connection: close\r\n");
  absl::StrAppend(&bytes, "\r\n");
  if (!head) bytes += response.body;
  return bytes;
}

std::string EventFrame(const v1::Event& event) {
  const absl::StatusOr<std::string> line = ToJsonLine(event);
  // A text that is not UTF-8 comes from nobody: names and messages were cleaned on their way in.
  if (!line.ok()) return absl::StrCat("id: ", event.instance(), "-", event.sequence(), "\ndata: {}\n\n");
  return absl::StrCat("id: ", event.instance(), "-", event.sequence(), "\ndata: ", *line, "\n");
}

std::optional<EventPlace> ParseEventId(std::string_view text) {
  const size_t dash = text.find('-');
  EventPlace place;
  if (dash == std::string_view::npos || text.size() > 64) return std::nullopt;
  if (!absl::SimpleAtoi(std::string(text.substr(0, dash)), &place.instance)) return std::nullopt;
  if (!absl::SimpleAtoi(std::string(text.substr(dash + 1)), &place.sequence)) return std::nullopt;
  return place;
}

}  // namespace r2cc::daemon
