// Runs r2cc-perf as a user does: another process, its flags, its output, its exit code.
#ifndef R2CC_TESTS_CONTROL_PERF_PROCESS_H_
#define R2CC_TESTS_CONTROL_PERF_PROCESS_H_

#include <sys/types.h>

#include <string>
#include <vector>

namespace r2cc::control {

struct Outcome {
  int exit_code = -1;  // 128 + signal if a signal ended it
  std::string out;
  std::string err;

  // The last line of `out`: the JSON object under --json.
  std::string LastLine() const;
};

// The number after "name": in a flat JSON text; -1 if it is not there.
double JsonNumber(const std::string& json, const std::string& name);

class PerfProcess {
 public:
  // plugin: file name of a library in tests/control, or a path. rails: the value of R2CC_RAILS.
  PerfProcess(const std::string& plugin, const std::string& rails, const std::vector<std::string>& flags);
  ~PerfProcess();
  PerfProcess(const PerfProcess&) = delete;
  PerfProcess& operator=(const PerfProcess&) = delete;

  // Waits until the process has written `text` on standard error; false if it ended, or limit_s passed, before that.
  bool WaitForError(const std::string& text, int limit_s = 60);
  pid_t pid() const { return pid_; }
  // Waits for the end; a process that takes longer than limit_s is killed, which its exit code shows.
  Outcome Finish(int limit_s = 120);

 private:
  // Takes what is there to read within timeout_ms; false once both streams are at their end.
  bool Read(int timeout_ms);

  pid_t pid_ = -1;
  int out_ = -1;  // -1: at its end
  int err_ = -1;
  Outcome outcome_;
};

inline Outcome RunPerf(const std::string& plugin, const std::string& rails, const std::vector<std::string>& flags) {
  return PerfProcess(plugin, rails, flags).Finish();
}

// A TCP port of 127.0.0.1 that was free a moment ago.
int FreePort();

}  // namespace r2cc::control

#endif  // R2CC_TESTS_CONTROL_PERF_PROCESS_H_
