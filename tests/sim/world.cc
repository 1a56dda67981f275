#include "tests/sim/world.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <set>
#include <tuple>

#include "tests/sim/charge.h"
#include "tests/sim/checkers.h"
#include "tests/sim/path_watch.h"
#include "tests/sim/runs.h"
#include "tests/sim/stall_watch.h"

namespace r2cc::sim {
namespace {

// No request may need longer than this once nothing is broken any more: back-offs of 2 s, a connect limit of 1 s and the kernel's
// retransmission of up to 5 s may follow one another.
constexpr Nanos kLiveness = 20 * kNanosPerSecond;
// And daemons no longer than this: a NIC that has flapped proves itself for up to 30 s.
constexpr Nanos kDaemonsRest = 40 * kNanosPerSecond;
// A process that died is missed within this: silence, a probe, and the job's own pace.
constexpr Nanos kMissedWithin = 2500 * kNanosPerMs;
// The least after the last two of 24 rounds, relative to the most after the second and the third: a buffer that is there or not at the end
// of one round is no growth. Faults of jobs are kept up to a number, and a chunk has 64 KiB: up to 131 KiB and a tenth more.
constexpr int64_t kGrowthMaxBytes = 128 << 10;
// How long a link may be away although its path is sound: a back-off and a connect.
constexpr Nanos kReconnecting = 3 * kNanosPerSecond;
// What came of a process that is gone is noticed sooner than that: probes, keep-alives and the deadline.
constexpr Nanos kEndOfAll = 400 * kNanosPerSecond;

class World : public Tap {
 public:
  World(const Scenario& scenario, uint64_t seed, bool verbose, const MakeDaemons& make_daemons)
      : scenario_(scenario),
        verbose_(verbose),
        timeline_(seed),
        network_(&timeline_),
        paths_(&network_, scenario_.Rails()),
        checker_(&timeline_) {
    network_.set_send_buffer_bytes(scenario.send_buffer_bytes);
    network_.set_receive_buffer_bytes(scenario.receive_buffer_bytes);
    network_.set_backlog(scenario.backlog);
    for (const auto& [ports, options] : scenario.paths) network_.SetPath(ports.first, ports.second, options);
    if (scenario.runs > 1) network_.set_nodes(scenario.Nodes());
    if (scenario.verbs) rails_ = std::make_shared<VerbsRails>(&network_, *scenario.verbs);
    if (scenario.verbs) stalls_ = std::make_unique<StallWatch>(&scenario_, &network_, rails_.get(), &processes_, &checker_);
    const Process::MakeRails make_rails = [this](Io* io, net::Greet) { return rails_->Make(io); };
    if (make_daemons) daemons_ = make_daemons(&network_, &checker_, scenario_);
    std::vector<Process*> processes;
    for (size_t host = 0; host < scenario.processes.size(); ++host) {
      processes_.push_back(std::make_unique<Process>(&network_, this, static_cast<int>(host), scenario.processes[host],
                                                     rails_ == nullptr ? nullptr : make_rails,
                                                     daemons_ == nullptr ? nullptr : daemons_->NewLink(static_cast<int>(host))));
      processes_.back()->page = [this] { return faults_->Page(); };
      processes.push_back(processes_.back().get());
    }
    if (daemons_ != nullptr) daemons_->SetProcesses(processes);
    job_ = std::make_unique<Job>(&checker_, processes, [this](int own, int other, const Job::Awaited& awaited) {
      return Excused(own, other) || Stranded(own, other, awaited);
    });
    runs_ = std::make_unique<Runs>(
        &timeline_, processes, scenario.runs, [this](Process* process) { faults_->Begun(process); },
        [this] { AddFlows(runs_->last_begin()); });
    faults_ = std::make_unique<Faults>(Faults::World{
        .network = &network_,
        .processes = processes,
        .runs = runs_.get(),
        .rails = rails_.get(),
        .daemons = daemons_.get(),
        .abort = [this](int host) { job_->Abort(host); },
        .changed = [this] { paths_.Note(); },
        .log = verbose ? std::function<void(const std::string&)>([this](const std::string& line) { Log(-1, line); }) : nullptr,
    });
    // Faults first: what is dead at the start is dead before anybody looks.
    for (const Fault& fault : scenario.faults) faults_->Plan(fault);
    AddFlows(kNanosPerSecond);
    if (scenario.group.has_value()) StartGroup({processes.begin(), processes.begin() + scenario.Nodes()});
    for (int round = 2; scenario.rounds > 1 && round <= scenario.rounds; ++round)
      timeline_.At(kNanosPerSecond + round * scenario.round - 1, [this, round] { Weigh(round); });
    if (daemons_ != nullptr || group_ != nullptr) job_->stays = [this](const Process& process) { return Stays(process); };
  }

