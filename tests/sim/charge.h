// Whose memory it is that this thread allocates: the simulation's own, the daemons', or the peers' of processes. Bytes are counted in a
// program that links :allocations, and stay 0 in others.
#ifndef R2CC_TESTS_SIM_CHARGE_H_
#define R2CC_TESTS_SIM_CHARGE_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <utility>

namespace r2cc::sim {

enum class Account : uint8_t { kSimulation, kDaemons, kPeers };

// The bytes that one world has allocated and not freed, by account. Whoever frees a block, now or after the world has ended, frees it for
// the world that allocated it. So they live as long as the program, and cost 24 bytes a world.
using Accounts = std::array<std::atomic<int64_t>, 3>;

// Those of the world that runs on this thread; null before the first.
inline thread_local Accounts* accounts = nullptr;
inline thread_local Account charged = Account::kSimulation;

// A world begins on this thread.
inline void OpenAccounts() {
  static std::mutex mutex;
  static auto* const all = new std::deque<Accounts>;
  const std::scoped_lock lock(mutex);
  accounts = &all->emplace_back();
}
inline int64_t LiveBytes(Account account) { return (*accounts)[static_cast<size_t>(account)]; }

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
