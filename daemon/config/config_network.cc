#include <arpa/inet.h>

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "daemon/config/config.h"

namespace r2cc::daemon {
namespace {

// 4 or 16 bytes; empty: `text` is no numeric address.
std::string Bytes(const std::string& text) {
  char bytes[16];
  if (inet_pton(AF_INET, text.c_str(), bytes) == 1) return std::string(bytes, 4);
  if (inet_pton(AF_INET6, text.c_str(), bytes) == 1) return std::string(bytes, 16);
  return "";
}

bool BeginAlike(const std::string& a, const std::string& b, int bits) {
  const auto whole = static_cast<size_t>(bits / 8);
  if (a.compare(0, whole, b, 0, whole) != 0) return false;
  const int rest = bits % 8;
  return rest == 0 || static_cast<unsigned char>(a[whole] ^ b[whole]) >> (8 - rest) == 0;
}

}  // namespace

absl::StatusOr<Network> Network::Parse(std::string_view text) {
  const auto wrong = [&](const std::string& why) {
    return absl::InvalidArgumentError(absl::StrCat("'", std::string(text), "' is no network such as 10.1.0.0/16: ", why));
  };
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return wrong("no slash");
  const std::string digits(text.substr(slash + 1));
  // "[fd00::]/64" is one, too: in host:port an address of IPv6 has brackets.
  std::string_view address = text.substr(0, slash);
  if (address.size() > 2 && address.front() == '[' && address.back() == ']') address = address.substr(1, address.size() - 2);
  Network network;
  network.text_ = absl::StrCat(std::string(address), "/", digits);
  network.bytes_ = Bytes(std::string(address));
  if (network.bytes_.empty()) return wrong("the text before the slash is no numeric address");
  const bool number = !digits.empty() && std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
  const int most = static_cast<int>(network.bytes_.size()) * 8;
  if (!number || !absl::SimpleAtoi(digits, &network.bits_) || network.bits_ > most)
    return wrong(absl::StrCat("after the slash the number of bits is expected, 0 to ", most));
  return network;
}

bool Network::Contains(const std::string& address) const {
  const std::string bytes = Bytes(address);
  return bytes.size() == bytes_.size() && BeginAlike(bytes, bytes_, bits_);
}

}  // namespace r2cc::daemon
