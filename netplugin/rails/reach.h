// Describes a peer that no rail, or no out-of-band connection, reaches: the ways that were tried, and possible causes. Pure.
#ifndef R2CC_NETPLUGIN_RAILS_REACH_H_
#define R2CC_NETPLUGIN_RAILS_REACH_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/core/clock.h"

namespace r2cc::net {

// The address of a rail of this process or of a peer; see Transport::Describe().
struct RailEnd {
  std::string rail;
  std::string address;  // empty: unknown
  uint16_t port = 0;
  std::string family;  // of addresses that reach no other family; empty: irrelevant
};

// One line, if rails of the same number have addresses of different families: only other rails can be joined, perhaps none. Otherwise
// empty.
std::string UnlikeFamilies(std::span<const RailEnd> own, std::span<const RailEnd> peers, const std::string& peer);

// "rail0 10.10.0.1 to 10.10.0.2:38811, rail1 ...": rails of the same number. Empty if no address is known.
std::string TriedRails(std::span<const RailEnd> own, std::span<const RailEnd> peers);

// Decides when to report that, before the deadline ends the job. Once for each cause.
class ReachWatch {
 public:
  enum class Missing : uint8_t { kAnswer, kRail };  // kAnswer: no answer to the greeting; kRail: no rail is up

  // What has been missing for so long that it should be reported. `answered`: the peer's kernel accepted our connection; its process may be
  // stopped. `greeted`: its process has announced its rails. `linked`: some rail is up.
  std::optional<Missing> Tick(bool answered, bool greeted, bool linked, Nanos now);
  // Some rail was up once: a later loss is reported elsewhere.
  bool was_linked() const { return was_linked_; }

 private:
  Nanos since_ = 0;
  bool was_greeted_ = false;
  bool was_linked_ = false;
  bool reported_ = false;  // what is missing now was reported
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_RAILS_REACH_H_
