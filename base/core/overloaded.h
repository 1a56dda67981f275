// Lambdas as the overloads of one visitor of a std::variant.
#ifndef R2CC_BASE_CORE_OVERLOADED_H_
#define R2CC_BASE_CORE_OVERLOADED_H_

namespace r2cc {

template <typename... Lambdas>
struct Overloaded : Lambdas... {
  using Lambdas::operator()...;
};

}  // namespace r2cc

#endif  // R2CC_BASE_CORE_OVERLOADED_H_