  ~World() override {
    group_.reset();
    timeline_.Clear();
  }

  Result Run() {
    Result result;
    // A fault ends as planned; what comes of it is over some time later.
    Nanos end_of_faults = kEndOfAll;
    for (const Fault& fault : scenario_.faults) end_of_faults = std::max(end_of_faults, fault.at + fault.duration + kEndOfAll);
    Nanos limit = end_of_faults;
    while (checker_.violations().empty() && !job_->over() && timeline_.RunNext()) {
      ++result.events;
      if (stalls_ != nullptr) stalls_->Judge();
      if (IsHealed()) {
        limit = std::max(faults_->last_healed(), AllPosted()) + AckDelay();
        if (timeline_.now() > limit) {
          Hung();
          break;
        }
      } else if (faults_->healed() && !runs_->all_launched() && timeline_.now() > RunOver()) {
        Hung();
        break;
      } else if (timeline_.now() > end_of_faults) {
        checker_.Violation("hang", "a fault is not over after " + std::to_string(end_of_faults / kNanosPerSecond) + " s");
      }
    }
    checker_.CheckAtEnd();
    if (scenario_.kind == Class::kCalm && coverage_.fences > 0)
      checker_.Violation("false fence", std::to_string(coverage_.fences) + " links were fenced although nothing was broken");
    JudgeDeath();
    if (rails_ != nullptr && rails_->hangs() > 0)
      checker_.Violation("hang", "a queue pair with an event that nobody has acknowledged is destroyed");
    result.violations = checker_.violations();
    for (int kind = 0; kind < kFaultKinds; ++kind)
      coverage_.faults[static_cast<size_t>(kind)] = static_cast<uint64_t>(faults_->injected()[static_cast<size_t>(kind)]);
    for (size_t i = 0; i < coverage_.situations.size(); ++i) coverage_.situations[i] += checker_.situations()[i];
    coverage_.messages = job_->messages_delivered();
    coverage_.errors = static_cast<uint64_t>(job_->failures());
    result.coverage = coverage_;
    result.virtual_time = timeline_.now() - kNanosPerSecond;
    return result;
  }

 private:
  // Devices carry the links, nothing is broken, and nothing has been for a while.
  bool IsQuiet() const {
    const Nanos now = timeline_.now();
    return scenario_.verbs && scenario_.kind == Class::kCalm &&
           std::none_of(scenario_.faults.begin(), scenario_.faults.end(),
                        [now](const Fault& fault) { return fault.at <= now && now < fault.at + fault.duration + kNanosPerSecond; });
  }
  // The group's part of a process's turn comes before that of the flows, which may end the process.
  void StartGroup(const std::vector<Process*>& processes) {
    group_ = std::make_unique<GroupJob>(&checker_, processes, *scenario_.group, [this] { return GroupIsExcused(); });
    for (Process* const process : processes)
      process->progress = [this, process, flows = process->progress] {
        group_->Progress(process);
        if (!Stays(*process) || job_->aborted(process->host())) group_->Leave(*process);
        flows();
      };
  }
  bool GroupIsExcused() const {
    for (int a = 0; a < scenario_.Nodes(); ++a)
      for (int b = 0; b < scenario_.Nodes(); ++b)
        if (a != b && Excused(a, b)) return true;
    return false;
  }
  // A process that has done its part is needed by others, or waited for by a judge.
  bool Stays(const Process& process) {
    if (group_ != nullptr && process.host() < scenario_.Nodes() && !group_->done()) return true;
    return !runs_->IsLaunched(process) || (daemons_ != nullptr && runs_->IsOfLast(process) && !IsRested());
  }
  // Those of the run that is complete since `begin`: the job's plan is that of its first run.
  void AddFlows(Nanos begin) {
    const int first = added_runs_++ * scenario_.Nodes();
    for (FlowPlan flow : scenario_.flows) {
      flow.sender += first;
      flow.receiver += first;
      flow.start += begin - kNanosPerSecond;
      job_->Add(flow);
    }
  }
  bool IsHealed() const { return faults_->healed() && runs_->all_launched() && (daemons_ == nullptr || daemons_->answered()); }
  // Looked at by every process in every turn; the answer of a moment ago is as good.
  bool IsRested() {
    constexpr Nanos kLookEvery = 50 * kNanosPerMs;
    if (rested_ || timeline_.now() < look_at_) return rested_;
    look_at_ = timeline_.now() + kLookEvery;
    unrested_ = IsHealed() ? daemons_->Unrested() : "something is broken";
    return rested_ = unrested_.empty();
  }
  // ---- the tap ----

