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
#include "client/client.h"
#include "client/format.h"
#include "client/values.h"

namespace r2cc::client {

// Of the NICs in `list` those that `node` and `nic` fit, in order. If no node fits and `nic` is *, `node` is a rail: RAIL/*.
std::vector<NicName> Matching(const v1::ListNicsReply& list, const std::string& node, const std::string& nic);

// Whether what `traffic` says means that nothing travels any more.
bool IsQuiet(const v1::NicTraffic& traffic);

// Does it at each NIC, whatever others refuse, and writes a line each. A refusal of any is the error: how many, and the first one's words.
// `wait` waits between two looks; false: enough.
absl::Status ActOnMany(const ActCommand& command, Output output, const Style& style, Client& client, std::ostream& out,
                       const std::function<bool(int milliseconds)>& wait);

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_ACT_MANY_H_
