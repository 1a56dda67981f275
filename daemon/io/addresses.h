// The numeric addresses of this network namespace's interfaces.
#ifndef R2CC_DAEMON_IO_ADDRESSES_H_
#define R2CC_DAEMON_IO_ADDRESSES_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace r2cc::daemon {

// Which of an interface's addresses a NIC has: `current` while the interface has it, otherwise another of its family. If there is none it
// stays `current`: an address that is being changed is away for a moment. A link-local one counts only where there is no other. Pure.
std::string ChooseAddress(const std::vector<std::string>& on_interface, const std::string& current);

class Addresses {
 public:
  // Canonical, by interface; every interface is a key. The best for traffic is first, and duplicates are left out: see AddressRank().
  using Map = std::map<std::string, std::vector<std::string>>;
  virtual ~Addresses() = default;
  virtual Map ByInterface() = 0;
};

// Asks the kernel each time.
class OsAddresses final : public Addresses {
 public:
  Map ByInterface() override;
};

class FakeAddresses final : public Addresses {
 public:
  explicit FakeAddresses(Map map = {}) : map_(std::move(map)) {}
  Map ByInterface() override { return map_; }
  void Set(Map map) { map_ = std::move(map); }

 private:
  Map map_;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_IO_ADDRESSES_H_
