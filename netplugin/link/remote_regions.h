// Tracks the peer's registered memory at the initiator: the keys that reach its buffers, and on which of its rails. Pure.
//
// Contract: no chunk travels by a key that the grant of its message has replaced. A grant names the generation of the keys that it was
// written under. It waits until these, or later ones, have come.
#ifndef R2CC_NETPLUGIN_LINK_REMOTE_REGIONS_H_
#define R2CC_NETPLUGIN_LINK_REMOTE_REGIONS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "netplugin/flow/region_keys.h"
#include "netplugin/link/frame.h"

namespace r2cc::net {

// What a sender's device is to write, for the transport (links.h).
struct WriteTarget {
  uint64_t address = 0;
  const Endpoint* key = nullptr;  // valid until the next event; null: there is none, and nothing may be written
};

class RemoteRegions final : public RegionKeys {
 public:
  // Regions of one peer. A correct peer has some hundred for each of its communicators.
  static constexpr size_t kRegionsMax = 1 << 18;

  // How many rails the peer has.
  void set_rails(size_t rails) { rails_ = rails; }
  // What a link that carries chunks from now on reaches, and by which transport.
  void SetLink(LinkId link, uint16_t local_rail, uint16_t remote_rail, TransportKind kind);

  // The peer announces a region. An announcement that is older than the known one is ignored. False: it breaks the protocol.
  bool Announced(const std::shared_ptr<const Region>& region);

  enum class Known {
    kYes,
    kNotYet,  // the keys that it names have not come yet
    kNever,   // it does not lie in its region: the peer breaks the protocol
  };
  Known Judge(const BufferPlace& place, uint64_t capacity_bytes) const;

  bool any() const override { return !regions_.empty(); }
  bool Reaches(RegionId region, LinkId link) const override { return KeyOf(region, link) != nullptr; }
  bool SendsFrom(RailSet rails, LinkId link) const override {
    if (link >= ways_.size() || !ways_[link].has_value() || ways_[link]->kind == TransportKind::kTcp) return true;
    return (rails >> ways_[link]->local_rail & 1) != 0;
  }
  // Null: not reachable by this link, or not now. Valid until the next announcement.
  const Endpoint* KeyOf(RegionId region, LinkId link) const;
  // Null: not announced.
  const Region* Find(RegionId region) const;

 private:
  struct Way {
    uint16_t local_rail = 0;
    uint16_t rail = 0;  // the peer's
    TransportKind kind = TransportKind::kTcp;
  };
  size_t rails_ = 0;
  std::vector<std::optional<Way>> ways_;  // by link
  std::map<RegionId, std::shared_ptr<const Region>> regions_;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_LINK_REMOTE_REGIONS_H_
