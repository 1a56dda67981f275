// Which rails the plain plugin uses: the same R2CC_RAILS as the real one.
#ifndef R2CC_TESTS_CONTROL_RAILS_H_
#define R2CC_TESTS_CONTROL_RAILS_H_

#include <netinet/in.h>

#include <string>
#include <string_view>
#include <vector>

namespace r2cc::control {

struct Interface {
  std::string name;
  sockaddr_in address{};
  bool usable = false;  // up and not loopback: taken if nobody names rails
};

struct Rail {
  std::string name;       // as the user wrote it
  std::string interface;  // to bind to; empty for a rail that is named by its address
  sockaddr_in address{};  // port 0
};

// The IPv4 interfaces of this machine, down ones included.
std::vector<Interface> ListInterfaces();

// Pure. text: interfaces or IPv4 addresses, comma separated; "^" in front of one excludes it; empty, or exclusions only: every usable
// interface. False, with one line in *error, if a rail does not exist.
bool ParseRails(std::string_view text, const std::vector<Interface>& interfaces, std::vector<Rail>* rails, std::string* error);

}  // namespace r2cc::control

#endif  // R2CC_TESTS_CONTROL_RAILS_H_
