// Time as a value. Policy takes it as an argument; only the outermost loops ask a Clock for it.
#ifndef R2CC_BASE_CORE_CLOCK_H_
#define R2CC_BASE_CORE_CLOCK_H_

#include <cstdint>

namespace r2cc {

// Nanoseconds of CLOCK_MONOTONIC: comparable between all processes of one machine, never between machines.
using Nanos = int64_t;

constexpr Nanos kNanosPerMs = 1'000'000;
constexpr Nanos kNanosPerSecond = 1'000'000'000;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual Nanos Now() const = 0;
};

// The machine's CLOCK_MONOTONIC. Thread-safe.
class SteadyClock final : public Clock {
 public:
  Nanos Now() const override;
};

// A clock that a test sets. One thread at a time.
class FakeClock final : public Clock {
 public:
  explicit FakeClock(Nanos now = kNanosPerSecond) : now_(now) {}
  Nanos Now() const override { return now_; }
  void Advance(Nanos by) { now_ += by; }

 private:
  Nanos now_;
};

}  // namespace r2cc

#endif  // R2CC_BASE_CORE_CLOCK_H_