  void Reads(int, const std::byte* from, size_t bytes) override { checker_.Reads(from, bytes); }
  void DeviceReads(int, const std::byte* from) override { checker_.DeviceReads(from); }
  void Writes(int, const std::byte* to, size_t bytes) override { checker_.Writes(to, bytes); }
  void ChunkSent(const Carrying& who, const net::Chunk& chunk) override {
    checker_.ChunkSent(who, chunk);
    if (daemons_ == nullptr) return;
    const net::SendLinks& links = processes_[static_cast<size_t>(who.sender)]->send_peers().at(who.receiver)->session().links();
    daemons_->ChunkLeaves({who.sender, links.local_rail(who.link)}, {who.receiver, links.remote_rail(who.link)});
  }
  void ChunkBegun(const Carrying& who, const net::Chunk& header, const std::byte* destination) override {
    checker_.ChunkBegun(who, header, destination);
  }
  void ChunkFinished(const Carrying& who, const net::Chunk& header) override { checker_.ChunkFinished(who, header); }
  void Keyed(const Carrying& who, const net::Chunk& header, bool right, bool again) override { checker_.Keyed(who, header, right, again); }
  void Placing(const Carrying& who, std::byte* to, size_t bytes) override { checker_.Placing(who, to, bytes); }
  bool ChunkPlaced(const Carrying& who, const net::Chunk& header) override { return checker_.ChunkPlaced(who, header); }
  void SuccessorIsTheSame(const Carrying& who) override {
    checker_.Violation("successor", "link " + std::to_string(who.link) + "/" + std::to_string(who.incarnation) + " from " +
                                        std::to_string(who.sender) + " to " + std::to_string(who.receiver) +
                                        " has the queue pair number of the incarnation before it");
  }
  void KeysRevoked(int host, int rail) override {
    checker_.Violation("keys revoked", "all keys of rail " + std::to_string(rail) + " of " + std::to_string(host) +
                                           " are void, and its device did all that it was asked");
  }
  void Garbled(const Carrying& who) override { checker_.Garbled(who); }
  void ChunkRefused(const Carrying& who, const net::Chunk& header) override { checker_.ChunkRefused(who, header); }
  void CarrierEnded(const Carrying& who) override { checker_.CarrierEnded(who); }
  void Recorded(int sender, int receiver, int, const net::SessionAction& action) override {
    const auto reached = [this](Situation situation) { ++coverage_.situations[static_cast<size_t>(situation)]; };
    std::set<net::LinkId>& fencing = fencing_[{sender, receiver}];
    if (action.kind == net::SessionAction::Kind::kLinkUp) {
      const auto& peer = processes_[static_cast<size_t>(sender)]->send_peers().at(receiver);
      if (!peer->session().links().is_home(action.link)) reached(Situation::kCrossRailLink);
      if (action.incarnation > 1) reached(Situation::kReturned);
    }
    if (action.kind != net::SessionAction::Kind::kLinkFenced) return;
    checker_.Fenced({receiver, sender, action.link, action.incarnation});
    fencing.erase(action.link);
    if (!fencing.empty()) reached(Situation::kFenceInFence);
    ++coverage_.replays;
    if (action.report.cause == plan::EvidenceCause::kFlowClosed && IsQuiet())
      checker_.Violation("torn by a close", "link " + std::to_string(action.link) + " from " + std::to_string(sender) + " to " +
                                                std::to_string(receiver) + " ended as a flow was closed, though nothing was on the way");
    // A cross-rail link that is not needed any more ends as a fence does; and at the end of a process its links close without anything
    // being wrong. One that is drained, and whose peer does not read, is given up.
    const bool planned = action.report.cause == plan::EvidenceCause::kRetired || action.report.cause == plan::EvidenceCause::kPageNotice;
    if (!planned && !Ending(sender, receiver)) ++coverage_.fences;
  }
  void Stepped(net::InitiatorState state, net::InitiatorEvent event) override {
    ++coverage_.initiator[static_cast<size_t>(state)][static_cast<size_t>(event)];
  }
  void Stepped(net::AcceptorState state, net::AcceptorEvent event) override {
    ++coverage_.acceptor[static_cast<size_t>(state)][static_cast<size_t>(event)];
  }
  void At(Moment moment, int sender, int receiver, net::LinkId link) override {
    if (moment == Moment::kLinkFencing) fencing_[{sender, receiver}].insert(link);
    faults_->At(moment, sender, receiver, link);
  }
  void Log(int host, const std::string& line) override {
    std::printf("%12.3f ms  %s  %s\n", static_cast<double>(timeline_.now() - kNanosPerSecond) * 1e-6,
                host < 0 ? "--" : ("p" + std::to_string(host)).c_str(), line.c_str());
  }
  bool logs() const override { return verbose_; }

