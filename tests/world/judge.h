// What must hold at each moment between daemons, pages and jobs:
//   - a page gives no weight to a NIC whose link its own daemon has heard to be down;
//   - a verdict of a daemon on its own NIC is on the other daemons' pages in time;
//   - a job reads on its daemon's page what the daemon has written;
//   - what an operator was promised is kept over restarts of the daemon, and by the jobs;
//   - nothing of a former run of a job reaches the next one, or counts as its own;
//   - of a world in which nothing is broken nobody says anything bad.
#ifndef R2CC_TESTS_WORLD_JUDGE_H_
#define R2CC_TESTS_WORLD_JUDGE_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "tests/sim/checkers.h"
#include "tests/sim/process.h"
#include "tests/world/operator.h"

namespace r2cc::world {

class Judge final : public cluster::Observer {
 public:
  struct World {
    const sim::Timeline* timeline;
    sim::Checker* checker;
    const std::vector<std::unique_ptr<cluster::Node>>* nodes;
    const Operator* settings;
    int count;  // of the nodes
    bool calm;  // nothing is ever broken
  };
  explicit Judge(const World& world);

  // ---- what happens ----

  void Forget(int node) override;
  void OnPage(int node, const plan::Plan& plan, Nanos now) override;
  void OnView(const v1::NodeView& view, int node, Nanos now) override;
  void OnLink(int node, int rail, bool up) override;
  // True: the node's daemon runs and is connected to others.
  void SetConnected(int node, bool connected);
  // It is gone for ever, and what the others say of it is their affair.
  void Vanish(int node) { vanished_.insert(node); }
  void SetStore(bool up) { store_since_ = up ? Now() : kNever; }
  // `ids`: by which daemons know them.
  void SetProcesses(const std::vector<sim::Process*>& processes, const std::vector<std::string>& ids) {
    processes_ = processes;
    ids_ = ids;
  }
  // Of two processes, by rails of their nodes.
  void ChunkLeaves(int sender, int receiver, const Nic& from, const Nic& to);

  // The node's daemon lists these processes, which take so many places; or these that have ended. All of them are of the job, whose runs
  // have one name.
  void OnJobs(int node, const v1::ListJobsReply& jobs, size_t places);
  void OnEnded(int node, const v1::ListJobsReply& jobs) const;

  // Once in a while: what holds all the time.
  void Look();
  // What is not as it must be after all is mended; empty if all is.
  std::string Unrested() const;

 private:
  static constexpr Nanos kNever = INT64_MAX;
  struct Entry {
    plan::PlannedState state = plan::PlannedState::kHealthy;
    uint16_t weight = 0;
    Nanos since = 0;  // that its weight is not 0, or is 0
  };
  struct Daemon {
    std::map<Nic, Entry> page;  // the last one of this run
    size_t broken_paths = 0;
    std::map<int, Nanos> down_since;                        // by rail: as it has heard of its kernel
    std::map<int, std::pair<v1::NicState, Nanos>> verdict;  // by rail: as it has published last, and since when
    Nanos connected_since = kNever;
    int boots = 0;
  };
  Nanos Now() const { return world_.timeline->now(); }
  void LookAtOwn(int node) const;
  void LookAtOthers(int node) const;
  void LookAtLinks();
  void LookAtReader(const sim::Process& process);
  void LookForFormerPeers(const sim::Process& process) const;
  const sim::Process* Known(int node, const v1::Job& job) const;
  // For how long it has had its turns; 0: it has none.
  Nanos AwakeFor(const sim::Process& process) const;
  bool ConnectedFor(int node, Nanos least) const;
  void Violation(const char* checker, const std::string& what) const { world_.checker->Violation(checker, what); }

  const World world_;
  std::vector<Daemon> daemons_;
  std::vector<sim::Process*> processes_;
  std::vector<std::string> ids_;
  std::map<std::tuple<int, int, net::LinkId>, Nanos> up_since_;  // links of a sender to a receiver
  std::map<int, Nanos> awake_since_;                             // by process
  std::set<int> vanished_;
  Nanos store_since_ = kNever;
};

}  // namespace r2cc::world

#endif  // R2CC_TESTS_WORLD_JUDGE_H_
