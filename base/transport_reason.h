// Shortens gRPC's messages about a connection that broke, or did not come about, to what people need.
#ifndef R2CC_BASE_TRANSPORT_REASON_H_
#define R2CC_BASE_TRANSPORT_REASON_H_

#include <string>
#include <string_view>

namespace r2cc {

// Messages of gRPC and OpenSSL, and their meaning.
struct TransportText {
  std::string_view theirs;
  const char* ours;
};
inline constexpr char kItEnded[] = "the connection ended: the daemon stopped, or starts again";
inline constexpr TransportText kTransportTexts[] = {
    {"wrong version number", "it does not use TLS: it is another program, or a daemon without tls"},
    {"selected ALPN", "it uses TLS, but it is no r2ccd"},
    {"alert bad certificate", "it refuses the certificate of this end"},
    {"alert certificate", "it refuses the certificate of this end"},
    {"alert unknown ca", "it refuses the certificate of this end: another authority issued it"},
    {"keepalive watchdog timeout", "it does not answer any more"},
    {"Socket closed", kItEnded},
    {"Endpoint read failed", kItEnded},
    {"GOAWAY", kItEnded},
    {"Broken pipe", kItEnded},
    {"tcp handshaker shutdown", kItEnded},
    {"Stream removed", kItEnded},
    {"Received RST_STREAM", kItEnded},
    {"Cancelling all calls", kItEnded},
    {"CANCELLED", kItEnded},
    {"Deadline Exceeded", "it did not answer in time"},
    {"Trying to connect an http1.x server", "it speaks HTTP/1: it is another program"},
    {"connection attempt timed out before", "it accepts connections and does not answer: it is stopped, or another program"},
    {"Tls handshake failed", "TLS fails: it ends the connection, or is no r2ccd"},
    {"Unexpected error in RPC handling", "it met an error of its own: see its log"},
    {"Received message larger than max", "its answer is too long for this program: ask for a part of it"},
};

// "UNAVAILABLE: ipv4:127.0.0.1:1: Socket closed" without the code and the address.
inline std::string_view WithoutAddress(std::string_view text) {
  if (const size_t code = text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_"); code > 0 && text.substr(code).starts_with(": "))
    text.remove_prefix(code + 2);
  for (const std::string_view scheme : {"ipv4:", "ipv6:", "unix:"})
    if (const size_t end = text.find(": "); text.starts_with(scheme) && end != std::string_view::npos) text.remove_prefix(end + 2);
  return text;
}

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
  const bool connects = text.starts_with("failed to connect to all addresses");
  const bool handshake =
      connects && (text.find("Tls handshake failed") != std::string::npos || text.find("Cannot check peer") != std::string::npos);
  // "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:1: Failed to connect to remote host: Connection refused"
  for (const std::string_view before : {"last error: ", "UNKNOWN: ", "Failed to connect to remote host: ",
                                        "Custom verification check failed with error: ", "UNAUTHENTICATED: "})
    if (const size_t found = text.find(before); found != std::string::npos) text.erase(0, found + before.size());
  if (connects) text = std::string(WithoutAddress(text));
  for (const TransportText& entry : kTransportTexts)
    if (text.starts_with(entry.theirs) || (handshake && text.find(entry.theirs) != std::string::npos)) return entry.ours;
  return text;
}

}  // namespace r2cc

#endif  // R2CC_BASE_TRANSPORT_REASON_H_
