#include "client/watch.h"

#include <algorithm>
#include <deque>
#include <tuple>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/core/table.h"

namespace r2cc::client {
namespace {

constexpr size_t kEventsShown = 10;
// If there are more nodes than fit on a screen, only those that are not well are shown.
constexpr uint32_t kNodesMax = 20;
// Home, and clear what is below.
constexpr char kRedraw[] = "\x1b[H\x1b[J";
// Events are left out down to these, before anything else is cut.
constexpr size_t kEventsLeast = 1;

bool IsWell(const v1::NicView& nic) { return nic.state() == v1::HEALTHY && !nic.drained() && nic.probe_trouble().empty(); }

std::string WithoutHealthy(v1::ListNicsReply nics, const Style& style) {
  size_t healthy = 0;
  for (v1::NodeView& node : *nics.mutable_nodes()) {
    google::protobuf::RepeatedPtrField<v1::NicView> rest;
    for (const v1::NicView& nic : node.nics())
      if (IsWell(nic))
        ++healthy;
      else
        *rest.Add() = nic;
    node.mutable_nics()->Swap(&rest);
  }
  if (healthy == 0) return FormatNics(nics, style, /*only_bad=*/true);
  const bool all = std::all_of(nics.nodes().begin(), nics.nodes().end(), [](const v1::NodeView& node) { return node.nics().empty(); });
  return all ? absl::StrCat("all ", healthy, " NICs are healthy\n") : absl::StrCat(FormatNics(nics, style), healthy, " more are healthy\n");
}

std::string Lines(const std::vector<v1::Event>& events, size_t newest, const Style& style) {
  EventColumns columns;
  for (const v1::Event& event : events) columns.Grow(event);
  std::string text;
  for (size_t i = events.size() - std::min(newest, events.size()); i < events.size(); ++i)
    absl::StrAppend(&text, FormatEvent(events[i], style, columns));
  return text;
}

}  // namespace

std::string Picture(const v1::StatusReply& status, const v1::ListNicsReply& nics, const std::vector<v1::Event>& events,
                    const Style& style) {
  const std::string head = FormatStatus(status, style, /*epochs=*/false) + "\n";
  std::string list = FormatNics(nics, style) + "\n";
  // The cursor is in the row behind the picture.
  const size_t rows = style.rows == 0 ? SIZE_MAX : style.rows - 1;
  const auto fits = [&](const std::string& text) { return RowsOf(text, style.width) <= rows; };
  size_t newest = events.size();
  if (!fits(head + list + Lines(events, newest, style))) list = WithoutHealthy(nics, style) + "\n";
  while (newest > kEventsLeast && !fits(head + list + Lines(events, newest, style))) --newest;
  const std::string whole = head + list + Lines(events, newest, style);
  if (fits(whole)) return whole;
  std::string shown;
  size_t used = 1;  // the last line names what is missing
  const std::vector<std::string> lines = absl::StrSplit(absl::StripSuffix(whole, "\n"), '\n');
  for (size_t i = 0; i < lines.size(); ++i) {
    used += RowsOf(lines[i] + "\n", style.width);
    if (used > rows) return absl::StrCat(shown, lines.size() - i, " more lines\n");
    absl::StrAppend(&shown, lines[i], "\n");
  }
  return shown;
}

absl::Status Watch(const WatchWorld& world, Style style, Client& client, std::ostream& out) {
  std::deque<v1::Event> events;
  uint64_t last = 0;
  do {
    style.now_ns = world.now_ns();
    std::tie(style.width, style.rows) = world.size();
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
    const absl::Status followed = client.Events(after, [&](const v1::Event& event) {
      last = event.sequence();
      events.push_back(event);
      if (events.size() > kEventsShown) events.pop_front();
      return true;
    });
    if (!followed.ok()) return followed;
    out << (world.redraw ? kRedraw : "") << Picture(*status, *nics, {events.begin(), events.end()}, style) << std::flush;
    if (!out) return absl::UnavailableError("cannot write to standard output");
  } while (world.wait());
  return absl::OkStatus();
}

}  // namespace r2cc::client
