#include "netplugin/transport/page_view.h"

#include <algorithm>
#include <utility>

#include "base/core/hash.h"
#include "netplugin/flow/mutant.h"

namespace r2cc::net {
namespace {

bool IsFailed(const plan::PageEntry& entry) { return entry.state == static_cast<uint8_t>(plan::PlannedState::kFailed); }

}  // namespace

NamesOnPage::NamesOnPage(const std::string& node, std::span<const std::string> nics) : node_(node), node_hash_(Fnv1a64(node)) {
  for (const std::string& nic : nics) Add(nic);
}

NamesOnPage::NamesOnPage(const std::string& node, std::span<const RailInfo> rails) : node_(node), node_hash_(Fnv1a64(node)) {
  for (const RailInfo& rail : rails) Add(rail.nic);
}

void NamesOnPage::Add(const std::string& nic) {
  std::string end = node_ + "/" + nic;
  const uint64_t end_hash = Fnv1a64(end);
  nics_.push_back({nic, std::move(end), Fnv1a64(nic), end_hash});
}

PageView::PageView(const plan::PageCopy& page, const std::string& job)
    : job_name_(plan::JobName(job)), job_hash_(plan::JobHash(job)), page_(page) {
  job_named_ = page_.displaced > 0 ||
               std::any_of(page_.entries.begin(), page_.entries.end(), [this](const auto& entry) { return entry.nic_hash == job_hash_; });
}

bool PageView::Judgement::IsBroken(RailPair rails) const { return std::binary_search(broken.begin(), broken.end(), rails); }

PageView::Entries PageView::Of(uint64_t node_hash) const {
  const auto& entries = page_.entries;
  const auto begin = std::partition_point(entries.begin(), entries.end(), [&](const auto& entry) { return entry.node_hash < node_hash; });
  const auto end = std::partition_point(begin, entries.end(), [&](const auto& entry) { return entry.node_hash == node_hash; });
  return {begin, end};
}

const plan::PageEntry* PageView::Find(Entries entries, uint64_t nic_hash) {
  const auto it = std::partition_point(entries.begin(), entries.end(), [&](const auto& entry) { return entry.nic_hash < nic_hash; });
  return it != entries.end() && it->nic_hash == nic_hash ? &*it : nullptr;
}

std::vector<RailVerdict> PageView::Verdicts(const NamesOnPage& names) const {
  std::vector<RailVerdict> verdicts;
  verdicts.reserve(names.nics().size());
  const Entries of_node = Of(names.node_hash());
  for (const NamesOnPage::Nic& nic : names.nics()) {
    const plan::PageEntry* const found = Find(of_node, nic.hash);
    const plan::PageEntry* entry = IsActive(Mutant::kOwnerUnproved) ? found : page_.Theirs(found, names.node(), nic.name);
    verdicts.push_back(entry == nullptr ? RailVerdict{} : RailVerdict{IsFailed(*entry), entry->weight_permille});
    if (job_named_ && page_.Theirs(Find(Of(nic.path_end_hash), job_hash_), nic.path_end, job_name_) != nullptr)
      verdicts.back().weight_permille = 0;
  }
  return verdicts;
}

PageView::Judgement PageView::Judge(const NamesOnPage& local, const NamesOnPage& remote) const {
  Judgement judgement{Verdicts(local), Verdicts(remote), {}};
  if (IsActive(Mutant::kPeerVerdictUnheeded)) std::fill(judgement.remote.begin(), judgement.remote.end(), RailVerdict{});
  // A path is found at its end of the earlier node, and mostly nothing is there.
  const bool local_first = local.node() < remote.node();
  const NamesOnPage& first = local_first ? local : remote;
  const NamesOnPage& second = local_first ? remote : local;
  for (size_t i = 0; i < first.nics().size(); ++i) {
    const NamesOnPage::Nic& end = first.nics()[i];
    const Entries from = Of(end.path_end_hash);
    for (size_t j = 0; (!from.empty() || page_.displaced > 0) && j < second.nics().size(); ++j) {
      const NamesOnPage::Nic& other_end = second.nics()[j];
      const plan::PageEntry* entry = page_.Theirs(Find(from, other_end.path_end_hash), end.path_end, other_end.path_end);
      if (entry == nullptr || !IsFailed(*entry)) continue;
      const auto one = static_cast<uint16_t>(i), other = static_cast<uint16_t>(j);
      judgement.broken.push_back(local_first ? RailPair{one, other} : RailPair{other, one});
    }
  }
  std::sort(judgement.broken.begin(), judgement.broken.end());
  return judgement;
}

}  // namespace r2cc::net
