// One HTTP request, as far as this daemon looks at it.
#ifndef R2CC_DAEMON_HTTP_REQUEST_H_
#define R2CC_DAEMON_HTTP_REQUEST_H_

#include <string>

namespace r2cc::daemon {

struct HttpRequest {
  std::string method;         // "GET"
  std::string target;         // as it was sent: path and query
  std::string host;           // of the header; empty: there is none
  std::string origin;         // of the header; empty: there is none, so no web page has sent it
  std::string last_event_id;  // of the header
  std::string confirm;        // of the header R2CC-Confirm: NODE/NIC, as a person typed it
  bool keep_alive = false;    // the client wants to ask more

  bool head() const { return method == "HEAD"; }
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_HTTP_REQUEST_H_
