#include "client/act_many.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/core/glob.h"
#include "client/owners.h"
#include "proto/json.h"

namespace r2cc::client {
namespace {

// A job reports what it moved about once a second: three reports without a byte.
constexpr int64_t kQuietNs = 3'000'000'000;
constexpr int kLookMs = 500;
// Messages in flight end in seconds. A job that is still there after ten minutes has no other way, and goes on with this one.
constexpr int kLooksMax = 10 * 60 * 1000 / kLookMs;
// Lines of an error about many nodes. The others have the same reasons, mostly.
constexpr size_t kRefusalsShown = 32;

std::vector<NicName> Fitting(const v1::ListNicsReply& list, const std::string& node, const std::string& nic) {
  std::vector<NicName> names;
  for (const v1::NodeView& view : list.nodes()) {
    if (!GlobFits(node, view.node())) continue;
    for (const v1::NicView& one : view.nics())
      if (GlobFits(nic, one.name())) names.push_back({view.node(), one.name()});
  }
  return names;
}

absl::Status AwaitQuiet(const NicName& nic, const std::string& job, Client& client, const std::function<bool(int)>& wait) {
  v1::ExplainNicRequest ask;
  ask.set_node(nic.node);
  ask.set_nic(nic.nic);
  ask.set_job(job);
  std::string jobs;
  for (int looks = 0; looks < kLooksMax; ++looks) {
    const absl::StatusOr<v1::ExplainNicReply> reply = client.ExplainNic(ask);
    if (!reply.ok()) return reply.status();
    if (!reply->has_traffic())
      return absl::FailedPreconditionError(absl::StrCat("the daemon of ", nic.node, " does not report what travels over ", nic.node, "/",
                                                        nic.nic, ": update it, or ask it again"));
    if (IsQuiet(reply->traffic())) return absl::OkStatus();
    jobs = absl::StrJoin(reply->traffic().jobs(), ", ");
    if (!wait(kLookMs)) break;
  }
  return absl::DeadlineExceededError(absl::StrCat(nic.node, "/", nic.nic, " is drained, and still carries traffic of ", jobs));
}

}  // namespace

std::vector<NicName> Matching(const v1::ListNicsReply& list, const std::string& node, const std::string& nic) {
  std::vector<NicName> names = Fitting(list, node, nic);
  return names.empty() && nic == "*" ? Fitting(list, "*", node) : names;
}

bool IsQuiet(const v1::NicTraffic& traffic) { return traffic.jobs().empty() || traffic.quiet_ns() < 0 || traffic.quiet_ns() >= kQuietNs; }

std::vector<absl::StatusOr<v1::NicActionReply>> ActOnEach(const std::vector<NicName>& names, const v1::NicActionRequest& request,
                                                          const ActOnOne& act) {
  std::vector<absl::StatusOr<v1::NicActionReply>> outcomes(names.size(), absl::UnknownError("not asked"));
  std::map<std::string, std::vector<size_t>> of_node;
  for (size_t i = 0; i < names.size(); ++i) of_node[names[i].node].push_back(i);
  std::vector<const std::vector<size_t>*> nodes;
  for (const auto& [node, indexes] : of_node) nodes.push_back(&indexes);
  AtOnce(nodes.size(), [&](size_t node) {
    for (const size_t i : *nodes[node]) {
      v1::NicActionRequest one = request;
      one.set_node(names[i].node);
      one.set_nic(names[i].nic);
      outcomes[i] = act(one);
    }
  });
  return outcomes;
}

absl::Status Refusals(const std::vector<NicName>& names, const std::vector<absl::StatusOr<v1::NicActionReply>>& outcomes) {
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> refused;  // node and reason: NICs
  const absl::Status* first = nullptr;
  size_t count = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    if (outcomes[i].ok()) continue;
    if (first == nullptr) first = &outcomes[i].status();
    refused[{names[i].node, std::string(outcomes[i].status().message())}].push_back(names[i].nic);
    ++count;
  }
  if (first == nullptr) return absl::OkStatus();
  if (names.size() == 1) return *first;
  std::string text = absl::StrCat(count, " of ", names.size(), " NICs were refused");
  size_t lines = 0;
  for (const auto& [what, nics] : refused) {
    if (++lines > kRefusalsShown) continue;
    absl::StrAppend(&text, "\n", what.first, "/", absl::StrJoin(nics, ","), ": ", what.second);
  }
  if (lines > kRefusalsShown) absl::StrAppend(&text, "\nand ", lines - kRefusalsShown, " more nodes");
  return absl::Status(first->code(), text);
}

absl::Status ActOnMany(const ActCommand& command, Output output, const Style& style, Client& client, const ActOnOne& act, std::ostream& out,
                       const std::function<bool(int milliseconds)>& wait) {
  const absl::StatusOr<v1::ListNicsReply> list = client.ListNics({});
  if (!list.ok()) return list.status();
  const std::vector<NicName> names = Matching(*list, command.request.node(), command.request.nic());
  if (names.empty())
    return absl::NotFoundError(
        absl::StrCat("no NIC fits ", command.request.node(), "/", command.request.nic(), "; `r2ccctl nic list` names all"));
  const std::vector<absl::StatusOr<v1::NicActionReply>> outcomes = ActOnEach(names, command.request, act);
  absl::Status not_kept;
  for (size_t i = 0; i < names.size(); ++i) {
    const absl::StatusOr<v1::NicActionReply>& reply = outcomes[i];
    if (!reply.ok()) continue;
    v1::NicActionRequest request = command.request;
    request.set_node(names[i].node);
    request.set_nic(names[i].nic);
    const absl::StatusOr<std::string> text = output == Output::kJson ? ToJsonLine(*reply) : FormatNicAction(request, *reply, style);
    if (!text.ok()) return text.status();
    out << *text << std::flush;
    if (!reply->not_kept().empty())
      not_kept = absl::DataLossError("done, and not kept over a restart of r2ccd yet: look at its state directory");
  }
  if (const absl::Status refused = Refusals(names, outcomes); !refused.ok()) return refused;
  if (!command.wait) return not_kept;
  for (const NicName& name : names)
    if (const absl::Status quiet = AwaitQuiet(name, command.request.job(), client, wait); !quiet.ok()) return quiet;
  if (output == Output::kTable) out << "nothing travels there any more\n" << std::flush;
  return not_kept;
}

}  // namespace r2cc::client
