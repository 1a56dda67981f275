// Makes and checks the packets of the attach conversation: pure.
#ifndef R2CC_NETPLUGIN_ATTACH_ATTACH_PACKETS_H_
#define R2CC_NETPLUGIN_ATTACH_ATTACH_PACKETS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "netplugin/rails/rails.h"
#include "plan/page/attach.h"

namespace r2cc::net {

// The request of process `pid` of `job`, in the newest version; `process_id` is random, `release` the plugin's. Rails beyond
// kAttachRailsMax are left out.
plan::AttachRequest MakeAttachRequest(const std::string& job, int pid, uint64_t process_id, const std::vector<Rail>& rails,
                                      const std::string& release);

// Checks a packet that should be the answer, which came with `descriptors` descriptors. Empty if the daemon accepted us: `reply` is then
// valid, and names beyond its rail_count are empty. Otherwise the reason in one line, and `reply` is unchanged.
//
// The answers of both versions have one layout.
std::string CheckReply(const void* packet, size_t bytes, size_t descriptors, plan::AttachReply* reply);

// The older version that a daemon offers in its refusal of `asked`; 0: it offers none.
uint32_t VersionToAskIn(const void* packet, size_t bytes, uint32_t asked);

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_ATTACH_ATTACH_PACKETS_H_
