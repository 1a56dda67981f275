#include "daemon/services/forget_service.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/names.h"

namespace r2cc::daemon {
namespace {

std::string Clean(const std::string& text) { return CleanText(text.data(), std::min<size_t>(text.size(), kNodeNameBytesMax)); }

}  // namespace

// The answer that one caller waits for.
struct ForgetService::Round {
  v1::ForgetNodeRequest request;
  Caller caller;
  Answer<v1::ForgetNodeReply> answer;
  std::vector<std::string> to_ask;  // the last one next
  size_t under_way = 0;
  absl::Status here;
  v1::ForgetNodeReply reply = {};
  absl::Status refusal;  // of a daemon that knows the node and keeps it
  bool answered = false;
};

void ForgetService::Forget(const v1::ForgetNodeRequest& request, const Caller& caller, const absl::Status& may,
                           Answer<v1::ForgetNodeReply> answer) {
  v1::ForgetNodeReply reply;
  const absl::Status here = may.ok() ? ForgetHere(request, &reply) : may;
  // If there is nothing to forget here, other nodes may still have it: an earlier request may have found it alive there.
  const bool others = !caller.forwarded() && !request.only_here() && (here.ok() || absl::IsNotFound(here));
  std::vector<std::string> to_ask = others ? Others(request.node()) : std::vector<std::string>();
  const std::string handed_on = to_ask.empty() ? "" : absl::StrCat("and forwarded to ", to_ask.size(), " other daemons");
  if (here.ok() || to_ask.empty())
    parts_.audit->Add({.action = "forget", .node = Clean(request.node()), .status = here, .result = handed_on}, caller);
  if (to_ask.empty()) return answer(here.ok() ? absl::StatusOr<v1::ForgetNodeReply>(reply) : here);
  auto round = std::make_shared<Round>(Round{request, caller, std::move(answer), std::move(to_ask), 0, here, std::move(reply)});
  *round->request.mutable_asker() = ToAsker(caller, parts_.reporter->node());
  parts_.executor->RunAfter(kAnswerAfter, [this, alive = alive_, round] {
    if (*alive) Finish(round.get());
  });
  AskOthers(round);
}

absl::Status ForgetService::ForgetHere(const v1::ForgetNodeRequest& request, v1::ForgetNodeReply* reply) {
  const health::NodeEntry* const entry = parts_.view->Find(request.node());
  if (entry == nullptr) return parts_.unknown_node(request.node());
  reply->set_silent_ns(parts_.executor->Now() - entry->last_received);
  reply->set_configured(parts_.peer_set->IsConfigured(request.node()));
  return parts_.peer_set->Forget(request.node(), "an operator asked for it");
}

std::vector<std::string> ForgetService::Others(const std::string& node) const {
  std::vector<std::string> others;
  for (const auto& [name, entry] : parts_.view->nodes())
    if (name != node && name != parts_.reporter->node()) others.push_back(name);
  std::reverse(others.begin(), others.end());
  return others;
}

void ForgetService::AskOthers(const std::shared_ptr<Round>& round) {
  while (round->under_way < kAskedAtOnceMax && !round->to_ask.empty()) {
    const std::string node = std::move(round->to_ask.back());
    round->to_ask.pop_back();
    ++round->under_way;
    // The answer comes on any thread, and perhaps at once.
    const Answer<v1::ForgetNodeReply> note = [this, alive = alive_, core = parts_.executor, round,
                                              node](const absl::StatusOr<v1::ForgetNodeReply>& reply) {
      core->Post([this, alive, round, node, reply] {
        if (!*alive) return;
        --round->under_way;
        OnAnswer(round.get(), node, reply);
        AskOthers(round);
      });
    };
    const absl::StatusOr<PeerSpec> peer = parts_.peer_set->FindSpec(node);
    if (peer.ok())
      parts_.peers->ForgetNode(*peer, round->request, note);
    else
      note(peer.status());
  }
  if (round->under_way == 0 && round->to_ask.empty()) Finish(round.get());
}

void ForgetService::OnAnswer(Round* round, const std::string& node, const absl::StatusOr<v1::ForgetNodeReply>& reply) {
  // A node that did not know it has nothing to forget.
  if (absl::IsNotFound(reply.status())) return;
  if (reply.ok()) {
    if (!round->here.ok()) round->reply.set_silent_ns(std::max(round->reply.silent_ns(), reply->silent_ns()));
    return round->reply.set_others(round->reply.others() + 1);
  }
  if (round->refusal.ok() && absl::IsFailedPrecondition(reply.status()))
    round->refusal = absl::FailedPreconditionError(
        absl::StrCat("on ", node, ": ", CleanText(reply.status().message().data(), reply.status().message().size())));
  round->reply.set_refused(round->reply.refused() + 1);
  if (round->reply.refusals_size() >= kRefusalsShown) return;
  v1::ForgetNodeReply::Refusal& refusal = *round->reply.add_refusals();
  refusal.set_node(node);
  refusal.set_why(CleanText(reply.status().message().data(), reply.status().message().size()));
}

void ForgetService::Finish(Round* round) {
  if (std::exchange(round->answered, true)) return;
  round->reply.set_pending(static_cast<uint32_t>(round->under_way + round->to_ask.size()));
  // No node has forgotten it. A node that cannot be reached, or refuses the caller, proves nothing.
  const bool nobody = !round->here.ok() && round->reply.others() == 0;
  const absl::Status why = round->refusal.ok() ? round->here : round->refusal;
  if (!round->here.ok())
    parts_.audit->Add({.action = "forget",
                       .node = Clean(round->request.node()),
                       .status = nobody ? why : absl::OkStatus(),
                       .result = "it was not known here, and handed on"},
                      round->caller);
  round->answer(nobody ? absl::StatusOr<v1::ForgetNodeReply>(why) : round->reply);
}

}  // namespace r2cc::daemon
