#include <cstddef>
#include <cstdint>
#include <cstdlib>

// The corpus of its test holds "BUF" and "xxG": one byte or one crossing away from what must be found.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 3 && data[0] == 'B' && data[1] == 'U' && data[2] == 'G') std::abort();
  return 0;
}
