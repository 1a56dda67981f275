// A mutex, its lock and a condition variable that Clang's thread-safety analysis understands. libstdc++'s have no annotations.
//
// A member that a mutex guards is declared with R2CC_GUARDED_BY(mutex_), and a function that its caller must lock for with
// R2CC_REQUIRES(mutex_). `.ci/long clang` compiles all that ships with -Wthread-safety: an access without the lock is an error there. gcc
// sees plain declarations, and the types cost what std::mutex costs.
//
// A mutex that only makes threads take turns guards a call, not a member: the object behind the call is declared with
// R2CC_PT_GUARDED_BY, or the member that the call fills with R2CC_GUARDED_BY.
#ifndef R2CC_BASE_CORE_MUTEX_H_
#define R2CC_BASE_CORE_MUTEX_H_

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "base/core/clock.h"

#ifdef __clang__
#define R2CC_THREAD_ANNOTATION(annotation) __attribute__((annotation))
#else
#define R2CC_THREAD_ANNOTATION(annotation)
#endif

// For a member: the lock of the member itself; of what the pointer points to.
#define R2CC_GUARDED_BY(mutex) R2CC_THREAD_ANNOTATION(guarded_by(mutex))
#define R2CC_PT_GUARDED_BY(mutex) R2CC_THREAD_ANNOTATION(pt_guarded_by(mutex))
// For a mutex: a thread that holds both took this one first.
#define R2CC_ACQUIRED_BEFORE(...) R2CC_THREAD_ANNOTATION(acquired_before(__VA_ARGS__))
// For a function: the caller holds the lock; must not hold it; holds it afterwards; does not any more.
#define R2CC_REQUIRES(...) R2CC_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define R2CC_EXCLUDES(...) R2CC_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))
#define R2CC_ACQUIRES(...) R2CC_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define R2CC_TRY_ACQUIRES(...) R2CC_THREAD_ANNOTATION(try_acquire_capability(__VA_ARGS__))
#define R2CC_RELEASES(...) R2CC_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
// For a function that does nothing: its caller holds the lock in a way that the analysis does not see.
#define R2CC_ASSERTS(...) R2CC_THREAD_ANNOTATION(assert_capability(__VA_ARGS__))
// For a class whose objects hold a lock from their constructor to their destructor.
#define R2CC_SCOPED_LOCK R2CC_THREAD_ANNOTATION(scoped_lockable)
// For a function that the analysis cannot follow. A comment states why it is right.
#define R2CC_NO_THREAD_SAFETY_ANALYSIS R2CC_THREAD_ANNOTATION(no_thread_safety_analysis)

namespace r2cc {

class R2CC_THREAD_ANNOTATION(capability("mutex")) Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() R2CC_ACQUIRES() { mutex_.lock(); }
  bool TryLock() R2CC_TRY_ACQUIRES(true) { return mutex_.try_lock(); }
  void Unlock() R2CC_RELEASES() { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

// Holds a mutex until it ends, unless it was given back before.
class R2CC_SCOPED_LOCK MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) R2CC_ACQUIRES(mutex) : mutex_(mutex) { mutex_.Lock(); }
  // The caller has locked it.
  MutexLock(Mutex& mutex, std::adopt_lock_t) R2CC_REQUIRES(mutex) : mutex_(mutex) {}
  ~MutexLock() R2CC_RELEASES() {
    if (held_) mutex_.Unlock();
  }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void Unlock() R2CC_RELEASES() {
    held_ = false;
    mutex_.Unlock();
  }
  void Lock() R2CC_ACQUIRES() {
    mutex_.Lock();
    held_ = true;
  }

 private:
  Mutex& mutex_;
  bool held_ = true;
};

// Every wait gives the mutex back meanwhile, and may end early where it takes no condition. A condition is a lambda that is declared with
// R2CC_REQUIRES(mutex), as it is called with the lock.
class CondVar {
 public:
  CondVar() = default;
  CondVar(const CondVar&) = delete;
  CondVar& operator=(const CondVar&) = delete;

  void NotifyOne() { changed_.notify_one(); }
  void NotifyAll() { changed_.notify_all(); }

  void Wait(Mutex& mutex) R2CC_REQUIRES(mutex) {
    Adopted lock(mutex.mutex_);
    changed_.wait(lock.of);
  }
  template <typename Condition>
  void Wait(Mutex& mutex, const Condition& condition) R2CC_REQUIRES(mutex) {
    Adopted lock(mutex.mutex_);
    changed_.wait(lock.of, condition);
  }
  // `most` at the most.
  void WaitFor(Mutex& mutex, Nanos most) R2CC_REQUIRES(mutex) {
    Adopted lock(mutex.mutex_);
    changed_.wait_for(lock.of, std::chrono::nanoseconds(most));
  }
  // False: the condition did not hold by then.
  template <typename Condition>
  bool WaitFor(Mutex& mutex, Nanos most, const Condition& condition) R2CC_REQUIRES(mutex) {
    Adopted lock(mutex.mutex_);
    return changed_.wait_for(lock.of, std::chrono::nanoseconds(most), condition);
  }

 private:
  // The caller's lock in the form that the standard's takes. It stays the caller's also if the condition throws.
  struct Adopted {
    explicit Adopted(std::mutex& mutex) : of(mutex, std::adopt_lock) {}
    ~Adopted() { of.release(); }
    std::unique_lock<std::mutex> of;
  };

  std::condition_variable changed_;
};

}  // namespace r2cc

#endif  // R2CC_BASE_CORE_MUTEX_H_
