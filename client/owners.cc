#include "client/owners.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace r2cc::client {

absl::StatusOr<std::string> Owners::AddressOf(const std::string& node) {
  absl::MutexLock lock(&mutex_);
  if (addresses_ == nullptr) {
    const absl::StatusOr<v1::StatusReply> status = asked_->GetStatus({});
    if (!status.ok()) return status.status();
    auto found = std::make_unique<Addresses>();
    found->own_node = status->node();
    for (const v1::NodeView& view : status->nodes()) found->of_node[view.node()] = view.peer_address();
    addresses_ = std::move(found);
  }
  const auto address = addresses_->of_node.find(node);
  return node == addresses_->own_node || address == addresses_->of_node.end() ? "" : address->second;
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
  // The daemon that is asked knows best what to say of a node that has no address.
  if (address->empty()) return asked_->ActOnNic(request);
  const absl::StatusOr<Client*> owner = ClientOf(request.node(), *address);
  if (!owner.ok()) return owner.status();
  const absl::StatusOr<v1::NicActionReply> reply = (*owner)->ActOnNic(request);
  if (!absl::IsUnavailable(reply.status()) && !absl::IsDeadlineExceeded(reply.status())) return reply;
  absl::StatusOr<v1::NicActionReply> forwarded = asked_->ActOnNic(request);
  if (forwarded.ok()) return forwarded;
  return absl::Status(forwarded.status().code(), absl::StrCat("cannot be asked from here (", reply.status().message(),
                                                              "), and by way of another node: ", forwarded.status().message()));
}

}  // namespace r2cc::client
