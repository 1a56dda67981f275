// Plants the bug that R2CC_PLANTED names by its number in netplugin/flow/planted.h.
#include <cstdlib>

#include "netplugin/flow/planted.h"

namespace r2cc::contract {
namespace {

[[maybe_unused]] const bool kIsPlanted = [] {
  const char* number = std::getenv("R2CC_PLANTED");
  if (number != nullptr) net::planted = static_cast<net::Planted>(std::atoi(number));
  return true;
}();

}  // namespace
}  // namespace r2cc::contract
