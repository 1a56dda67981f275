// Maps flow numbers to values. The path of one message looks the same flow up several times in a row, so the map caches the last one that
// it found. One thread at a time, for const calls too.
#ifndef R2CC_NETPLUGIN_FLOW_FLOW_MAP_H_
#define R2CC_NETPLUGIN_FLOW_FLOW_MAP_H_

#include <cstddef>
#include <map>
#include <utility>

#include "base/core/check.h"
#include "netplugin/flow/types.h"

namespace r2cc::net {

// Values keep their addresses until they are erased. Iteration is in the order of the flows' numbers.
template <typename T>
class FlowMap {
 public:
  FlowMap() = default;
  FlowMap(const FlowMap&) = delete;
  FlowMap& operator=(const FlowMap&) = delete;

  // Null if the flow has no value.
  const T* Find(FlowId flow) const {
    if (last_ == nullptr || last_->first != flow) {
      const auto it = map_.find(flow);
      if (it == map_.end()) return nullptr;
      last_ = &*it;
    }
    return &last_->second;
  }
  T* Find(FlowId flow) { return const_cast<T*>(std::as_const(*this).Find(flow)); }
  const T& at(FlowId flow) const {
    const T* const found = Find(flow);
    R2CC_CHECK(found != nullptr);
    return *found;
  }
  bool contains(FlowId flow) const { return Find(flow) != nullptr; }

  // The value that is there, or a new one.
  template <typename... Arguments>
  T* Add(FlowId flow, Arguments&&... arguments) {
    return &map_.try_emplace(flow, std::forward<Arguments>(arguments)...).first->second;
  }
  void Erase(FlowId flow) {
    last_ = nullptr;
    map_.erase(flow);
  }

  bool empty() const { return map_.empty(); }
  size_t size() const { return map_.size(); }
  auto begin() { return map_.begin(); }
  auto end() { return map_.end(); }
  auto begin() const { return map_.begin(); }
  auto end() const { return map_.end(); }

 private:
  std::map<FlowId, T> map_;
  mutable const std::pair<const FlowId, T>* last_ = nullptr;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_FLOW_FLOW_MAP_H_