  // ---- judgement ----

  // At the end of a round, when all is mended and nothing is on the way.
  void Weigh(int round) {
    for (const Account account : {Account::kDaemons, Account::kPeers}) {
      const int64_t bytes = LiveBytes(account);
      std::vector<int64_t>& weights = weights_[static_cast<size_t>(account)];
      weights.push_back(bytes);
      if (verbose_) Log(-1, "round " + std::to_string(round) + ": " + std::to_string(bytes) + " bytes of " + Name(account));
      if (round != scenario_.rounds) continue;
      const int64_t early = *std::max_element(weights.begin(), weights.begin() + 2);
      const int64_t late = *std::min_element(weights.end() - 2, weights.end());
      if (late > early + early / 4 + kGrowthMaxBytes)
        checker_.Violation("memory", std::string(Name(account)) + " hold " + std::to_string(late) +
                                         " bytes after each of the last two of " + std::to_string(round) + " rounds, and held " +
                                         std::to_string(early) + " at most after the third");
    }
  }
  static const char* Name(Account account) { return account == Account::kDaemons ? "daemons" : "peers"; }

  // At the end of a process its links close without anything being wrong.
  bool Ending(int a, int b) const { return processes_[static_cast<size_t>(a)]->exiting() || processes_[static_cast<size_t>(b)]->exiting(); }

  // Errors are for a peer that is gone, or that no rail has reached for the deadline: never for one that is slow or stopped.
  bool Excused(int own, int other) const {
    if (faults_->gone(other) || faults_->gone(own) || job_->aborted(other)) return true;
    // Its own failure, excused or a violation already, ends its job: that is news here.
    if (job_->failed_at(other) != 0) return true;
    // Last words are lost only if nothing could carry them while the process that had to say them was ending.
    const Process& peer = *processes_[static_cast<size_t>(other)];
    if (peer.gave_up() && (!faults_->healed() || faults_->last_healed() >= peer.exit_began())) return true;
    const std::optional<Nanos> back = paths_.back_at(own, other), lost = paths_.lost_since(own, other);
    if (scenario_.kind == Class::kDeadline && back.has_value() && timeline_.now() - *back < kReconnecting) return true;
    // A link that cannot be ended costs the flows on it, after the deadline.
    for (const int host : {own, other})
      if (const Nanos since = faults_->cannot_close_since(host);
          since != 0 && timeline_.now() - since >= scenario_.processes[static_cast<size_t>(own)].deadline)
        return true;
    // The session counts from its last link's end, which other faults may have brought about a little earlier.
    return lost.has_value() && timeline_.now() - *lost >= scenario_.processes[static_cast<size_t>(own)].deadline - kReconnecting;
  }

  // A buffer awaits bytes that only rails reach which are cut off from all of the sender's, for the deadline. As above, the session counts
  // from the end of the last link there.
  bool Stranded(int own, int other, const Job::Awaited& awaited) const {
    const Nanos least = scenario_.processes[static_cast<size_t>(own)].deadline - kReconnecting;
    const auto is_cut_off = [&](int rail) {
      const std::optional<Nanos> since = paths_.cut_off_since(own, other, rail);
      return since.has_value() && timeline_.now() - *since >= least;
    };
    return std::any_of(awaited.begin(), awaited.end(), [&](const std::vector<int>& rails) {
      return !rails.empty() && std::all_of(rails.begin(), rails.end(), is_cut_off);
    });
  }

  Nanos AllPosted() const { return std::max(runs_->last_begin(), kNanosPerSecond) + scenario_.LastPost(); }
  // When all processes of a run that is not the last one have ended. Of a run that lost one the others end with an error: each within the
  // deadline, and then it waits as long at most for those that do not hear its last words.
  Nanos RunOver() const {
    const bool lost_one =
        faults_->deaths().lower_bound(runs_->launched() * scenario_.Nodes() - scenario_.Nodes()) != faults_->deaths().end();
    const Nanos begin = std::max(faults_->last_healed(), lost_one ? runs_->last_begin() : AllPosted());
    return begin + 2 * scenario_.processes[0].deadline + kLiveness;
  }

