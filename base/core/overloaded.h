// Lambdas as the overloads of one visitor of a std::variant.
#ifndef R2CC_BASE_CORE_OVERLOADED_H_
#define R2CC_BASE_CORE_OVERLOADED_H_

namespace r2cc {

template <typename... Lambdas>
struct Overloaded : Lambdas... {
  using Lambdas::operator()...;
};
// Clang 14 deduces no template arguments of an aggregate by itself.
template <typename... Lambdas>
Overloaded(Lambdas...) -> Overloaded<Lambdas...>;

}  // namespace r2cc

#endif  // R2CC_BASE_CORE_OVERLOADED_H_
