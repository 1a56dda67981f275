// Stores the links of one peer: at most one live incarnation of each, and those that are being closed. With the peer's lock.
#ifndef R2CC_NETPLUGIN_TRANSPORT_LINK_SLOTS_H_
#define R2CC_NETPLUGIN_TRANSPORT_LINK_SLOTS_H_

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/core/check.h"
#include "netplugin/transport/links.h"

namespace r2cc::net {

// `T`: SendLink or RecvLink.
template <typename T>
class LinkSlots {
 public:
  struct Slot {
    LinkName name;
    std::unique_ptr<T> link;  // null: none
  };

  void Resize(size_t links) { slots_.resize(links); }
  size_t size() const { return slots_.size(); }
  // The live incarnation; null: none, or there is no such link.
  T* at(LinkId link) const { return link < slots_.size() ? slots_[link].link.get() : nullptr; }
  const LinkName& name(LinkId link) const { return slots_[link].name; }
  bool alive(const LinkName& name) const { return at(name.link) != nullptr && slots_[name.link].name.incarnation == name.incarnation; }

  void Begin(const LinkName& name, std::unique_ptr<T> link) {
    R2CC_CHECK(at(name.link) == nullptr);
    slots_[name.link] = {name, std::move(link)};
  }
  // Closes the live incarnation. False: Closed() follows.
  bool Close(LinkId link) {
    if (at(link) == nullptr) return true;
    Slot slot = std::exchange(slots_[link], {});
    if (slot.link->Close()) return true;
    closing_.push_back(std::move(slot));
    return false;
  }
  void Closed(const LinkName& name) {
    std::erase_if(closing_, [&](const Slot& slot) { return slot.name.link == name.link && slot.name.incarnation == name.incarnation; });
  }

  // Visits the live incarnations.
  template <typename Visit>
  void ForEach(Visit visit) {
    for (Slot& slot : slots_)
      if (slot.link != nullptr) visit(slot.name, *slot.link);
  }
  const std::vector<Slot>& closing() const { return closing_; }

 private:
  std::vector<Slot> slots_;  // by link
  std::vector<Slot> closing_;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_LINK_SLOTS_H_
