// The words of the attach conversation as values: pure.
#ifndef R2CC_NETPLUGIN_ATTACH_ATTACH_WORDS_H_
#define R2CC_NETPLUGIN_ATTACH_ATTACH_WORDS_H_

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

// Judges a packet that should be the answer, which came with `descriptors` descriptors. Empty if the daemon accepted us: `reply` is then
// sound, and names beyond its rail_count are empty. Otherwise one line that says why not, and `reply` is untouched.
//
// Both versions' answers are alike.
std::string CheckReply(const void* packet, size_t bytes, size_t descriptors, plan::AttachReply* reply);

// The older version in which a daemon wants to be asked that refused to be asked in `asked`; 0: it wants no such thing.
uint32_t VersionToAskIn(const void* packet, size_t bytes, uint32_t asked);

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_ATTACH_ATTACH_WORDS_H_
