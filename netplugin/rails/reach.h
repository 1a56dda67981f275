// What is said of a peer that no rail reaches, or no out-of-band connection: which ways were tried, and what may stand in them. Pure.
#ifndef R2CC_NETPLUGIN_RAILS_REACH_H_
#define R2CC_NETPLUGIN_RAILS_REACH_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/core/clock.h"

namespace r2cc::net {

// Where a rail of this process or of a peer is; see Transport::Describe().
struct RailEnd {
  std::string rail;
  std::string address;  // empty: unknown
  uint16_t port = 0;
  std::string family;  // of addresses that reach no other; empty: no matter
};

// One line, if rails of the same number have addresses of unlike families: only others can be joined, perhaps none. Else empty.
std::string UnlikeFamilies(std::span<const RailEnd> own, std::span<const RailEnd> peers, const std::string& peer);

// "rail0 10.10.0.1 to 10.10.0.2:38811, rail1 ...": rails of the same number. Empty if nothing is known of any.
std::string TriedRails(std::span<const RailEnd> own, std::span<const RailEnd> peers);

// When it is said, before the deadline ends the job. Once for each.
class ReachWatch {
 public:
  enum class Missing : uint8_t { kAnswer, kRail };  // to the greeting; that is up

  // What is missing for so long that it is time to say so. `answered`: the peer's kernel took our connection, whose process may be stopped;
  // `greeted`: its process has told of its rails; `linked`: some rail is up.
  std::optional<Missing> Tick(bool answered, bool greeted, bool linked, Nanos now);
  // Some rail was up once: what is lost afterwards is another matter.
  bool was_linked() const { return was_linked_; }

 private:
  Nanos since_ = 0;
  bool was_greeted_ = false;
  bool was_linked_ = false;
  bool told_ = false;  // of what is missing now
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_RAILS_REACH_H_
