// libarchive's static form takes arc4random_buf() from glibc 2.36, and r2ccctl starts with 2.34. This definition, hidden in what links it,
// stands in for it. Writing an archive never calls it: encryption and temporary names do.
#include <errno.h>
#include <sys/random.h>

#include <cstddef>
#include <cstdlib>

extern "C" __attribute__((visibility("hidden"))) void arc4random_buf(void* buffer, size_t bytes) noexcept {
  char* at = static_cast<char*>(buffer);
  while (bytes > 0) {
    const ssize_t got = getrandom(at, bytes, 0);
    // As glibc's: the caller cannot get an error.
    if (got < 0 && errno != EINTR) std::abort();
    if (got <= 0) continue;
    at += got;
    bytes -= static_cast<size_t>(got);
  }
}
