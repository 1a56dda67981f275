#include "health/evidence/evidence_log.h"

#include <limits>

namespace r2cc::health {
namespace {

// Kinds that answer the same question belong to one series, so that link-up after link-down is news.
int QuestionOf(EvidenceKind kind) {
  switch (kind) {
    case EvidenceKind::kLinkDown: return static_cast<int>(EvidenceKind::kLinkUp);
    case EvidenceKind::kDrainNow:
    case EvidenceKind::kUndrain: return static_cast<int>(EvidenceKind::kDrain);
    case EvidenceKind::kUndrainJob: return static_cast<int>(EvidenceKind::kDrainJob);
    case EvidenceKind::kDrillRestore: return static_cast<int>(EvidenceKind::kDrillFail);
    case EvidenceKind::kJobLinkUp: return static_cast<int>(EvidenceKind::kJobFenced);
    case EvidenceKind::kJobSteady: return static_cast<int>(EvidenceKind::kJobSlow);
    case EvidenceKind::kPeerNicBack: return static_cast<int>(EvidenceKind::kPeerNicFailed);
    case EvidenceKind::kRailAnswers: return static_cast<int>(EvidenceKind::kRailSilent);
    case EvidenceKind::kFabricBack: return static_cast<int>(EvidenceKind::kFabricGone);
    case EvidenceKind::kRdmaUp: return static_cast<int>(EvidenceKind::kRdmaDown);
    case EvidenceKind::kPathBack: return static_cast<int>(EvidenceKind::kPathBroken);
    case EvidenceKind::kLargePasses: return static_cast<int>(EvidenceKind::kLargeLost);
    default: return static_cast<int>(kind);
  }
}

// Kinds whose values count the events since their last report.
bool AddsUp(EvidenceKind kind) { return kind == EvidenceKind::kCarrierFlips || kind == EvidenceKind::kLinkBounces; }

// Numbers come from jobs and drivers: one that is far too large ends at the largest there is.
int64_t Sum(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return a > 0 ? std::numeric_limits<int64_t>::max() : std::numeric_limits<int64_t>::min();
}

bool IsSameReport(const Evidence& a, const Evidence& b) { return a.kind == b.kind && a.value == b.value && a.detail == b.detail; }

}  // namespace

EvidenceLog::Series EvidenceLog::SeriesOf(const Evidence& evidence) {
  return {evidence.observer, evidence.subject, evidence.peer, QuestionOf(evidence.kind)};
}

void EvidenceLog::Add(const Evidence& evidence) {
  const Series series = SeriesOf(evidence);
  if (const auto newest = newest_.find(series); newest != newest_.end()) {
    EvidenceEntry& entry = entries_[newest->second - entries_.front().sequence];
    if (AddsUp(evidence.kind) || IsSameReport(entry.evidence, evidence)) {
      if (AddsUp(evidence.kind)) entry.evidence.value = Sum(entry.evidence.value, evidence.value);
      entry.evidence.when = evidence.when;
      ++entry.times;
      return;
    }
  }
  if (entries_.size() >= entries_max_) DropOldest();
  entries_.push_back({evidence, evidence.when, 1, next_sequence_});
  newest_[series] = next_sequence_++;
}

void EvidenceLog::DropOldest() {
  const EvidenceEntry& oldest = entries_.front();
  const auto newest = newest_.find(SeriesOf(oldest.evidence));
  if (newest != newest_.end() && newest->second == oldest.sequence) newest_.erase(newest);
  entries_.pop_front();
  ++forgotten_;
}

std::vector<EvidenceEntry> EvidenceLog::About(const NicKey& subject, size_t most) const {
  std::vector<EvidenceEntry> found;
  for (auto entry = entries_.rbegin(); entry != entries_.rend() && found.size() < most; ++entry)
    if (entry->evidence.subject == subject) found.push_back(*entry);
  return found;
}

}  // namespace r2cc::health
