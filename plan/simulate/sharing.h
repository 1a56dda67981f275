// Ports shared by weighted max-min fairness, worked out again only where something changed.
#ifndef R2CC_PLAN_SIMULATE_SHARING_H_
#define R2CC_PLAN_SIMULATE_SHARING_H_

#include <cstdint>
#include <vector>

#include "base/core/function_ref.h"

namespace r2cc::plan {

// A stream over some ports at once, at one rate. Its rate is the largest that max-min fairness gives it: all streams' rates grow in
// proportion to their weights until a port is full; the streams on it stay at that, the others grow on.
class Sharing {
 public:
  struct Use {
    uint32_t port = 0;
    double amount = 1;  // of the port's capacity for one of the stream's rate
  };
  static constexpr uint32_t kUsesMax = 4;

  explicit Sharing(std::vector<double> capacity);

  // Ports that it uses must differ; at most kUsesMax, at least one. Returns its number; numbers are used again.
  uint32_t Add(double weight, const Use* uses, uint32_t count);
  void Remove(uint32_t stream);
  void SetCapacity(uint32_t port, double capacity);
  double capacity(uint32_t port) const { return ports_[port].capacity; }

  // Works out all rates that may have changed since the last call, and calls `changed(stream)` for each that did.
  void Settle(FunctionRef<void(uint32_t)> changed);
  double rate(uint32_t stream) const { return streams_[stream].rate; }

 private:
  struct Stream {
    double weight = 0;
    double rate = 0;
    double next_rate = 0;
    uint32_t uses_count = 0;
    bool settled = false;
    uint64_t seen = 0;
    Use uses[kUsesMax];
    uint32_t place[kUsesMax] = {};  // in the port's list
  };
  struct User {
    uint32_t stream = 0;
    uint32_t use = 0;
  };
  struct Port {
    double capacity = 0;
    double left = 0;
    double wanted = 0;  // amount * weight of the streams that still grow
    uint32_t growing = 0;
    uint64_t seen = 0;
    bool dirty = false;
    std::vector<User> users;
  };

  void Touch(uint32_t port);
  void Collect();
  void Fix(Stream& stream, double level);

  std::vector<Port> ports_;
  std::vector<Stream> streams_;
  std::vector<uint32_t> unused_;
  std::vector<uint32_t> dirty_;
  std::vector<uint32_t> found_ports_;
  std::vector<uint32_t> found_streams_;
  std::vector<uint32_t> filling_;
  uint64_t round_ = 0;
};

}  // namespace r2cc::plan

#endif  // R2CC_PLAN_SIMULATE_SHARING_H_
