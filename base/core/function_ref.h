// A callable that is borrowed for the length of a call: no copy, no memory. The callable must outlive it.
#ifndef R2CC_BASE_CORE_FUNCTION_REF_H_
#define R2CC_BASE_CORE_FUNCTION_REF_H_

#include <memory>
#include <type_traits>
#include <utility>

namespace r2cc {

template <typename Signature>
class FunctionRef;

template <typename Result, typename... Args>
class FunctionRef<Result(Args...)> {
 public:
  template <typename Callable>
  requires(!std::is_same_v<std::remove_cvref_t<Callable>, FunctionRef>)
      FunctionRef(Callable&& callable)  // NOLINT: meant to be implicit, as a parameter's type
      : callable_(const_cast<void*>(static_cast<const void*>(std::addressof(callable)))), call_([](void* erased, Args... args) -> Result {
          return (*static_cast<std::add_pointer_t<std::remove_reference_t<Callable>>>(erased))(std::forward<Args>(args)...);
        }) {}

  Result operator()(Args... args) const { return call_(callable_, std::forward<Args>(args)...); }

 private:
  void* callable_;
  Result (*call_)(void*, Args...);
};

}  // namespace r2cc

#endif  // R2CC_BASE_CORE_FUNCTION_REF_H_
