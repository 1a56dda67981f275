#include "plan/schedule/check.h"

#include <algorithm>
#include <vector>

#include "plan/schedule/progress.h"

namespace r2cc::plan {
namespace {

std::string At(uint32_t member, uint32_t lane, bool receives, uint32_t index) {
  return "member " + std::to_string(member) + " lane " + std::to_string(lane) + (receives ? " receive " : " send ") +
         std::to_string(index) + ": ";
}

// Calls `visit(member, lane, receives, index, step)` for each step until it returns a complaint.
template <typename Visit>
std::string ForEachStep(const Schedule& schedule, Visit visit) {
  for (uint32_t member = 0; member < schedule.members(); ++member) {
    for (uint32_t lane = 0; lane < schedule.Lanes(member); ++lane) {
      for (const bool receives : {false, true}) {
        const uint32_t count = receives ? schedule.Receives(member, lane) : schedule.Sends(member, lane);
        for (uint32_t i = 0; i < count; ++i) {
          const Step step = receives ? schedule.Receive(member, lane, i) : schedule.Send(member, lane, i);
          if (std::string wrong = visit(member, lane, receives, i, step); !wrong.empty()) return At(member, lane, receives, i) + wrong;
        }
      }
    }
  }
  return "";
}

std::string CheckNames(const Schedule& schedule) {
  uint64_t end = 0;
  for (uint32_t block = 0; block < schedule.blocks(); ++block) {
    const Range range = schedule.RangeOf(block, 1);
    if (range.begin != end || range.end < range.begin)
      return "block " + std::to_string(block) + " does not begin where the one before ends";
    end = range.end;
  }
  if (schedule.blocks() > 0 && schedule.RangeOf(0, schedule.blocks()).bytes() != end) return "the blocks do not add up to the vector";
  return ForEachStep(schedule, [&](uint32_t member, uint32_t, bool receives, uint32_t, const Step& step) -> std::string {
    if ((step.kind != StepKind::kSend) != receives) return "is of the other kind";
    if (step.peer >= schedule.members() || step.peer == member) return "peer " + std::to_string(step.peer) + " is nobody";
    if (step.peer_lane >= schedule.Lanes(step.peer)) return "its peer has no lane " + std::to_string(step.peer_lane);
    if (step.blocks == 0 || step.block >= schedule.blocks() || step.blocks > schedule.blocks() - step.block)
      return "block " + std::to_string(step.block) + " does not exist";
    return "";
  });
}

// Checks that the counts leave nothing open that matters: what a send or an overwriting receive sees is the same in every execution. Of a
// block's steps at one member, those that must come before one are exactly as many as it waits for.
std::string CheckOrder(const Schedule& schedule) {
  struct Use {
    uint32_t cell, after_receives, after_sends;
    StepKind kind;
  };
  std::string wrong;
  for (uint32_t member = 0; member < schedule.members() && wrong.empty(); ++member) {
    std::vector<Use> uses;
    for (uint32_t lane = 0; lane < schedule.Lanes(member); ++lane) {
      const auto add = [&](const Step& step) {
        for (uint32_t i = 0; i < step.blocks; ++i) uses.push_back({step.block + i, step.after_receives, step.after_sends, step.kind});
      };
      for (uint32_t i = 0; i < schedule.Sends(member, lane); ++i) add(schedule.Send(member, lane, i));
      for (uint32_t i = 0; i < schedule.Receives(member, lane); ++i) add(schedule.Receive(member, lane, i));
    }
    std::sort(uses.begin(), uses.end(),
              [](const Use& a, const Use& b) { return a.cell != b.cell ? a.cell < b.cell : a.after_receives < b.after_receives; });
    for (size_t first = 0, last = 0; first < uses.size() && wrong.empty(); first = last) {
      while (last < uses.size() && uses[last].cell == uses[first].cell) ++last;
      const auto complain = [&](const std::string& what) {
        wrong = "member " + std::to_string(member) + " block " + std::to_string(uses[first].cell) + ": " + what;
      };
      uint32_t receives = 0;  // of smaller after_receives
      uint32_t sends = 0;
      for (size_t i = first, end = first; i < last; i = end) {
        const uint32_t rank = uses[i].after_receives;
        uint32_t sends_here = 0, receives_here = 0;
        bool overwrites = false;
        for (; end < last && uses[end].after_receives == rank; ++end) {
          (uses[end].kind == StepKind::kSend ? sends_here : receives_here) += 1;
          overwrites |= uses[end].kind == StepKind::kReceive;
        }
        if ((sends_here > 0 || overwrites) && rank != receives)
          complain("a step waits for " + std::to_string(rank) + " receives, of which " + std::to_string(receives) + " must come first");
        if (overwrites && receives_here > 1) complain("two receives overwrite each other's bytes in any order");
        receives += receives_here;
        sends += sends_here;
        for (size_t use = i; use < end; ++use)
          if (uses[use].kind != StepKind::kSend && uses[use].after_sends != sends)
            complain("a receive waits for " + std::to_string(uses[use].after_sends) + " sends, but " + std::to_string(sends) +
                     " must come first");
      }
    }
  }
  return wrong;
}

// The contributions in each block of each member.
class Values {
 public:
  explicit Values(const Schedule& schedule)
      : schedule_(schedule), words_((schedule.members() + 63) / 64), bits_(size_t{schedule.members()} * schedule.blocks() * words_) {
    for (uint32_t member = 0; member < schedule.members(); ++member)
      for (uint32_t block = 0; block < schedule.blocks(); ++block)
        if (schedule.collective() != Collective::kAllGather || schedule.OwnerOf(block) == member)
          At(member, block)[member / 64] |= uint64_t{1} << (member % 64);
  }

