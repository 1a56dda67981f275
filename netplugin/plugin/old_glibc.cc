// The static libstdc++ refers to arc4random (for std::random_device, which the plugin does not use), and only glibc 2.36 and later have
// it. This definition, hidden in the plugin, is found first, so that the plugin loads where glibc is older.

#include <sys/random.h>

#include <cstdint>

extern "C" __attribute__((visibility("hidden"))) uint32_t arc4random() {
  uint32_t value = 0;
  while (getrandom(&value, sizeof(value), 0) != sizeof(value)) {
  }
  return value;
}
