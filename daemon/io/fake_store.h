// A store that a test writes and reads.
#ifndef R2CC_DAEMON_IO_FAKE_STORE_H_
#define R2CC_DAEMON_IO_FAKE_STORE_H_

#include <map>
#include <string>
#include <utility>

#include "daemon/io/store.h"

namespace r2cc::daemon {

class FakeStore final : public Store {
 public:
  void Start(const std::string& prefix, Callbacks callbacks) override {
    prefix_ = prefix;
    callbacks_ = std::move(callbacks);
  }
  void Put(const std::string& key, const std::string& value, int64_t) override {
    entries_[key] = value;
    ++puts_;
  }
  void Stop() override {}

  void SetState(const std::string& state) { callbacks_.on_state(state); }
  void Change(const std::string& key, const std::string& value) { callbacks_.on_change({key, value, false, ++revision_}); }
  void Delete(const std::string& key) { callbacks_.on_change({key, "", true, ++revision_}); }
  const std::map<std::string, std::string>& entries() const { return entries_; }
  const std::string& prefix() const { return prefix_; }
  int puts() const { return puts_; }

 private:
  std::string prefix_;
  Callbacks callbacks_;
  std::map<std::string, std::string> entries_;
  uint64_t revision_ = 0;
  int puts_ = 0;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_IO_FAKE_STORE_H_
