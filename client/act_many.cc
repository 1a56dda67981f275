#include "client/act_many.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/core/glob.h"
#include "client/json.h"

namespace r2cc::client {
namespace {

// A job reports what it moved about once a second: three reports without a byte.
constexpr int64_t kQuietNs = 3'000'000'000;
constexpr int kLookMs = 500;
// Messages in flight end in seconds. A job that is still there after ten minutes has no other way, and goes on with this one.
constexpr int kLooksMax = 10 * 60 * 1000 / kLookMs;

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
      return absl::FailedPreconditionError(absl::StrCat("the daemon of ", nic.node, " does not say what travels over ", nic.node, "/",
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

absl::Status ActOnMany(const ActCommand& command, Output output, const Style& style, Client& client, std::ostream& out,
                       const std::function<bool(int milliseconds)>& wait) {
  const absl::StatusOr<v1::ListNicsReply> list = client.ListNics({});
  if (!list.ok()) return list.status();
  const std::vector<NicName> names = Matching(*list, command.request.node(), command.request.nic());
  if (names.empty())
    return absl::NotFoundError(
        absl::StrCat("no NIC fits ", command.request.node(), "/", command.request.nic(), "; `r2ccctl nic list` names all"));
  std::vector<NicName> done;
  absl::Status first_refusal;
  absl::Status not_kept;
  for (const NicName& name : names) {
    v1::NicActionRequest request = command.request;
    request.set_node(name.node);
    request.set_nic(name.nic);
    const absl::StatusOr<v1::NicActionReply> reply = client.ActOnNic(request);
    if (!reply.ok()) {
      if (first_refusal.ok()) first_refusal = reply.status();
      continue;
    }
    done.push_back(name);
    const absl::StatusOr<std::string> text = output == Output::kJson ? ToJsonLine(*reply) : FormatNicAction(request, *reply, style);
    if (!text.ok()) return text.status();
    out << *text << std::flush;
    if (!reply->not_kept().empty())
      not_kept = absl::DataLossError("done, and not kept over a restart of r2ccd yet: look at its state directory");
  }
  if (!first_refusal.ok())
    return absl::Status(first_refusal.code(), names.size() == 1 ? std::string(first_refusal.message())
                                                                : absl::StrCat(names.size() - done.size(), " of ", names.size(),
                                                                               " NICs were refused, the first: ", first_refusal.message()));
  if (!command.wait) return not_kept;
  for (const NicName& name : done)
    if (const absl::Status quiet = AwaitQuiet(name, command.request.job(), client, wait); !quiet.ok()) return quiet;
  if (output == Output::kTable) out << "nothing travels there any more\n" << std::flush;
  return not_kept;
}

}  // namespace r2cc::client
