// Defines the attach conversation between a plugin and its node's daemon, over a SOCK_SEQPACKET Unix socket (attach.sock).
//
//   plugin -> daemon   AttachRequest                                   (one packet)
//   daemon -> plugin   AttachReply, with SCM_RIGHTS {page, ring} if it was accepted
//   afterwards, both ways, packets of one byte: kDoorbellPage (daemon: the page changed), kDoorbellEvidence (plugin: the ring has records)
//
// The socket stays open as long as the job's process runs: its end shows the daemon that the process ended, and the plugin that the
// daemon did (the plugin then tries again, with back-off, forever). A daemon answers each version from kAttachVersionLeast on in that
// version; for one that it does not know it refuses and sends its own, in which the plugin then asks. Both ends check
// every field before they use it; strings are NUL-terminated, and Valid() is false if one is not.
#ifndef R2CC_PLAN_PAGE_ATTACH_H_
#define R2CC_PLAN_PAGE_ATTACH_H_

#include <cstddef>
#include <cstdint>

namespace r2cc::plan {

constexpr uint32_t kAttachMagic = 0x52324341;  // "R2CA"
constexpr uint32_t kAttachVersionLeast = 2;    // release 0.2.0 speaks 1 to 2
constexpr uint32_t kAttachVersion = 2;
constexpr uint32_t kAttachRailsMax = 32;

constexpr char kDoorbellPage = 'P';
constexpr char kDoorbellEvidence = 'E';

// Describes a rail, so that the daemon can match it to a NIC under any name in the job's container. Empty or 0: unknown.
struct AttachRail {
  char name[24];     // interface, RDMA device or address, as in R2CC_RAILS
  char address[48];  // numeric IP address
  char pci[16];      // 0000:81:00.0
  uint64_t guid;
  uint8_t mac[6];
  uint8_t reserved[2];
  uint64_t netns_inode;  // of /proc/self/ns/net
};
static_assert(sizeof(AttachRail) == 112);

struct AttachRequest {
  uint32_t magic;
  uint32_t version;
  int32_t pid;
  uint32_t rail_count;
  uint64_t process_id;  // random, names this process among all
  char job[64];         // R2CC_JOB, or the program's name
  AttachRail rails[kAttachRailsMax];
  // The plugin's. A job keeps its plugin for weeks, and an operator who upgrades the daemons has to know it.
  char release[32];
};

// The length of a request in each version. All that are spoken have the same; a later one may be longer.
constexpr size_t AttachRequestBytes(uint32_t /*version*/) { return sizeof(AttachRequest); }
constexpr bool IsAttachVersion(uint32_t version) { return version >= kAttachVersionLeast && version <= kAttachVersion; }

enum class AttachStatus : uint32_t { kAccepted = 0, kRefused = 1, kWrongVersion = 2 };

// The same in all versions.
struct AttachReply {
  uint32_t magic;
  uint32_t version;  // the request's; of a refusal for its version, the newest that the daemon speaks
  uint32_t status;   // AttachStatus
  uint32_t rail_count;
  char node[64];                   // the node's name
  char nics[kAttachRailsMax][24];  // for each rail the NIC's name on this node; empty: not matched
  char reason[128];                // one line if refused
};

// True if magic, counts and strings (NUL-terminated printable ASCII) are sound; the version is the caller's to judge. Use SetText()
// of plan/page/text.h to fill the strings.
bool Valid(const AttachRequest& request);
bool Valid(const AttachReply& reply);

}  // namespace r2cc::plan

#endif  // R2CC_PLAN_PAGE_ATTACH_H_
