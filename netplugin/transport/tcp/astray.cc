#include "netplugin/transport/tcp/astray.h"

#include <net/if.h>
#include <unistd.h>

#include "base/core/address_choice.h"

namespace r2cc::net {
namespace {

// The index of the device that an interface is a part of, 0: none.
int MasterOf(const std::string& interface) {
  char target[256] = "";
  if (readlink(("/sys/class/net/" + interface + "/master").c_str(), target, sizeof(target) - 1) <= 0) return 0;
  const std::string path = target;
  return static_cast<int>(if_nametoindex(path.substr(path.rfind('/') + 1).c_str()));
}

}  // namespace

bool IsAstray(int incoming, const std::string& interface) {
  return incoming != 0 && incoming != static_cast<int>(if_nametoindex(interface.c_str())) && incoming != MasterOf(interface);
}

std::string AstrayLine(const std::string& address, const std::string& interface, const std::string& incoming) {
  return "R2CC: connections to " + address + " of " + interface + " come in by " + incoming +
         ": each interface of this node answers ARP for the others' addresses. Rails are not tied to their interfaces from now on, so that "
         "all "
         "carry data, and a lost NIC may take others with it: set " +
         kArpSysctls + "; r2ccctl doctor";
}

}  // namespace r2cc::net
