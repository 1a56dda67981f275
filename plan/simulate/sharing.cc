#include "plan/simulate/sharing.h"

#include <algorithm>
#include <limits>

#include "base/core/check.h"

namespace r2cc::plan {

Sharing::Sharing(std::vector<double> capacity) : ports_(capacity.size()) {
  for (size_t i = 0; i < capacity.size(); ++i) ports_[i].capacity = capacity[i];
}

void Sharing::Touch(uint32_t port) {
  if (ports_[port].dirty) return;
  ports_[port].dirty = true;
  dirty_.push_back(port);
}

uint32_t Sharing::Add(double weight, const Use* uses, uint32_t count) {
  R2CC_CHECK(count >= 1 && count <= kUsesMax && weight > 0);
  uint32_t number = static_cast<uint32_t>(streams_.size());
  if (unused_.empty()) {
    streams_.emplace_back();
  } else {
    number = unused_.back();
    unused_.pop_back();
  }
  Stream& stream = streams_[number];
  stream.weight = weight;
  stream.rate = 0;
  stream.uses_count = count;
  for (uint32_t i = 0; i < count; ++i) {
    stream.uses[i] = uses[i];
    Port& port = ports_[uses[i].port];
    stream.place[i] = static_cast<uint32_t>(port.users.size());
    port.users.push_back({number, i});
    Touch(uses[i].port);
  }
  return number;
}

void Sharing::Remove(uint32_t number) {
  Stream& stream = streams_[number];
  for (uint32_t i = 0; i < stream.uses_count; ++i) {
    Port& port = ports_[stream.uses[i].port];
    const User last = port.users.back();
    port.users[stream.place[i]] = last;
    streams_[last.stream].place[last.use] = stream.place[i];
    port.users.pop_back();
    Touch(stream.uses[i].port);
  }
  stream.uses_count = 0;
  unused_.push_back(number);
}

void Sharing::SetCapacity(uint32_t port, double capacity) {
  ports_[port].capacity = capacity;
  Touch(port);
}

// All ports and streams that a change can reach: rates elsewhere stay.
void Sharing::Collect() {
  ++round_;
  found_ports_.clear();
  found_streams_.clear();
  const auto find_port = [&](uint32_t number) {
    Port& port = ports_[number];
    if (port.seen == round_) return;
    port.seen = round_;
    port.left = port.capacity;
    port.wanted = 0;
    port.growing = 0;
    found_ports_.push_back(number);
  };
  for (const uint32_t number : dirty_) {
    ports_[number].dirty = false;
    find_port(number);
  }
  dirty_.clear();
  for (size_t i = 0; i < found_ports_.size(); ++i) {
    for (const User& user : ports_[found_ports_[i]].users) {
      Stream& stream = streams_[user.stream];
      if (stream.seen != round_) {
        stream.seen = round_;
        stream.settled = false;
        found_streams_.push_back(user.stream);
        for (uint32_t use = 0; use < stream.uses_count; ++use) find_port(stream.uses[use].port);
      }
      Port& port = ports_[found_ports_[i]];
      port.wanted += stream.uses[user.use].amount * stream.weight;
      ++port.growing;
    }
  }
}

void Sharing::Fix(Stream& stream, double level) {
  stream.settled = true;
  stream.next_rate = level * stream.weight;
  for (uint32_t i = 0; i < stream.uses_count; ++i) {
    Port& port = ports_[stream.uses[i].port];
    port.left = std::max(0.0, port.left - stream.next_rate * stream.uses[i].amount);
    port.wanted -= stream.weight * stream.uses[i].amount;
    --port.growing;
  }
}

void Sharing::Settle(FunctionRef<void(uint32_t)> changed) {
  if (dirty_.empty()) return;
  Collect();
  filling_ = found_ports_;
  // Ports that fill at the same level, but for rounding, are full together: equal members mean many of them.
  constexpr double kSame = 1 + 1e-12;
  while (true) {
    std::erase_if(filling_, [&](uint32_t port) { return ports_[port].growing == 0; });
    if (filling_.empty()) break;
    double level = std::numeric_limits<double>::infinity();
    for (const uint32_t port : filling_) level = std::min(level, ports_[port].left / ports_[port].wanted);
    for (const uint32_t number : filling_) {
      const Port& port = ports_[number];
      if (port.growing == 0 || port.left > level * kSame * port.wanted) continue;
      for (const User& user : port.users)
        if (Stream& stream = streams_[user.stream]; !stream.settled) Fix(stream, level);
    }
  }
  for (const uint32_t number : found_streams_) {
    Stream& stream = streams_[number];
    if (stream.next_rate == stream.rate) continue;
    stream.rate = stream.next_rate;
    changed(number);
  }
}

}  // namespace r2cc::plan
