// Whose memory it is that this thread allocates: the simulation's own, the daemons', or the peers' of processes. Bytes are counted in a
// program that links :allocations, and stay 0 in others.
#ifndef R2CC_TESTS_SIM_CHARGE_H_
#define R2CC_TESTS_SIM_CHARGE_H_

#include <array>
#include <cstdint>
#include <utility>

namespace r2cc::sim {

enum class Account : uint8_t { kSimulation, kDaemons, kPeers };

// Allocated and not freed. A world stays on one thread.
inline thread_local std::array<int64_t, 3> live_bytes{};
inline thread_local Account charged = Account::kSimulation;

inline int64_t LiveBytes(Account account) { return live_bytes[static_cast<size_t>(account)]; }

class Charge {
 public:
  explicit Charge(Account account) : before_(std::exchange(charged, account)) {}
  ~Charge() { charged = before_; }
  Charge(const Charge&) = delete;
  Charge& operator=(const Charge&) = delete;

 private:
  const Account before_;
};

}  // namespace r2cc::sim

#endif  // R2CC_TESTS_SIM_CHARGE_H_
