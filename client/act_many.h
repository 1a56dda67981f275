// One action on many NICs: a whole rail, the nodes of a leaf; and the wait until a drained NIC is empty.
#ifndef R2CC_CLIENT_ACT_MANY_H_
#define R2CC_CLIENT_ACT_MANY_H_

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/arguments.h"
#include "client/commands/values.h"
#include "client/core/client.h"
#include "client/format/format.h"

namespace r2cc::client {

// The NICs in `list` that match `node` and `nic`, in order. If no node matches and `nic` is *, `node` is a rail: RAIL/*.
std::vector<NicName> Matching(const v1::ListNicsReply& list, const std::string& node, const std::string& nic);

// Whether `traffic` shows that nothing travels any more.
bool IsQuiet(const v1::NicTraffic& traffic);

// Does one action. Called from several threads at once.
using ActOnOne = std::function<absl::StatusOr<v1::NicActionReply>(const v1::NicActionRequest& request)>;

// The outcome of each of `names`, in their order. Nodes are asked at the same time; the NICs of a node one after the other, so that its
// last one is kept.
std::vector<absl::StatusOr<v1::NicActionReply>> ActOnEach(const std::vector<NicName>& names, const v1::NicActionRequest& request,
                                                          const ActOnOne& act);

// One error of what failed: a line for each node and reason. `outcomes` belong to `names`; OK: nothing failed.
absl::Status Refusals(const std::vector<NicName>& names, const std::vector<absl::StatusOr<v1::NicActionReply>>& outcomes);

// Acts on each NIC, also after refusals, and writes a line each. A refusal of any is the error. `wait` waits between two looks; false:
// stop.
absl::Status ActOnMany(const ActCommand& command, Output output, const Style& style, Client& client, const ActOnOne& act, std::ostream& out,
                       const std::function<bool(int milliseconds)>& wait);

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_ACT_MANY_H_
