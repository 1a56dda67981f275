// Threads of which one runs at a time; a seed decides who is next whenever one yields. So a seed is one interleaving, again and again.
#ifndef R2CC_TESTS_SEAT_SCHEDULER_H_
#define R2CC_TESTS_SEAT_SCHEDULER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <semaphore>
#include <thread>
#include <vector>

namespace r2cc::nccl {

// Thrown in all threads that wait when nobody can go on.
struct Stuck {};

class Scheduler {
 public:
  explicit Scheduler(uint64_t seed) : random_(seed) {}

  // One step of the world outside of the threads; false: there is none.
  void SetStep(std::function<bool()> step) { step_ = std::move(step); }
  // Nobody can go on. True: now somebody can.
  void SetWhenStuck(std::function<bool()> when_stuck) { when_stuck_ = std::move(when_stuck); }

  void Add(std::function<void()> body);
  // Until all have ended. False: it was stuck.
  bool Run();

  // From a thread.
  void Yield() {
    Block([] { return true; });
  }
  void Block(std::function<bool()> until);

  uint64_t Random(uint64_t below) { return random_() % below; }

 private:
  struct Thread {
    std::thread thread;
    std::binary_semaphore turn{0};
    std::function<bool()> until;
    bool done = false;
  };

  // Null: all have ended.
  Thread* Next();

  std::mt19937_64 random_;
  std::function<bool()> step_;
  std::function<bool()> when_stuck_;
  std::vector<std::unique_ptr<Thread>> threads_;
  Thread* running_ = nullptr;
  std::binary_semaphore ended_{0};
  bool stuck_ = false;
};

}  // namespace r2cc::nccl

#endif  // R2CC_TESTS_SEAT_SCHEDULER_H_
