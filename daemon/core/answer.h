// A reply that is owed.
#ifndef R2CC_DAEMON_CORE_ANSWER_H_
#define R2CC_DAEMON_CORE_ANSWER_H_

#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace r2cc::daemon {

// Is called exactly once: if the last copy goes before a call (a task that was dropped because the core ended), it answers UNAVAILABLE
// automatically. So no RPC waits forever. Copies share the one answer. Thread-compatible.
template <typename T>
class Answer {
 public:
  using Function = std::function<void(absl::StatusOr<T>)>;

  // NOLINTNEXTLINE(google-explicit-constructor): a lambda is an answer
  template <typename F>
  requires(std::is_invocable_v<F, absl::StatusOr<T>> && !std::is_same_v<std::remove_cvref_t<F>, Answer>) Answer(F&& function)
      : owed_(std::make_shared<Owed>(std::forward<F>(function))) {}

  void operator()(absl::StatusOr<T> result) const { owed_->Give(std::move(result)); }

 private:
  struct Owed {
    explicit Owed(Function function) : function(std::move(function)) {}
    ~Owed() { Give(absl::UnavailableError("this r2ccd is stopping")); }
    void Give(absl::StatusOr<T> result) {
      if (const Function call = std::exchange(function, nullptr)) call(std::move(result));
    }
    Function function;
  };
  std::shared_ptr<Owed> owed_;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_CORE_ANSWER_H_
