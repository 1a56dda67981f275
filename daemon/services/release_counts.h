// Counts which releases a cluster runs on how many nodes. Pure.
#ifndef R2CC_DAEMON_SERVICES_RELEASE_COUNTS_H_
#define R2CC_DAEMON_SERVICES_RELEASE_COUNTS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "proto/r2cc.pb.h"

namespace r2cc::daemon {

class ReleaseCounts {
 public:
  // A cluster that is being upgraded has two: more are invented by some node, and the rarest of them are left out.
  static constexpr size_t kReleasesMax = 8;

  // `release` empty: the node has not sent it.
  void Add(const std::string& node, const std::string& release, uint32_t jobs_of_other_releases) {
    if (!release.empty()) {
      v1::ClusterSummary::Releases& of = releases_[release];
      of.set_release(release);
      of.set_nodes(of.nodes() + 1);
      of.set_node(node);
    }
    if (jobs_of_other_releases > 0) jobs_on_ = node;
    // A node may send any number.
    jobs_ = jobs_of_other_releases > UINT32_MAX - jobs_ ? UINT32_MAX : jobs_ + jobs_of_other_releases;
  }

  void PutInto(v1::ClusterSummary* summary) const {
    std::vector<v1::ClusterSummary::Releases> sorted;
    for (const auto& [release, of] : releases_) sorted.push_back(of);
    std::stable_sort(sorted.begin(), sorted.end(), [](const auto& one, const auto& other) { return one.nodes() > other.nodes(); });
    if (sorted.size() > kReleasesMax) sorted.resize(kReleasesMax);
    for (v1::ClusterSummary::Releases& of : sorted) *summary->add_releases() = std::move(of);
    summary->set_jobs_of_other_releases(jobs_);
    summary->set_jobs_of_other_releases_on(jobs_on_);
  }

 private:
  std::map<std::string, v1::ClusterSummary::Releases> releases_;
  uint32_t jobs_ = 0;
  std::string jobs_on_;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_SERVICES_RELEASE_COUNTS_H_
