// The answer to one gRPC call that is refused, as HTTP/2 (RFC 9113) and HPACK (RFC 7541) have it.
#ifndef R2CC_DAEMON_RPC_HTTP2_ANSWER_H_
#define R2CC_DAEMON_RPC_HTTP2_ANSWER_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"

namespace r2cc::daemon {

// A server's first frame.
constexpr char kHttp2Settings[] = "\0\0\0\x4\0\0\0\0";

inline std::string HpackText(const std::string& text) {
  std::string coded;
  size_t bytes = text.size();
  if (bytes < 127) {
    coded.push_back(static_cast<char>(bytes));
  } else {
    coded.push_back(127);
    for (bytes -= 127; bytes >= 128; bytes /= 128) coded.push_back(static_cast<char>(bytes % 128 + 128));
    coded.push_back(static_cast<char>(bytes));
  }
  return coded + text;
}

// gRPC's answer to the call that is `stream`: only trailers.
inline std::string Http2Answer(uint32_t stream, const absl::Status& why) {
  std::string message;
  for (const char c : why.message().substr(0, 512))
    message += c >= ' ' && c <= '~' && c != '%' ? std::string(1, c) : absl::StrFormat("%%%02X", static_cast<unsigned char>(c));
  std::string block = "\x88";  // :status 200
  for (const auto& [name, value] : {std::pair<std::string, std::string>("content-type", "application/grpc"),
                                    {"grpc-status", std::to_string(static_cast<int>(why.code()))},
                                    {"grpc-message", message}})
    block += std::string(1, '\0') + HpackText(name) + HpackText(value);
  const auto frame = [](char type, char flags, uint32_t of, const std::string& payload) {
    const size_t n = payload.size();
    return std::string({char(n >> 16), char(n >> 8), char(n), type, flags, char(of >> 24), char(of >> 16), char(of >> 8), char(of)}) +
           payload;
  };
  const std::string last{char(stream >> 24), char(stream >> 16), char(stream >> 8), char(stream)};
  return frame(0x1, 0x5, stream, block) + frame(0x7, 0, 0, last + std::string(4, '\0'));  // HEADERS, GOAWAY
}

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_RPC_HTTP2_ANSWER_H_
