// Chooses the address of a network interface that carries traffic: one rule for the plugin, the daemon and the doctor. Pure.
#ifndef R2CC_BASE_CORE_ADDRESS_CHOICE_H_
#define R2CC_BASE_CORE_ADDRESS_CHOICE_H_

#include <string>

namespace r2cc {

// The kernel's flags of an address that an interface has.
struct AddressState {
  bool duplicate = false;   // another node of the network has it ("dadfailed"): the kernel sends nothing from it
  bool tentative = false;   // the kernel still looks for a duplicate
  bool deprecated = false;  // it is to be used for nothing new

  friend bool operator==(const AddressState&, const AddressState&) = default;
};

// Addresses are numeric, without scope. 169.254.0.0/16 or fe80::/10: an interface has one unasked, and the same may be on every node.
bool IsLinkLocal(const std::string& address);
// 127.0.0.0/8 or ::1.
bool IsLoopback(const std::string& address);

// How well an address of an interface suits, 0: not at all. IPv4 before IPv6; a deprecated one where there is no other; one that is
// tentative after these, as it mostly will do; then link-local ones, IPv4 first; a loopback one at last. A duplicate is never used.
int AddressRank(const std::string& address, const AddressState& state);

// One that makes its interface a choice where nobody names it: neither link-local nor of the loopback, and no duplicate.
bool IsRoutable(const std::string& address, const AddressState& state);

// Settings with which each interface answers ARP only for its own addresses, for log lines.
constexpr char kArpSysctls[] = "net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2 (and rp_filter=2 where it is 1)";

}  // namespace r2cc

#endif  // R2CC_BASE_CORE_ADDRESS_CHOICE_H_
