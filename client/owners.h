// Hands an operator's action to the daemons that do it.
#ifndef R2CC_CLIENT_OWNERS_H_
#define R2CC_CLIENT_OWNERS_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "client/core/client.h"

namespace r2cc::client {

// Daemons that are asked at the same time.
inline constexpr size_t kNodesAtOnce = 32;

// Calls `act` for 0 to `count` - 1, from several threads, and returns when all calls have.
void AtOnce(size_t count, const std::function<void(size_t index)>& act);

// Joins the answers of several daemons, each of which was asked to forget `node` itself. A daemon that does not know the node has nothing
// to forget. Pure. An error: no daemon has forgotten it.
absl::StatusOr<v1::ForgetNodeReply> JoinForgotten(const std::string& node,
                                                  const std::vector<std::pair<std::string, absl::StatusOr<v1::ForgetNodeReply>>>& answers);

// Without a certificate the daemon that is asked forwards the action to the NIC's node, which judges the caller. It cannot forward the
// proof of an operator's certificate. So with a certificate each node is asked at its own address. Thread-safe.
class Owners {
 public:
  // `asked` outlives it. `certificates` is a directory as in Client::ConnectServer; empty: there is no certificate.
  Owners(Client* asked, std::string certificates) : asked_(asked), certificates_(std::move(certificates)) {}

  // A failure names the node's address, where it was asked there. A node that cannot be reached at its address is asked by way of `asked`.
  absl::StatusOr<v1::NicActionReply> Act(const v1::NicActionRequest& request);

  // Has all daemons forget a node: with a certificate each is asked at its own address, without one `asked` asks the others.
  absl::StatusOr<v1::ForgetNodeReply> Forget(const v1::ForgetNodeRequest& request);

 private:
  struct Addresses {
    std::string own_node;                        // of `asked`
    std::map<std::string, std::string> of_node;  // host:port
  };
  // Null: `asked` does not know them. Valid as long as this object.
  absl::StatusOr<const Addresses*> AllAddresses();
  absl::StatusOr<std::string> AddressOf(const std::string& node);
  absl::StatusOr<Client*> ClientOf(const std::string& node, const std::string& address);

  Client* const asked_;
  const std::string certificates_;
  absl::Mutex mutex_;
  std::unique_ptr<Addresses> addresses_ ABSL_GUARDED_BY(mutex_);  // null: not asked for yet
  std::map<std::string, std::unique_ptr<Client>> clients_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_OWNERS_H_
