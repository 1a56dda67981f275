#include "daemon/io/listen_address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace r2cc::daemon {
namespace {

bool IsNumeric(const std::string& host) {
  in6_addr any{};
  return inet_pton(AF_INET, host.c_str(), &any) == 1 || inet_pton(AF_INET6, host.c_str(), &any) == 1;
}

}  // namespace

std::string LoopbackAlarm(const std::string& host, const std::string& address) {
  const bool meant = host.empty() || IsNumeric(host) || absl::EqualsIgnoreCase(host, "localhost");
  if (meant || (!absl::StartsWith(address, "127.") && address != "::1")) return "";
  return absl::StrCat("no other node reaches this one: listen names ", host, ", which is ", address,
                      " here, a loopback address: write its address in the management network in the configuration, or correct "
                      "/etc/hosts");
}

std::string FirstAddressOf(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), "0", &hints, &found) != 0) return "";
  char text[NI_MAXHOST] = "";
  if (getnameinfo(found->ai_addr, found->ai_addrlen, text, sizeof(text), nullptr, 0, NI_NUMERICHOST) != 0) text[0] = '\0';
  freeaddrinfo(found);
  return text;
}

}  // namespace r2cc::daemon
