#include "daemon/http/request_parser.h"

#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>

namespace r2cc::daemon {
namespace http = boost::beast::http;

class RequestParser::Beast {
 public:
  Beast() {
    parser_.header_limit(kHeaderBytesMax);
    parser_.body_limit(0);
    parser_.eager(true);
  }
  http::request_parser<http::empty_body>& get() { return parser_; }

 private:
  http::request_parser<http::empty_body> parser_;
};

RequestParser::RequestParser() = default;
RequestParser::~RequestParser() = default;

RequestParser::State RequestParser::Refuse(int status) {
  error_status_ = status;
  beast_.reset();
  return State::kBad;
}

RequestParser::State RequestParser::Parse(std::string* bytes) {
  if (beast_ == nullptr) {
    // An empty line or two before a request are no fault (RFC 9112, 2.2).
    const size_t begin = bytes->find_first_not_of("\r\n");
    bytes->erase(0, begin == std::string::npos ? bytes->size() : begin);
    if (bytes->empty()) return State::kMore;
    beast_ = std::make_unique<Beast>();
  }
  auto& parser = beast_->get();
  boost::system::error_code error;
  const size_t taken = parser.put(boost::asio::const_buffer(bytes->data(), bytes->size()), error);
  bytes->erase(0, taken);
  if (error == http::error::header_limit) return Refuse(431);
  if (error == http::error::body_limit || error == http::error::unexpected_body) return Refuse(413);
  if (error == http::error::bad_version) return Refuse(505);
  if (error && error != http::error::need_more) return Refuse(400);
  if (!parser.is_done()) return bytes->size() > kHeaderBytesMax ? Refuse(431) : State::kMore;
  const auto& message = parser.get();
  if (message.version() != 10 && message.version() != 11) return Refuse(505);
  // One of two names is false.
  if (message.count(http::field::host) > 1 || message.count(http::field::origin) > 1) return Refuse(400);
  const auto text = [](boost::beast::string_view view) { return std::string(view.data(), view.size()); };
  request_ = {.method = text(message.method_string()),
              .target = text(message.target()),
              .host = text(message[http::field::host]),
              .origin = text(message[http::field::origin]),
              .last_event_id = text(message["Last-Event-ID"]),
              .confirm = text(message["R2CC-Confirm"]),
              .keep_alive = message.keep_alive()};
  beast_.reset();
  return State::kDone;
}

}  // namespace r2cc::daemon
