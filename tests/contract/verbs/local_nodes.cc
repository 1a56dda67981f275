#include "tests/contract/verbs/local_nodes.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace r2cc::contract {
namespace {

void Shell(const std::string& command) { ASSERT_EQ(std::system(command.c_str()), 0) << command; }

// Faults come at once: an emulated machine takes a tenth of a second, and on a busy host a second, to start a program.
void Ask(unsigned long what, const std::string& interface, int value) {
  ifreq request{};
  interface.copy(request.ifr_name, IFNAMSIZ - 1);
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (what == SIOCSIFFLAGS) {
    EXPECT_EQ(ioctl(fd, SIOCGIFFLAGS, &request), 0) << interface << ": " << std::strerror(errno);
    request.ifr_flags = static_cast<int16_t>((request.ifr_flags & ~IFF_UP) | value);
  } else {
    request.ifr_ifindex = value;
  }
  EXPECT_EQ(ioctl(fd, what, &request), 0) << interface << ": " << std::strerror(errno);
  close(fd);
}

void SetUp(const std::string& interface, bool up) { Ask(SIOCSIFFLAGS, interface, up ? IFF_UP : 0); }

void Plug(const std::string& port, const std::string& bridge, bool in) {
  Ask(in ? SIOCBRADDIF : SIOCBRDELIF, bridge, static_cast<int>(if_nametoindex(port.c_str())));
}

// The queue holds what the queue pairs of a rail have under way, or soft-RoCE is told of each packet that found no room.
void Tbf(const std::string& interface, int64_t bytes_per_s) {
  Shell("tc qdisc replace dev " + interface + " root tbf rate " + std::to_string(bytes_per_s * 8) + "bit burst 64kb limit 8mb");
}

}  // namespace

int LocalNodes::OpenNamespace(End /*end*/) const { return open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC); }

void LocalNodes::Cut(End end, int rail) {
  SetUp(FaultyEnd(end, rail), false);
  StateOf(end, rail).cut = true;
}

void LocalNodes::Silence(End end, int rail) {
  const Cable& cable = CableOf(rail);
  ASSERT_FALSE(cable.bridge.empty()) << "a NIC's cable cannot fall silent";
  if (!StateOf(end, rail).silenced) Plug(FaultyEnd(end, rail), BridgeOf(rail), false);
  StateOf(end, rail).silenced = true;
}

void LocalNodes::Heal(End end, int rail) {
  State& state = StateOf(end, rail);
  if (state.silenced) Plug(FaultyEnd(end, rail), BridgeOf(rail), true);
  if (state.cut) SetUp(FaultyEnd(end, rail), true);
  if (state.cut && !CableOf(rail).mend.empty()) Shell(CableOf(rail).mend);
  state.cut = state.silenced = false;
}

void LocalNodes::Shape(End end, int rail, int64_t bytes_per_s) {
  const Cable& cable = CableOf(rail);
  const auto side = static_cast<size_t>(end);
  ASSERT_FALSE(cable.bridge.empty()) << "a NIC's cable has the rate that it has";
  Tbf(cable.interfaces[side], bytes_per_s);
  Tbf(cable.ports[side], bytes_per_s);
  StateOf(end, rail).bytes_per_s = bytes_per_s;
}

void LocalNodes::Reset(int64_t rail_bytes_per_s) {
  for (End end = 0; end < 2; ++end)
    for (int rail = kOob; rail < kRails; ++rail) {
      Heal(end, rail);
      const bool fits = CableOf(rail).bridge.empty() || StateOf(end, rail).bytes_per_s == rail_bytes_per_s;
      if (rail != kOob && !fits) Shape(end, rail, rail_bytes_per_s);
    }
}

void LocalNodes::SetFullFabric(bool full) {
  if (full == full_fabric_) return;
  full_fabric_ = full;
  for (int rail = 0; rail < kRails; ++rail)
    for (End end = 0; end < 2; ++end) {
      const Cable& cable = CableOf(rail);
      Shell("ip link set " + cable.ports[static_cast<size_t>(end)] + " master " + BridgeOf(rail));
      // As in rails.sh, for what has this rail's address and goes to another rail's.
      const auto address = [](int of_rail, End of_end) { return "10.0." + std::to_string(of_rail) + "." + std::to_string(of_end + 1); };
      const std::string table = std::to_string(200 + 2 * rail + end);
      for (int other = 0; other < kRails; ++other) {
        if (other == rail) continue;
        const std::string peer = address(other, 1 - end);
        const char* const verb = full ? " add " : " del ";
        Shell(std::string("ip route") + verb + peer + " dev " + cable.interfaces[static_cast<size_t>(end)] + " src " + address(rail, end) +
              " table " + table);
        Shell(std::string("ip rule") + verb + "pref 9 iif lo from " + address(rail, end) + " to " + peer + " lookup " + table);
      }
    }
}

std::array<Cable, kRails + 1> CablesOfGuest() {
  std::array<Cable, kRails + 1> cables;
  for (size_t i = 0; i < cables.size(); ++i) {
    const std::string rail = std::to_string(i);
    cables[i] = {
        .interfaces = {"v" + rail + "a", "v" + rail + "b"}, .ports = {"p" + rail + "a", "p" + rail + "b"}, .bridge = "bridge" + rail};
  }
  return cables;
}

}  // namespace r2cc::contract
