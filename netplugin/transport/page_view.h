// Looks up the verdicts of the daemon's page on two nodes' NICs and on the paths between them. A view is a snapshot; lookups use hashes
// that are made once per name. Pure.
#ifndef R2CC_NETPLUGIN_TRANSPORT_PAGE_VIEW_H_
#define R2CC_NETPLUGIN_TRANSPORT_PAGE_VIEW_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "netplugin/flow/stripe.h"
#include "netplugin/link/cross_rail.h"
#include "netplugin/link/frame.h"
#include "plan/page/page.h"

namespace r2cc::net {

// The name, in a process's greeting, of a rail that no daemon of its node has matched to a NIC: no NIC may have such a name. A NIC of the
// node may well be named like the rail's interface, which is another one if the process has its own network namespace.
inline std::string UnmatchedName(const std::string& rail) { return "(" + rail + ")"; }
inline bool IsMatched(const std::string& nic) { return !nic.starts_with('('); }
// The name for log lines.
inline std::string ShownName(const std::string& nic) { return IsMatched(nic) || nic.size() < 2 ? nic : nic.substr(1, nic.size() - 2); }

// A node and its NICs, by rail, as pages name them.
class NamesOnPage {
 public:
  NamesOnPage() = default;
  NamesOnPage(const std::string& node, std::span<const std::string> nics);
  NamesOnPage(const std::string& node, std::span<const RailInfo> rails);

  struct Nic {
    std::string name;
    std::string path_end;  // "NODE/NIC"
    uint64_t hash = 0;     // of its name
    uint64_t path_end_hash = 0;
  };
  const std::string& node() const { return node_; }
  uint64_t node_hash() const { return node_hash_; }
  const std::vector<Nic>& nics() const { return nics_; }

 private:
  void Add(const std::string& nic);

  std::string node_;
  uint64_t node_hash_ = 0;
  std::vector<Nic> nics_;
};

// Any number of threads may read a view at a time.
class PageView {
 public:
  // Without a page: full weight for all, and no path is broken.
  PageView() = default;
  // `job`: this process's, which may have to avoid NICs that carry others.
  PageView(const plan::PageCopy& page, const std::string& job);

  struct Judgement {
    std::vector<RailVerdict> local, remote;  // by rail; full weight if the page has no entry
    std::vector<RailPair> broken;            // paths that the page forbids, in ascending order

    bool IsBroken(RailPair rails) const;
  };
  Judgement Judge(const NamesOnPage& local, const NamesOnPage& remote) const;
  // An operator took the NIC away at once.
  bool OnPurpose(const std::string& node, const std::string& nic) const { return page_.OnPurpose(node, nic); }

 private:
  using Entries = std::span<const plan::PageEntry>;
  // The entries of a node, or of the paths from one end.
  Entries Of(uint64_t node_hash) const;
  static const plan::PageEntry* Find(Entries entries, uint64_t nic_hash);
  std::vector<RailVerdict> Verdicts(const NamesOnPage& names) const;

  std::string job_name_;
  uint64_t job_hash_ = 0;
  bool job_named_ = false;  // some entry may name this job
  plan::PageCopy page_;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_PAGE_VIEW_H_
