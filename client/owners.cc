#include "client/owners.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include "absl/strings/str_cat.h"

namespace r2cc::client {
namespace {

// Daemons that an answer names as those that did not forget; the others have the same reasons, mostly.
constexpr int kRefusalsShown = 8;

}  // namespace

void AtOnce(size_t count, const std::function<void(size_t index)>& act) {
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t index = next++; index < count; index = next++) act(index);
  };
  std::vector<std::thread> threads;
  for (size_t i = 1; i < std::min(count, kNodesAtOnce); ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
}

absl::StatusOr<v1::ForgetNodeReply> JoinForgotten(const std::string& node,
                                                  const std::vector<std::pair<std::string, absl::StatusOr<v1::ForgetNodeReply>>>& answers) {
  v1::ForgetNodeReply all;
  uint32_t forgotten = 0;
  absl::Status unknown = absl::NotFoundError(absl::StrCat("there is no node '", node, "'"));
  for (const auto& [daemon, reply] : answers) {
    if (reply.ok()) {
      ++forgotten;
      all.set_silent_ns(std::max(all.silent_ns(), reply->silent_ns()));
      all.set_configured(all.configured() || reply->configured());
    } else if (absl::IsNotFound(reply.status())) {
      unknown = reply.status();
    } else {
      all.set_refused(all.refused() + 1);
      if (all.refusals_size() >= kRefusalsShown) continue;
      v1::ForgetNodeReply::Refusal& refusal = *all.add_refusals();
      refusal.set_node(daemon);
      refusal.set_why(std::string(reply.status().message()));
    }
  }
  if (forgotten > 0) {
    all.set_others(forgotten - 1);
    return all;
  }
  // A daemon that keeps the node knows more than one that does not know it.
  for (const auto& [daemon, reply] : answers)
    if (absl::IsFailedPrecondition(reply.status()))
      return absl::FailedPreconditionError(absl::StrCat("on ", daemon, ": ", reply.status().message()));
  for (const auto& [daemon, reply] : answers)
    if (!absl::IsNotFound(reply.status()))
      return absl::Status(reply.status().code(), absl::StrCat("on ", daemon, ": ", reply.status().message()));
  return unknown;
}

absl::StatusOr<const Owners::Addresses*> Owners::AllAddresses() {
  absl::MutexLock lock(&mutex_);
  if (addresses_ == nullptr) {
    const absl::StatusOr<v1::StatusReply> status = asked_->GetStatus({});
    if (!status.ok()) return status.status();
    auto found = std::make_unique<Addresses>();
    found->own_node = status->node();
    for (const v1::NodeView& view : status->nodes()) found->of_node[view.node()] = view.peer_address();
    addresses_ = std::move(found);
  }
  return addresses_.get();
}

absl::StatusOr<std::string> Owners::AddressOf(const std::string& node) {
  const absl::StatusOr<const Addresses*> all = AllAddresses();
  if (!all.ok()) return all.status();
  const auto address = (*all)->of_node.find(node);
  return node == (*all)->own_node || address == (*all)->of_node.end() ? "" : address->second;
}

absl::StatusOr<Client*> Owners::ClientOf(const std::string& node, const std::string& address) {
  absl::MutexLock lock(&mutex_);
  std::unique_ptr<Client>& client = clients_[node];
  if (client == nullptr) {
    absl::StatusOr<std::unique_ptr<Client>> made = Client::ConnectServer(address, certificates_, node);
    if (!made.ok()) return made.status();
    client = *std::move(made);
  }
  return client.get();
}

absl::StatusOr<v1::NicActionReply> Owners::Act(const v1::NicActionRequest& request) {
  if (certificates_.empty()) return asked_->ActOnNic(request);
  const absl::StatusOr<std::string> address = AddressOf(request.node());
  if (!address.ok()) return address.status();
  // The daemon that is asked has the best error for a node that has no address.
  if (address->empty()) return asked_->ActOnNic(request);
  const absl::StatusOr<Client*> owner = ClientOf(request.node(), *address);
  if (!owner.ok()) return owner.status();
  const absl::StatusOr<v1::NicActionReply> reply = (*owner)->ActOnNic(request);
  if (!absl::IsUnavailable(reply.status()) && !absl::IsDeadlineExceeded(reply.status())) return reply;
  absl::StatusOr<v1::NicActionReply> forwarded = asked_->ActOnNic(request);
  if (forwarded.ok()) return forwarded;
  return absl::Status(forwarded.status().code(), absl::StrCat("cannot be asked from here (", reply.status().message(),
                                                              "), and through another node: ", forwarded.status().message()));
}

absl::StatusOr<v1::ForgetNodeReply> Owners::Forget(const v1::ForgetNodeRequest& request) {
  if (certificates_.empty()) return asked_->ForgetNode(request);
  const absl::StatusOr<const Addresses*> addresses = AllAddresses();
  if (!addresses.ok()) return addresses.status();
  std::vector<std::pair<std::string, absl::StatusOr<v1::ForgetNodeReply>>> answers;
  answers.emplace_back((*addresses)->own_node, absl::UnknownError("not asked"));
  for (const auto& [node, address] : (*addresses)->of_node)
    if (node != request.node() && node != (*addresses)->own_node) answers.emplace_back(node, absl::UnknownError("not asked"));
  v1::ForgetNodeRequest one = request;
  one.set_only_here(true);
  AtOnce(answers.size(), [&](size_t index) {
    auto& [node, reply] = answers[index];
    if (node == (*addresses)->own_node) {
      reply = asked_->ForgetNode(one);
      return;
    }
    const std::string& address = (*addresses)->of_node.at(node);
    if (address.empty()) {
      reply = absl::UnavailableError("its address is not known here; ask it with --server");
      return;
    }
    const absl::StatusOr<Client*> daemon = ClientOf(node, address);
    reply = daemon.ok() ? (*daemon)->ForgetNode(one) : absl::StatusOr<v1::ForgetNodeReply>(daemon.status());
  });
  return JoinForgotten(request.node(), answers);
}

}  // namespace r2cc::client
