// When something that failed is tried again: after a wait that doubles with each failure, with jitter if a seed is given. Pure; time is an
// argument.
#ifndef R2CC_BASE_CORE_RETRY_H_
#define R2CC_BASE_CORE_RETRY_H_

#include <cstdint>
#include <optional>

#include "base/core/back_off.h"
#include "base/core/clock.h"

namespace r2cc {

// Up to a quarter of the back-off more, by seed, name and try: those that failed together do not come again together. A listener that was
// overrun by the peers of a whole job once would be overrun by each of their tries.
constexpr Nanos WithJitter(Nanos back_off, uint64_t seed, uint32_t name, uint32_t tries) {
  // splitmix64: neighbouring tries have nothing in common.
  uint64_t mixed = seed ^ (uint64_t{name} << 32 | tries);
  mixed += 0x9e3779b97f4a7c15;
  mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
  mixed ^= mixed >> 31;
  return back_off + static_cast<Nanos>(mixed % static_cast<uint64_t>(back_off / 4 + 1));
}

class Retry {
 public:
  struct Jitter {
    uint64_t seed = 0;  // of the process, or of a session
    uint32_t name = 0;  // of what is tried, among those of one seed
  };
  Retry(Nanos shortest, Nanos longest, std::optional<Jitter> jitter = std::nullopt) : waits_(shortest, longest), jitter_(jitter) {}

  // A try begins: the next wait has other jitter.
  void Began() { ++tries_; }
  // It failed, or what it had brought about is lost.
  void Failed(Nanos now) {
    back_off_ = waits_.Next();
    wait_ = jitter_ ? WithJitter(back_off_, jitter_->seed, jitter_->name, tries_) : back_off_;
    due_ = now + wait_;
  }
  // It worked: the next failure is a first one.
  void Worked() { waits_.Reset(); }
  // The same, and the next try may be made at once.
  void Restart() {
    Worked();
    due_ = 0;
  }

  bool IsDue(Nanos now) const { return now >= due_; }
  Nanos due() const { return due_; }
  // After the last failure, without and with jitter; 0: there was none.
  Nanos back_off() const { return back_off_; }
  Nanos wait() const { return wait_; }

 private:
  ExponentialBackOff waits_;
  std::optional<Jitter> jitter_;
  uint32_t tries_ = 0;
  Nanos back_off_ = 0;
  Nanos wait_ = 0;
  Nanos due_ = 0;
};

}  // namespace r2cc

#endif  // R2CC_BASE_CORE_RETRY_H_