  std::string Apply(const Transfer& transfer) {
    const bool adds = transfer.receive.kind == StepKind::kReceiveReduce;
    for (uint32_t i = 0; i < transfer.send.blocks; ++i) {
      const uint64_t* from = At(transfer.from, transfer.send.block + i);
      uint64_t* to = At(transfer.to, transfer.receive.block + i);
      uint64_t any = 0;
      uint64_t any_there = 0;
      for (uint32_t w = 0; w < words_; ++w) {
        any |= from[w];
        any_there |= to[w];
        if (adds && (from[w] & to[w]) != 0)
          return "adds a contribution that is already in block " + std::to_string(transfer.send.block + i);
        to[w] = adds ? to[w] | from[w] : from[w];
      }
      if (any == 0) return "sends block " + std::to_string(transfer.send.block + i) + " before anything is in it";
      if (adds && any_there == 0) return "adds to block " + std::to_string(transfer.send.block + i) + " before anything is in it";
    }
    return "";
  }

  std::string CheckResult() {
    for (uint32_t member = 0; member < schedule_.members(); ++member) {
      for (uint32_t block = 0; block < schedule_.blocks(); ++block) {
        const uint32_t owner = schedule_.OwnerOf(block);
        if (schedule_.collective() == Collective::kReduceScatter && owner != member) continue;
        for (uint32_t of = 0; of < schedule_.members(); ++of) {
          const bool has = (At(member, block)[of / 64] >> (of % 64) & 1) != 0;
          if (has != (schedule_.collective() != Collective::kAllGather || of == owner))
            return "member " + std::to_string(member) + " ends " + (has ? "with" : "without") + " the contribution of " +
                   std::to_string(of) + " in block " + std::to_string(block);
        }
      }
    }
    return "";
  }

 private:
  uint64_t* At(uint32_t member, uint32_t block) { return &bits_[(size_t{member} * schedule_.blocks() + block) * words_]; }

  const Schedule& schedule_;
  uint32_t words_;
  std::vector<uint64_t> bits_;
};

}  // namespace

std::string CheckPaths(const Schedule& schedule, const std::function<bool(uint32_t a, uint32_t b)>& has_path) {
  return ForEachStep(schedule, [&](uint32_t member, uint32_t, bool, uint32_t, const Step& step) -> std::string {
    if (has_path(member, step.peer)) return "";
    return "there is no path between members " + std::to_string(member) + " and " + std::to_string(step.peer);
  });
}

std::string CheckSchedule(const Schedule& schedule) {
  if (schedule.members() == 0 || schedule.blocks() == 0) return "nothing to do for nobody";
  if (std::string wrong = CheckNames(schedule); !wrong.empty()) return wrong;
  if (std::string wrong = CheckOrder(schedule); !wrong.empty()) return wrong;
  Values values(schedule);
  Progress progress(schedule, /*use_rotation=*/false);
  std::vector<Transfer> under_way;
  const auto begin = [&](const Transfer& transfer) { under_way.push_back(transfer); };
  progress.Start(begin);
  while (!under_way.empty()) {
    const Transfer transfer = under_way.back();
    under_way.pop_back();
    const auto who = [&] {
      return "member " + std::to_string(transfer.from) + " lane " + std::to_string(transfer.from_lane) + " to member " +
             std::to_string(transfer.to) + ": ";
    };
    if (transfer.send.block != transfer.receive.block || transfer.send.blocks != transfer.receive.blocks)
      return who() + "sends block " + std::to_string(transfer.send.block) + " where block " + std::to_string(transfer.receive.block) +
             " is expected";
    if (std::string wrong = values.Apply(transfer); !wrong.empty()) return who() + wrong;
    progress.Complete(transfer, begin);
  }
  if (!progress.finished()) return progress.Stuck();
  return values.CheckResult();
}

}  // namespace r2cc::plan
