#include "health/view/pair_reports.h"

#include <cstdint>

#include "base/core/check.h"

namespace r2cc::health {
namespace {

constexpr char kSilent = 1;
constexpr char kBroken = 2;
constexpr char kLargeLost = 4;
constexpr char kLargePasses = 8;

char LargeFlag(PairVerdict large) {
  if (large == PairVerdict::kUnknown) return 0;
  return large == PairVerdict::kSilent ? kLargeLost : kLargePasses;
}

// The name that begins at `*at`, which is then its end.
std::string_view Take(const char** at) {
  const char* const text = *at + 1;
  const size_t size = static_cast<uint8_t>(**at);
  *at = text + size;
  return {text, size};
}

}  // namespace

void PairReports::push_back(const PairReport& report) {
  bytes_.push_back(static_cast<char>((report.silent ? kSilent : 0) | (report.broken ? kBroken : 0) | LargeFlag(report.large)));
  for (const std::string* name : {&report.nic, &report.peer.node, &report.peer.nic}) {
    R2CC_CHECK(name->size() <= UINT8_MAX);
    bytes_.push_back(static_cast<char>(name->size()));
    bytes_ += *name;
  }
  ++size_;
  silent_ += report.silent ? 1 : 0;
  broken_ += report.broken ? 1 : 0;
  large_lost_ += report.large == PairVerdict::kSilent ? 1 : 0;
}

PairReport PairReports::Iterator::operator*() const {
  const char* at = at_;
  const char flags = *at++;
  PairReport report;
  report.nic = Take(&at);
  report.peer.node = Take(&at);
  report.peer.nic = Take(&at);
  report.silent = (flags & kSilent) != 0;
  report.broken = (flags & kBroken) != 0;
  if ((flags & (kLargeLost | kLargePasses)) != 0) report.large = (flags & kLargeLost) != 0 ? PairVerdict::kSilent : PairVerdict::kAnswering;
  return report;
}

bool PairReports::Iterator::silent() const { return (*at_ & kSilent) != 0; }

bool PairReports::Iterator::large_lost() const { return (*at_ & kLargeLost) != 0; }

std::string_view PairReports::Iterator::peer_node() const {
  const char* at = at_ + 1;
  Take(&at);
  return Take(&at);
}

PairReports::Iterator& PairReports::Iterator::operator++() {
  ++at_;
  for (int name = 0; name < 3; ++name) Take(&at_);
  return *this;
}

}  // namespace r2cc::health
