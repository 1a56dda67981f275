// gRPC's words for a connection that broke, or did not come about, cut down to what people need.
#ifndef R2CC_BASE_TRANSPORT_REASON_H_
#define R2CC_BASE_TRANSPORT_REASON_H_

#include <string>
#include <string_view>

namespace r2cc {

inline std::string TransportReason(std::string text) {
  // "DNS resolution failed for h:1: C-ares status is not ARES_SUCCESS qtype=A name=h is_balancer=0: Domain name not found"
  constexpr std::string_view kName = " name=";
  if (const size_t name = text.find(kName); text.find("C-ares status") != std::string::npos && name != std::string::npos) {
    const size_t begin = name + kName.size();
    const std::string host = text.substr(begin, text.find(' ', begin) - begin);
    const size_t colon = text.rfind(": ");
    return "the name " + host + " is not resolved" + (colon == std::string::npos ? "" : text.substr(colon));
  }
  // "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:1: Failed to connect to remote host: Connection refused"
  for (const std::string_view before :
       {"last error: ", "Failed to connect to remote host: ", "Custom verification check failed with error: ", "UNAUTHENTICATED: "})
    if (const size_t found = text.find(before); found != std::string::npos) text.erase(0, found + before.size());
  return text;
}

}  // namespace r2cc

#endif  // R2CC_BASE_TRANSPORT_REASON_H_
