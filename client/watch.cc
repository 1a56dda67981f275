#include "client/watch.h"

#include <deque>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace r2cc::client {
namespace {

constexpr size_t kEventsShown = 10;
// Of more nodes than fit on a screen only what is not well is shown.
constexpr uint32_t kNodesMax = 20;
// Home, and clear what is below.
constexpr char kRedraw[] = "\x1b[H\x1b[J";

}  // namespace

absl::Status Watch(const WatchWorld& world, Style style, Client& client, std::ostream& out) {
  std::deque<v1::Event> events;
  uint64_t last = 0;
  do {
    style.now_ns = world.now_ns();
    v1::StatusRequest ask;
    ask.set_nodes_max(kNodesMax);
    const absl::StatusOr<v1::StatusReply> status = client.GetStatus(ask);
    if (!status.ok()) return status.status();
    uint32_t nodes = 0;
    for (const auto& count : status->summary().nodes()) nodes += count.nodes();
    v1::ListNicsRequest list;
    list.set_bad(nodes > kNodesMax);
    const absl::StatusOr<v1::ListNicsReply> nics = client.ListNics(list);
    if (!nics.ok()) return nics.status();
    v1::EventsRequest after;
    after.set_after_sequence(last);
    const absl::Status told = client.Events(after, [&](const v1::Event& event) {
      last = event.sequence();
      events.push_back(event);
      if (events.size() > kEventsShown) events.pop_front();
      return true;
    });
    if (!told.ok()) return told;
    std::string picture = absl::StrCat(world.redraw ? kRedraw : "", FormatStatus(*status, style), "\n", FormatNics(*nics, style), "\n");
    for (const v1::Event& event : events) absl::StrAppend(&picture, FormatEvent(event, style));
    out << picture << std::flush;
    if (!out) return absl::UnavailableError("cannot write to standard output");
  } while (world.wait());
  return absl::OkStatus();
}

}  // namespace r2cc::client
