// Holds texts that several replies share.
#ifndef R2CC_CLIENT_FORMAT_FORMAT_PARTS_H_
#define R2CC_CLIENT_FORMAT_FORMAT_PARTS_H_

#include <string>

#include "absl/strings/string_view.h"
#include "client/core/table.h"
#include "client/format/format.h"
#include "proto/r2cc.pb.h"

namespace r2cc::client {

std::string StateName(v1::NicState state);
Colour StateColour(v1::NicState state);
std::string NicName(absl::string_view node, absl::string_view nic);
// Only "counter" changes while a daemon runs; its start distinguishes two runs.
std::string EpochText(const v1::Epoch& epoch);
// "3 s ago"; empty for a time that is not known.
std::string Ago(int64_t then_ns, const Style& style);
// "fail-nic, 9 min 58 s left"
std::string Drill(const v1::NicView& nic, const Style& style);
// The operators' settings for it: "drained, fail-nic, 9 min 58 s left".
std::string OperatorSettings(const v1::NicView& nic, const Style& style);

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_FORMAT_FORMAT_PARTS_H_