  Nanos AckDelay() const {
    const bool lasting = scenario_.kind == Class::kGone || scenario_.kind == Class::kDeadline || scenario_.runs > 1;
    const auto never = [](const Fault& fault) { return fault.kind == FaultKind::kCloseNever; };
    const bool kept = std::any_of(scenario_.faults.begin(), scenario_.faults.end(), never);
    return kLiveness + (daemons_ != nullptr ? kDaemonsRest : 0) + (lasting ? scenario_.processes[0].deadline : 0) +
           (kept ? Job::kCloseLimit : 0);
  }

  // A process that died while its host lives is soon missed.
  void JudgeDeath() {
    const auto stops = [](const Fault& fault) { return fault.kind == FaultKind::kStopShort || fault.kind == FaultKind::kStopLong; };
    if (scenario_.kind != Class::kGone || std::any_of(scenario_.faults.begin(), scenario_.faults.end(), stops)) return;
    for (const auto& [dead, at] : faults_->deaths())
      for (const auto& process : processes_) {
        const Nanos failed = job_->failed_at(process->host());
        if (process->run() != processes_[static_cast<size_t>(dead)]->run() || failed == 0 ||
            failed <= std::max(at, job_->FirstStart(dead, process->host())) + kMissedWithin)
          continue;
        checker_.Violation("late error", "process " + std::to_string(process->host()) + " heard of the death of " + std::to_string(dead) +
                                             " after " + std::to_string((failed - at) / kNanosPerMs) + " ms");
      }
  }

  template <typename PeerType>
  static std::string Owes(const PeerType& peer) {
    return std::string(peer.session().failed() ? ", failed" : "") + (peer.idle() ? "" : ", owes frames") +
           (peer.flushed() ? "" : ", has frames unsent");
  }

  void Hung() {
    std::string what = "nothing has been broken for " + std::to_string(AckDelay() / kNanosPerMs) + " ms, and still:";
    if (daemons_ != nullptr && !rested_ && job_->done() && (group_ == nullptr || group_->done()))
      return checker_.Violation("lost for ever", what + "\n    " + unrested_);
    for (const std::string& line : job_->Unfinished()) what += "\n    " + line;
    if (group_ != nullptr)
      for (const std::string& line : group_->Unfinished()) what += "\n    " + line;
    for (const auto& process : processes_) {
      if (process->dead()) continue;
      for (const auto& [host, peer] : process->send_peers()) {
        const net::SendSession& session = peer->session();
        what += "\n    sender " + std::to_string(process->host()) + " -> " + std::to_string(host) + Owes(*peer) + ": links";
        for (net::LinkId link = 0; link < session.links().count(); ++link)
          what += std::string(" ") + net::Name(session.links().state(link)) + "/" + std::to_string(session.links().incarnation(link));
      }
      for (const auto& [number, peer] : process->recv_peers()) {
        const net::RecvSession& session = peer->session();
        what += "\n    receiver " + std::to_string(process->host()) + " <- " + peer->node() + Owes(*peer) + ": links";
        for (net::LinkId link = 0; link < session.links().count(); ++link)
          what += std::string(session.links().up(link) ? " up/" : " down/") + std::to_string(session.links().incarnation(link));
      }
    }
    checker_.Violation("hang", what);
  }

  std::array<std::vector<int64_t>, 3> weights_;  // bytes after each round from the second on
  const Scenario scenario_;
  const bool verbose_;
  Timeline timeline_;
  Network network_;
  PathWatch paths_;
  Checker checker_;
  Coverage coverage_;
  std::unique_ptr<Faults> faults_;
  std::map<std::pair<int, int>, std::set<net::LinkId>> fencing_;
  std::shared_ptr<VerbsRails> rails_;   // null: rails are the network's own
  std::unique_ptr<StallWatch> stalls_;  // of these
  std::unique_ptr<Daemons> daemons_;    // null: there are none
  std::unique_ptr<Runs> runs_;
  int added_runs_ = 0;
  bool rested_ = false;
  Nanos look_at_ = 0;
  std::string unrested_;
  // The job holds peers, which end with their processes, and tell of it to all of the above.
  std::vector<std::unique_ptr<Process>> processes_;
  std::unique_ptr<Job> job_;
  std::unique_ptr<GroupJob> group_;  // null: there is none
};

}  // namespace

Result RunScenario(const Scenario& scenario, uint64_t seed, bool verbose, const MakeDaemons& make_daemons) {
  OpenAccounts();
  if (verbose) std::printf("seed %llu: %s", static_cast<unsigned long long>(seed), scenario.Text().c_str());
  World world(scenario, seed, verbose, make_daemons);
  Result result = world.Run();
  result.seed = seed;
  return result;
}

Result RunSeed(uint64_t seed, bool verbose, Rails rails) { return RunScenario(MakeScenario(seed, rails), seed, verbose); }

}  // namespace r2cc::sim
