// What the cluster's daemons say of its NICs: which pages know a fault, and which word is wrong.
#ifndef R2CC_TESTS_CLUSTER_WATCH_H_
#define R2CC_TESTS_CLUSTER_WATCH_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/core/clock.h"
#include "daemon/io/page_sink.h"
#include "plan/model.h"
#include "proto/r2cc.pb.h"

namespace r2cc::cluster {

struct Nic {
  int node = 0;
  int rail = 0;

  friend auto operator<=>(const Nic&, const Nic&) = default;
};

// "n0017", so that the order of names is that of numbers.
std::string NodeName(int node);
std::string RailName(int rail);
// Names for rails 0 and 1 that have one hash, as a page knows them.
extern const char* const kTwins[2];
// Of either name.
Nic NicOf(const plan::PlannedNic& planned);

// Sees every page and every view as its daemon publishes it. Times are the cluster's.
class Observer {
 public:
  virtual ~Observer() = default;
  // A node's daemon is one that has just started: what it says is no change.
  virtual void Forget(int node) = 0;
  virtual void OnPage(int node, const plan::Plan& plan, Nanos now) = 0;
  virtual void OnView(const v1::NodeView& view, int node, Nanos now) = 0;
  // A daemon has heard from its kernel of a link.
  virtual void OnLink(int /*node*/, int /*rail*/, bool /*up*/) {}
};

class Watch final : public Observer {
 public:
  Watch(int nodes, int rails) : rails_(rails), waiting_(static_cast<size_t>(nodes)), states_(static_cast<size_t>(nodes * rails)) {}

  // From now on a bad word about these is right, until Recovered.
  void Break(const std::vector<Nic>& nics) { broken_.insert(nics.begin(), nics.end()); }
  void Recovered() { broken_.clear(); }
  // While daemons cannot hear of each other: that a path to a broken NIC carries nothing is then all that they can know, and right.
  void AllowPaths(bool allow) { paths_allowed_ = allow; }
  void Forget(int node) override;

  // Waits, from `now`, until each page of `nodes` forbids all of `nics`, or (`usable`) gives all of them their full weight.
  void Await(const std::vector<Nic>& nics, bool usable, const std::set<int>& nodes, Nanos now);
  // Pages that do not know it yet.
  size_t missing() const { return missing_; }
  // When each page was right, after the Await. In no order.
  const std::vector<Nanos>& delays() const { return delays_; }

  void OnPage(int node, const plan::Plan& plan, Nanos now) override;
  void OnView(const v1::NodeView& view, int node, Nanos now) override;

  // Changes of state that daemons told of their own NICs since ResetCounts; to FAILED, DEGRADED or SUSPECT.
  int verdicts() const { return verdicts_; }
  // Bad words about NICs that nothing is wrong with, by daemons about their own and in pages, since the beginning. One line each.
  const std::vector<std::string>& wrong() const { return wrong_; }
  // Pages that were published, and views, since ResetCounts.
  int pages() const { return pages_; }
  int views() const { return views_; }
  void ResetCounts() { verdicts_ = pages_ = views_ = 0; }

 private:
  bool IsPathToBroken(const std::string& reason) const;
  bool Knows(const plan::Plan& plan) const;
  void Wrong(int observer, const std::string& nic, const std::string& what, Nanos now);

  const int rails_;
  std::set<Nic> broken_;
  std::vector<Nic> awaited_;
  bool usable_ = false;
  bool paths_allowed_ = false;
  Nanos since_ = 0;
  std::vector<bool> waiting_;
  size_t missing_ = 0;
  std::vector<Nanos> delays_;
  std::vector<v1::NicState> states_;
  std::vector<std::string> wrong_;
  int verdicts_ = 0;
  int pages_ = 0;
  int views_ = 0;
};

}  // namespace r2cc::cluster

#endif  // R2CC_TESTS_CLUSTER_WATCH_H_
