// Nodes by an address of theirs: what a job's log knows of a peer that never answered. Pure.
#ifndef R2CC_CLIENT_NODE_OF_ADDRESS_H_
#define R2CC_CLIENT_NODE_OF_ADDRESS_H_

#include <string>

#include "absl/status/statusor.h"
#include "proto/r2cc.pb.h"

namespace r2cc::client {

// A numeric IPv4 or IPv6 address, which no node is called.
bool IsAddress(const std::string& text);

// The node whose daemon is at `address`, or one of whose NICs has it.
absl::StatusOr<std::string> NodeOfAddress(const v1::StatusReply& status, const std::string& address);

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_NODE_OF_ADDRESS_H_
