// A scenario in a process of its own: the plugin's state is per process, and how a process ends is part of what is tested.
#ifndef R2CC_TESTS_PLUGIN_OWN_PROCESS_H_
#define R2CC_TESTS_PLUGIN_OWN_PROCESS_H_

#include <sys/types.h>

#include <functional>
#include <map>
#include <string>

namespace r2cc::plugin_test {

// Seconds on a clock that never goes back.
double NowS();

// True as soon as `condition` is; false if it is not within `limit_s`. Gives the processor away between looks.
bool Await(double limit_s, const std::function<bool()>& condition);

// For scenarios: ends the process with one line that names the place, unless `condition` holds.
#define R2CC_MUST(condition) ((condition) ? (void)0 : ::r2cc::plugin_test::Broken(__FILE__, __LINE__, #condition))
[[noreturn]] void Broken(const char* file, int line, const char* condition);

class OwnProcess {
 public:
  using Environment = std::map<std::string, std::string>;

  // Forks; the child sets the variables (and R2CC_ATTACH=none, R2CC_RAILS=four loopback addresses where they are not named) and ends with
  // exit(body()). Start it before this process has threads or a plugin.
  OwnProcess(const Environment& environment, const std::function<int()>& body);
  // Kills it if it still runs.
  ~OwnProcess();
  OwnProcess(const OwnProcess&) = delete;
  OwnProcess& operator=(const OwnProcess&) = delete;

  pid_t pid() const { return pid_; }
  // What it has written on standard error and output so far.
  const std::string& text();
  // True once text() holds `words`; false if the process ended, or the limit passed, before that.
  bool WaitForText(const std::string& words, double limit_s = 60);
  // Its exit code; 128 + signal if one ended it. A process that takes longer is killed, which the code shows.
  int Wait(double limit_s = 120);

 private:
  // Takes what is there to read; waits for it at most so long.
  void Read(int timeout_ms);
  bool Reap();

  pid_t pid_ = -1;
  bool ended_ = false;
  int status_ = 0;
  int output_ = -1;
  std::string text_;
};

}  // namespace r2cc::plugin_test

#endif  // R2CC_TESTS_PLUGIN_OWN_PROCESS_H_
