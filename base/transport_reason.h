// Shortens gRPC's messages about a connection that broke, or did not come about, to what people need.
#ifndef R2CC_BASE_TRANSPORT_REASON_H_
#define R2CC_BASE_TRANSPORT_REASON_H_

#include <string>
#include <string_view>

namespace r2cc {

// Messages of gRPC and OpenSSL, and their meaning.
struct TransportWords {
  std::string_view theirs;
  const char* ours;
};
inline constexpr TransportWords kTransportWords[] = {
    {"wrong version number", "it does not use TLS: it is another program, or a daemon without tls"},
    {"selected ALPN", "it uses TLS, but it is no r2ccd"},
    {"alert bad certificate", "it refuses the certificate of this end"},
    {"alert certificate", "it refuses the certificate of this end"},
    {"alert unknown ca", "it refuses the certificate of this end: another authority issued it"},
    {"keepalive watchdog timeout", "it does not answer any more"},
    {"Socket closed", "the connection ended: the daemon stopped, or starts again"},
    {"Endpoint read failed", "the connection ended: the daemon stopped, or starts again"},
    {"GOAWAY", "the connection ended: the daemon stopped, or starts again"},
};

inline std::string TransportReason(std::string text) {
  // "DNS resolution failed for h:1: C-ares status is not ARES_SUCCESS qtype=A name=h is_balancer=0: Domain name not found"
  constexpr std::string_view kName = " name=";
  if (const size_t name = text.find(kName); text.find("C-ares status") != std::string::npos && name != std::string::npos) {
    const size_t begin = name + kName.size();
    const std::string host = text.substr(begin, text.find(' ', begin) - begin);
    const size_t colon = text.rfind(": ");
    return "the name " + host + " is not resolved" + (colon == std::string::npos ? "" : text.substr(colon));
  }
  // A daemon's own sentence may quote such messages.
  const bool handshake = text.starts_with("failed to connect to all addresses") &&
                         (text.find("Tls handshake failed") != std::string::npos || text.find("Cannot check peer") != std::string::npos);
  // "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:1: Failed to connect to remote host: Connection refused"
  for (const std::string_view before : {"last error: ", "UNKNOWN: ", "Failed to connect to remote host: ",
                                        "Custom verification check failed with error: ", "UNAUTHENTICATED: "})
    if (const size_t found = text.find(before); found != std::string::npos) text.erase(0, found + before.size());
  for (const TransportWords& words : kTransportWords)
    if (text.starts_with(words.theirs) || (handshake && text.find(words.theirs) != std::string::npos)) return words.ours;
  return text;
}

}  // namespace r2cc

#endif  // R2CC_BASE_TRANSPORT_REASON_H_
