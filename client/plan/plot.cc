#include "client/plan/plot.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/core/units.h"
#include "plan/simulate/ports_fabric.h"
#include "plan/simulate/simulate.h"

namespace r2cc::client {
namespace {

constexpr double kWidth = 1100;
constexpr double kLeft = 80;
constexpr double kRight = 190;  // for the legend
constexpr double kCurvesHeight = 420;
constexpr uint32_t kNodesShown = 16;
constexpr uint32_t kLanesShown = 8;  // of a node; further lanes are drawn over these
constexpr size_t kBarsMax = 20'000;  // what a browser shows without complaint

class Svg {
 public:
  void Line(double x1, double y1, double x2, double y2, absl::string_view style) {
    absl::StrAppendFormat(&body_, "<line x1='%.2f' y1='%.2f' x2='%.2f' y2='%.2f' style='%s'/>\n", x1, y1, x2, y2, style);
  }
  void Text(double x, double y, absl::string_view text, absl::string_view anchor = "start") {
    absl::StrAppendFormat(&body_, "<text x='%.2f' y='%.2f' text-anchor='%s'>%s</text>\n", x, y, anchor, text);
  }
  void Bar(double x, double y, double width, double height, absl::string_view colour, absl::string_view title) {
    absl::StrAppendFormat(&body_, "<rect x='%.2f' y='%.2f' width='%.2f' height='%.2f' fill='%s'><title>%s</title></rect>\n", x, y,
                          std::max(width, 0.3), height, colour, title);
  }
  void Curve(const std::vector<std::pair<double, double>>& points, absl::string_view colour, bool dashed) {
    absl::StrAppendFormat(&body_, "<polyline fill='none' stroke='%s' stroke-width='2'%s points='", colour,
                          dashed ? " stroke-dasharray='6 4'" : "");
    for (const auto& [x, y] : points) absl::StrAppendFormat(&body_, "%.2f,%.2f ", x, y);
    absl::StrAppend(&body_, "'/>\n");
  }
  std::string Document(double height) const {
    return absl::StrFormat(
        "<svg xmlns='http://www.w3.org/2000/svg' width='%.0f' height='%.0f' viewBox='0 0 %.0f %.0f' font-family='sans-serif' "
        "font-size='12'>\n<rect width='100%%' height='100%%' fill='white'/>\n%s</svg>\n",
        kWidth, height, kWidth, height, body_);
  }

