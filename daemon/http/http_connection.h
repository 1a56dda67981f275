// One connection of the HTTP server.
#ifndef R2CC_DAEMON_HTTP_HTTP_CONNECTION_H_
#define R2CC_DAEMON_HTTP_HTTP_CONNECTION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/core/clock.h"
#include "daemon/http/http_server.h"
#include "daemon/http/request_parser.h"
#include "daemon/rpc/client_end.h"
#include "proto/r2cc.pb.h"

namespace r2cc::daemon {

// Name of this listener in refusals.
constexpr char kHttpListener[] = "http";

struct HttpServer::Connection {
  enum class State {
    kGreeting,  // TLS
    kReading,   // waits for a request
    kAsking,    // the core is asked
    kWriting,   // an answer is under way
    kStreaming  // events
  };
  uint64_t id = 0;
  State state = State::kReading;
  std::unique_ptr<ClientEnd> end;
  std::string address;
  std::string pem;  // what it has shown
  RequestParser parser;
  std::string in;  // what no request has had
  std::string out;
  size_t out_at = 0;
  uint64_t request = 0;  // its number: an answer that comes late is another one's
  bool head = false;
  bool over = false;   // the client sends nothing more
  bool close = false;  // behind the answer
  bool large = false;  // it has the place of the large document
  Nanos deadline = 0;
  Nanos write_by = 0;  // when all of `out` is to be taken
  uint32_t events = 0;
  // The request of a kStreaming connection.
  v1::EventsRequest wanted;
  uint64_t after = 0;
  Nanos heartbeat = 0;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_HTTP_HTTP_CONNECTION_H_
