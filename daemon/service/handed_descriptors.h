// Takes the descriptors that the service manager has kept from the former run: sd_listen_fds(3).
#ifndef R2CC_DAEMON_SERVICE_HANDED_DESCRIPTORS_H_
#define R2CC_DAEMON_SERVICE_HANDED_DESCRIPTORS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace r2cc::daemon {

// More than a unit of ours has kept; a greater number is not from a service manager of ours.
constexpr int kHandedMax = 16;
// The first: behind standard input, output and error.
constexpr int kHandedFirst = 3;

// The names of descriptors kHandedFirst and up, from LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES, which may be null: not set. Empty: there
// are none, they are for another process, or the values contradict each other. Pure.
std::vector<std::string> HandedNames(const char* pid, const char* count, const char* names, int64_t own_pid);

// Owns them. One thread at a time.
class HandedDescriptors {
 public:
  HandedDescriptors() = default;
  // Those of `names`, which no other program that this process starts is to have.
  explicit HandedDescriptors(const std::vector<std::string>& names);
  // Closes those that nobody took.
  ~HandedDescriptors();
  HandedDescriptors(const HandedDescriptors&) = delete;
  HandedDescriptors& operator=(const HandedDescriptors&) = delete;

  // The names of those that nobody has taken.
  std::vector<std::string> names() const;
  // The caller owns it from now on; -1: there is none of that name.
  int Take(const std::string& name);

 private:
  std::map<std::string, int> descriptors_;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_SERVICE_HANDED_DESCRIPTORS_H_