 private:
  std::string body_;
};

constexpr char kAxis[] = "stroke:#444";
constexpr char kGrid[] = "stroke:#ddd";
constexpr char kBoundColour[] = "#000000";

const char* ColourOf(plan::ScheduleKind kind) {
  switch (kind) {
    case plan::ScheduleKind::kRing: return "#7f7f7f";
    case plan::ScheduleKind::kBalance: return "#1f77b4";
    case plan::ScheduleKind::kR2ccAllReduce: return "#d62728";
    case plan::ScheduleKind::kRecursive: return "#9467bd";
    case plan::ScheduleKind::kOptcc: return "#ff7f0e";
    case plan::ScheduleKind::kDirect: return "#2ca02c";
  }
  return "#000000";
}

std::string PowerOfTen(int exponent) {
  static constexpr absl::string_view kUnits[] = {"ns", "us", "ms", "s"};
  const int unit = std::clamp((exponent + 9) / 3, 0, 3);
  return absl::StrFormat("%.0f %s", std::pow(10, exponent + 9 - 3 * unit), kUnits[unit]);
}

// Each candidate's time over the size, both in powers.
void DrawCurves(const SimulateCommand& command, const plan::Ports& ports, Svg& svg) {
  const int size_bits = command.size_bytes == 0 ? 0 : static_cast<int>(std::lround(std::log2(static_cast<double>(command.size_bytes))));
  const int first = std::clamp(size_bits - 4, 4, 16);
  const int last = std::clamp(size_bits + 4, 34, 50);
  std::map<plan::ScheduleKind, std::vector<std::pair<double, double>>> times;
  std::vector<std::pair<double, double>> bounds;
  double least = 1e300;
  double most = 0;
  for (int bits = first; bits <= last; ++bits) {
    const plan::Decision decision = plan::Choose(uint64_t{1} << bits, ports);
    for (const plan::Candidate& candidate : decision.candidates) {
      times[candidate.kind].emplace_back(bits, candidate.time_s);
      most = std::max(most, candidate.time_s);
    }
    bounds.emplace_back(bits, decision.bound_s);
    least = std::min(least, decision.chosen.time_s);
  }
  // The bound of a short vector is far below what any step costs.
  const double bottom = std::floor(std::log10(least));
  const double top = std::ceil(std::log10(most));
  const double plot_bottom = kCurvesHeight - 50;
  const auto x = [&](double bits) { return kLeft + (kWidth - kLeft - kRight) * (bits - first) / (last - first); };
  const auto y = [&](double seconds) { return plot_bottom - (plot_bottom - 40) * (std::log10(seconds) - bottom) / (top - bottom); };
  svg.Text(kLeft, 24,
           absl::StrCat("Predicted time over message size: ", command.nodes, " nodes, ", command.rails, " rails of ",
                        FormatRate(command.rail_bits_per_s)));
  for (int bits = first; bits <= last; bits += 2) {
    svg.Line(x(bits), 40, x(bits), plot_bottom, kGrid);
    svg.Text(x(bits), plot_bottom + 18, FormatBytes(uint64_t{1} << bits), "middle");
  }
  for (int exponent = static_cast<int>(bottom); exponent <= static_cast<int>(top); ++exponent) {
    svg.Line(kLeft, y(std::pow(10, exponent)), kWidth - kRight, y(std::pow(10, exponent)), kGrid);
    svg.Text(kLeft - 8, y(std::pow(10, exponent)) + 4, PowerOfTen(exponent), "end");
  }
  if (command.size_bytes > 0) {
    const double asked = x(std::log2(static_cast<double>(command.size_bytes)));
    svg.Line(asked, 40, asked, plot_bottom, "stroke:#444;stroke-dasharray:2 3");
  }
  double legend = 52;
  const auto draw = [&](const std::vector<std::pair<double, double>>& points, absl::string_view name, const char* colour, bool dashed) {
    std::vector<std::pair<double, double>> drawn;
    for (const auto& [bits, seconds] : points)
      if (seconds >= std::pow(10, bottom)) drawn.emplace_back(x(bits), y(seconds));
    svg.Curve(drawn, colour, dashed);
    svg.Curve({{kWidth - kRight + 14, legend}, {kWidth - kRight + 40, legend}}, colour, dashed);
    svg.Text(kWidth - kRight + 46, legend + 4, name);
    legend += 20;
  };
  for (const auto& [kind, points] : times) draw(points, plan::ScheduleName(kind), ColourOf(kind), false);
  draw(bounds, "lower bound", kBoundColour, true);
  svg.Line(kLeft, plot_bottom, kWidth - kRight, plot_bottom, kAxis);
  svg.Line(kLeft, 40, kLeft, plot_bottom, kAxis);
}

struct Drawn {
  std::vector<plan::TransferTrace> transfers;
  double time_s = 0;
  bool one_for_all = false;  // one of the nodes that do the same was simulated in place of all
};

// The transfers of the step list; none if it is too long.
Drawn Trace(const plan::Schedule& schedule, const plan::FabricModel& fabric) {
  Drawn drawn;
  drawn.one_for_all = Transfers(schedule) > kTransfersMax;
  const auto keep = [&](const plan::TransferTrace& transfer) { drawn.transfers.push_back(transfer); };
  const FunctionRef<void(const plan::TransferTrace&)> trace(keep);
  drawn.time_s = plan::Simulate(schedule, fabric, {.use_rotation = drawn.one_for_all, .trace = &trace}).time_s;
  return drawn;
}

// Nodes that have lost something, then others, at most kNodesShown; of nodes that one stands for, only that one.
std::vector<uint32_t> NodesToShow(const SimulateCommand& command, const plan::Schedule& schedule, bool one_for_all) {
  std::vector<bool> hidden(command.nodes, false);
  if (one_for_all && !schedule.Rotation().empty())
    for (const uint32_t node : schedule.Rotation().subspan(1)) hidden[node] = true;
  std::vector<uint32_t> nodes;
  for (const bool hit : {true, false})
    for (uint32_t node = 0; node < command.nodes && nodes.size() < kNodesShown; ++node)
      if (!hidden[node] && (node < command.lost.size() && command.lost[node] > 0) == hit) nodes.push_back(node);
  std::sort(nodes.begin(), nodes.end());
  return nodes;
}

// A row a node, its lanes' sends in the upper half and receives in the lower, a bar a transfer. Returns the height.
double DrawSpaceTime(const SimulateCommand& command, const plan::Ports& ports, Svg& svg) {
  constexpr double kLaneHeight = 4;
  const plan::Decision decision = plan::Choose(command.size_bytes, ports);
  const auto schedule = plan::MakeCandidate(decision.chosen, command.size_bytes, ports);
  Drawn drawn = Trace(*schedule, plan::FabricOf(ports, decision.chosen.kind));
  const std::vector<uint32_t> nodes = NodesToShow(command, *schedule, drawn.one_for_all);
  double top = kCurvesHeight + 30;
  std::string title = absl::StrCat("What each node's port does: ", schedule->name(), " (sends above receives; blue adds, orange replaces)");
  const auto row_of = [&](uint32_t node) { return std::find(nodes.begin(), nodes.end(), node) - nodes.begin(); };
  const auto shown = [&](uint32_t node) { return row_of(node) < static_cast<ptrdiff_t>(nodes.size()); };
  std::erase_if(drawn.transfers, [&](const plan::TransferTrace& t) { return !shown(t.from) && !shown(t.to); });
  std::stable_sort(drawn.transfers.begin(), drawn.transfers.end(),
                   [](const plan::TransferTrace& a, const plan::TransferTrace& b) { return a.begin_s < b.begin_s; });
  double until = drawn.time_s;
  if (drawn.transfers.empty()) {
    absl::StrAppend(&title, ": too many transfers to draw");
  } else if (drawn.one_for_all) {
    absl::StrAppend(&title, "; n", schedule->Rotation()[0], " represents all that do the same");
  }
  if (drawn.transfers.size() > kBarsMax / 2) {
    drawn.transfers.resize(kBarsMax / 2);
    until = drawn.transfers.back().begin_s;
    absl::StrAppendFormat(&title, ", the first %.3f of %.3f ms", until * 1e3, drawn.time_s * 1e3);
  }
  svg.Text(kLeft, top - 10, title);
  uint32_t lanes = 1;
  for (const plan::TransferTrace& t : drawn.transfers) lanes = std::max({lanes, t.from_lane + 1, t.to_lane + 1});
  lanes = std::min(lanes, kLanesShown);
  const double row_height = 2 * lanes * kLaneHeight + 10;
  const auto x = [&](double seconds) { return kLeft + (kWidth - kLeft - 30) * std::min(seconds, until) / until; };
  const auto bar = [&](const plan::TransferTrace& t, uint32_t node, uint32_t lane, bool in) {
    if (!shown(node)) return;
    const double y = top + static_cast<double>(row_of(node)) * row_height + ((in ? lanes : 0) + lane % lanes) * kLaneHeight;
    svg.Bar(x(t.begin_s), y, x(t.end_s) - x(t.begin_s), kLaneHeight - 0.5, t.adds ? "#1f77b4" : "#ff7f0e",
            absl::StrFormat("n%d to n%d, %s, %.3f to %.3f ms", t.from, t.to, FormatBytes(t.range.bytes()), t.begin_s * 1e3, t.end_s * 1e3));
  };
  for (const plan::TransferTrace& t : drawn.transfers) {
    bar(t, t.from, t.from_lane, false);
    bar(t, t.to, t.to_lane, true);
  }
  for (size_t row = 0; row < nodes.size(); ++row) {
    const double y = top + static_cast<double>(row) * row_height;
    svg.Text(kLeft - 8, y + row_height / 2, absl::StrCat("n", nodes[row]), "end");
    svg.Line(kLeft, y + row_height - 6, kWidth - 30, y + row_height - 6, kGrid);
  }
  const double bottom = top + static_cast<double>(nodes.size()) * row_height;
  svg.Line(kLeft, bottom, kWidth - 30, bottom, kAxis);
  for (int tick = 0; tick <= 10 && until > 0; ++tick)
    svg.Text(x(until * tick / 10), bottom + 16, absl::StrFormat("%.3g ms", until * tick / 10 * 1e3), "middle");
  return bottom + 30;
}

}  // namespace

std::string PlotSvg(const SimulateCommand& command) {
  const plan::Ports ports = PortsOf(command);
  Svg svg;
  DrawCurves(command, ports, svg);
  const double height = DrawSpaceTime(command, ports, svg);
  return svg.Document(height);
}

}  // namespace r2cc::client
