// Link and address events of this network namespace, from the kernel's NETLINK_ROUTE.
//
// The stream of a socket begins with kResync, then what exists now, then kDumpDone; afterwards changes. Each time messages were lost
// another kResync follows, again with everything that exists and a kDumpDone: what was not mentioned in between is gone.
#ifndef R2CC_BASE_CORE_NETLINK_H_
#define R2CC_BASE_CORE_NETLINK_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/core/address_choice.h"

namespace r2cc {

struct NetEvent {
  enum class Kind {
    kResync,          // events were lost (or none came yet): a dump follows
    kDumpDone,        // the dump that the last kResync announced is complete
    kLink,            // the interface is like this now
    kLinkRemoved,     // ifindex, name
    kAddressAdded,    // ifindex, address
    kAddressRemoved,  // ifindex, address
  };
  Kind kind = Kind::kResync;
  int ifindex = 0;

  std::string name;
  bool admin_up = false;    // `ip link set up`
  bool carrier_up = false;  // there is a signal, and the other end of a veth or the lower device is up
  bool loopback = false;
  bool dummy = false;                    // of the kind "dummy"
  std::array<uint8_t, 6> mac{};          // zero if it has none of six bytes
  std::vector<std::string> other_names;  // `ip link property add ... altname`
  uint32_t mtu = 0;                      // in bytes; 0: the kernel does not report it

  std::string address;  // numeric, without scope: "10.0.0.1", "fe80::1"
  int prefix_bits = 0;  // of its network
  AddressState state;   // of one that is added; a change of it is another message
};

// The contents of one datagram of the kernel.
struct NetlinkBatch {
  std::vector<NetEvent> events;  // only kLink... and kAddress...
  // For the dump with the sequence number that was asked about:
  bool done = false;
  bool failed = false;       // the kernel refused it (error), e.g. because another one was under way
  bool interrupted = false;  // the world changed meanwhile: it may not be consistent
  int error = 0;             // errno of a refusal
};

// Pure. Appends the events of `bytes` bytes at `data` (any alignment) to `batch`; `sequence` is the one of the dump under way.
// False if the datagram is garbled: the events before the garbled message are kept, and the caller has lost the others.
bool ParseNetlink(const void* data, size_t bytes, uint32_t sequence, NetlinkBatch* batch);

// One thread at a time.
class NetlinkSocket {
 public:
  enum class Follow { kChanges, kNothing };  // kNothing: the stream ends with the first kDumpDone
  // In the network namespace of the calling thread. Null and a line in `error` if the kernel refuses.
  static std::unique_ptr<NetlinkSocket> Open(std::string* error, Follow follow = Follow::kChanges);
  ~NetlinkSocket();
  NetlinkSocket(const NetlinkSocket&) = delete;
  NetlinkSocket& operator=(const NetlinkSocket&) = delete;

  // Readable when there is something to receive.
  int fd() const { return fd_; }

  // Appends what came since the last call; never blocks, and takes a bounded number of datagrams per call (the descriptor stays
  // readable if there are more). Call it also once in a while without being woken: it then repeats a dump that the kernel refused.
  void Receive(std::vector<NetEvent>* events);

 private:
  enum class Dump { kWanted, kLinks, kAddresses, kNone };

  explicit NetlinkSocket(int fd);
  void Resync(std::vector<NetEvent>* events);
  void Request(uint16_t type, Dump next);
  void Advance(const NetlinkBatch& batch, std::vector<NetEvent>* events);

  int fd_;
  std::vector<uint8_t> buffer_;
  uint32_t sequence_ = 0;
  Dump dump_ = Dump::kWanted;
  bool interrupted_ = false;
  bool announced_ = false;  // a kResync was given and its kDumpDone not yet
};

}  // namespace r2cc

#endif  // R2CC_BASE_CORE_NETLINK_H_
