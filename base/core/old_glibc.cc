// The static libstdc++ refers to arc4random (for std::random_device), and only glibc 2.36 and later have it. This definition, hidden in
// what links it, is found first, so that the plugin loads and the programs start where glibc is older.

#include <sys/random.h>

#include <cstdint>

extern "C" __attribute__((visibility("hidden"))) uint32_t arc4random() {
  uint32_t value = 0;
  while (getrandom(&value, sizeof(value), 0) != sizeof(value)) {
  }
  return value;
}
