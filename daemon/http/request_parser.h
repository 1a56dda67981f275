// Parses HTTP/1 requests from bytes. Does no I/O: Boost.Beast's parser, with bounds.
#ifndef R2CC_DAEMON_HTTP_REQUEST_PARSER_H_
#define R2CC_DAEMON_HTTP_REQUEST_PARSER_H_

#include <cstddef>
#include <memory>
#include <string>

#include "daemon/http/request.h"

namespace r2cc::daemon {

// One request after the other, of one connection. One thread at a time.
class RequestParser {
 public:
  // Request line and header fields together. Prometheus sends 300 bytes, a browser 1 KiB.
  static constexpr size_t kHeaderBytesMax = 8192;

  enum class State {
    kMore,  // the request is not whole
    kDone,  // request() is it
    kBad,   // no HTTP, or more than the bounds: error_status() is the answer; nothing of the connection is understood from here on
  };

  RequestParser();
  ~RequestParser();
  RequestParser(const RequestParser&) = delete;
  RequestParser& operator=(const RequestParser&) = delete;

  // Looks at the bytes of a connection that no request has had, and takes those of one request away from their beginning. No request has a
  // body: one with a body is kBad.
  State Parse(std::string* bytes);

  // REQUIRES: the last Parse() returned kDone.
  const HttpRequest& request() const { return request_; }
  // REQUIRES: the last Parse() returned kBad. 400, 413, 431 or 505.
  int error_status() const { return error_status_; }

 private:
  class Beast;
  State Refuse(int status);

  std::unique_ptr<Beast> beast_;  // of the request under way
  HttpRequest request_;
  int error_status_ = 0;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_HTTP_REQUEST_PARSER_H_
