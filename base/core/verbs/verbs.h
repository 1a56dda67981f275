// Defines the verbs that the transport calls, and nothing else of libibverbs: reliable connections, RDMA writes and reads, sends,
// completions, events. Plain structs; no type of ibverbs. libibverbs.h implements it over the library, fake_verbs.h over a fabric in
// virtual time.
//
// Errors: a call returns 0, or an errno value and has done nothing, unless its comment states otherwise. EIO and ENODEV: the device is
// gone; then only the Close, Destroy, Deregister, Free and event calls are of use, and they may fail with the same. ENOMEM of Register():
// most often the limit of locked memory. Nothing is thrown.
//
// Ownership: an object exists until the call that ends it; the caller ends objects in the reverse order. A handle of 0 is none. A
// failed end leaves the object as it was, and the caller decides whether to try again or to leave it for good.
//
// Threads: PostSend() and PostReceive() of one queue pair, Poll() and Arm() of one completion queue: one thread at a time each, they
// never block. Everything else: any threads at once; what is marked MAY BLOCK does, for long on a device that dies.
#ifndef R2CC_BASE_CORE_VERBS_VERBS_H_
#define R2CC_BASE_CORE_VERBS_VERBS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace r2cc::verbs {

enum class ContextId : uint64_t {};
enum class DomainId : uint64_t {};
enum class MemoryRegionId : uint64_t {};
enum class CompletionChannelId : uint64_t {};
enum class CompletionQueueId : uint64_t {};
enum class QueuePairId : uint64_t {};

struct DeviceInfo {
  std::string name;            // mlx5_0
  std::string driver;          // of the kernel: mlx5_core, rdma_rxe; empty: unknown
  uint64_t guid = 0;           // of the node, host byte order
  std::string pci = {};        // of its PCI function: 0000:81:00.0; empty: unknown, or none
  std::string interface = {};  // of soft-RoCE: the network interface that it was made on
};

struct DeviceLimits {
  uint8_t ports = 1;  // numbered from 1
  uint32_t queue_pairs = 0;
  uint32_t requests = 0;     // of one queue of one queue pair
  uint32_t completions = 0;  // of one completion queue
  uint32_t segments = 0;     // of one request
  uint32_t reads = 0;        // outstanding at one queue pair, as target and as initiator
  bool relaxed_ordering = false;
  bool dma_buf = false;  // the library has the call; only a registration shows whether the device can
  std::string firmware;
  uint32_t vendor = 0;
  uint32_t part = 0;
};

enum class LinkLayer : uint8_t { kUnknown, kInfiniBand, kEthernet };
enum class PortState : uint8_t { kDown, kInitializing, kArmed, kActive };  // only kActive carries packets

struct PortInfo {
  PortState state = PortState::kDown;
  LinkLayer link_layer = LinkLayer::kUnknown;
  uint32_t mtu_bytes = 0;      // active: 256 to 4096
  uint16_t lid = 0;            // InfiniBand
  uint16_t manager_lid = 0;    // InfiniBand: its subnet manager
  uint32_t gid_entries = 0;    // length of the table; entries may be empty
  double bits_per_second = 0;  // active speed times width; 0: unknown
  uint32_t message_bytes = 0;  // longest message
};

using Gid = std::array<uint8_t, 16>;  // network byte order; IPv4 as ::ffff:a.b.c.d
enum class GidType : uint8_t { kInfiniBand, kRoceV1, kRoceV2 };

struct GidEntry {
  uint32_t index = 0;
  Gid gid{};
  GidType type = GidType::kInfiniBand;
  uint32_t interface_index = 0;  // of the network interface; 0: none, or unknown
};

// The accesses that a region allows others, and the device: or-ed.
enum Access : uint32_t {
  kAccessNone = 0,  // the device reads for the own requests
  kLocalWrite = 1,
  kRemoteWrite = 2,  // takes kLocalWrite as well
  kRemoteRead = 4,
  kRelaxedOrdering = 8,  // a wish: ignored where it is not known
};

struct MemoryRegion {
  MemoryRegionId id{};
  uint32_t local_key = 0;
  uint32_t remote_key = 0;
};

enum class QueuePairState : uint8_t { kReset, kInit, kReadyToReceive, kReadyToSend, kSendQueueDrained, kSendQueueError, kError };

struct QueuePairLimits {
  CompletionQueueId send_completions{};
  CompletionQueueId receive_completions{};
  uint32_t sends = 0;
  uint32_t receives = 0;
  uint32_t send_segments = 1;
  uint32_t receive_segments = 1;
  uint32_t inline_bytes = 0;  // at least
};

struct QueuePairInfo {
  QueuePairId id{};
  uint32_t number = 0;        // 24 bits
  uint32_t inline_bytes = 0;  // at least what was asked for
};

// To the other end, and from there.
struct Path {
  uint8_t port = 1;
  uint32_t gid_index = 0;  // of the own table; read again for each queue pair
  bool global = true;      // with a GID: always on Ethernet
  Gid remote_gid{};
  uint16_t remote_lid = 0;  // InfiniBand
  uint8_t hop_limit = 64;
  uint8_t traffic_class = 0;
  uint8_t service_level = 0;
};

struct ReadyToReceive {
  Path path;
  uint32_t remote_number = 0;
  uint32_t receive_psn = 0;  // 24 bits
  uint32_t mtu_bytes = 0;    // the same at both ends: 256, 512, 1024, 2048, 4096
  uint8_t reads = 1;         // outstanding, as target
  uint8_t min_rnr_timer = 12;
};

struct ReadyToSend {
  uint32_t send_psn = 0;  // 24 bits
  uint8_t timeout = 0;    // exponent: 4.096 us times 2^timeout
  uint8_t retry_cnt = 0;  // 0 to 7
  uint8_t rnr_retry = 7;  // 7: for ever
  uint8_t reads = 1;      // outstanding, as initiator
};

struct Segment {
  const void* address = nullptr;
  uint32_t bytes = 0;
  uint32_t local_key = 0;
};

enum class SendKind : uint8_t { kSend, kWrite, kWriteWithImmediate, kRead };

struct SendRequest {
  uint64_t wr_id = 0;
  SendKind kind = SendKind::kWrite;
  bool signaled = false;
  bool solicited = false;  // the other end's channel is woken if it is armed for solicited ones
  bool fence = false;      // after the reads before it
  bool inlined = false;    // the bytes are copied within the call; no local key is looked at
  std::span<const Segment> segments;
  uint64_t remote_address = 0;
  uint32_t remote_key = 0;
  uint32_t immediate = 0;  // host byte order at both ends
};

struct ReceiveRequest {
  uint64_t wr_id = 0;
  std::span<const Segment> segments;
};

// The numbers are ibv_wc_status.
enum class Status : uint8_t {
  kSuccess = 0,
  kLocalLength = 1,
  kLocalQueuePair = 2,
  kLocalProtection = 4,
  kFlushed = 5,
  kMemoryWindowBind = 6,
  kBadResponse = 7,
  kLocalAccess = 8,
  kRemoteInvalidRequest = 9,
  kRemoteAccess = 10,
  kRemoteOperation = 11,
  kRetryExceeded = 12,
  kReceiverNotReadyExceeded = 13,
  kRemoteAborted = 16,
  kFatal = 19,
  kResponseTimeout = 20,
  kGeneral = 21,
};

enum class CompletionKind : uint8_t { kSend, kWrite, kRead, kReceive, kReceiveWriteWithImmediate };

// For an unsuccessful one only wr_id, status and vendor_error are valid: `kind` and `immediate` are 0 for requests of all kinds.
struct Completion {
  uint64_t wr_id = 0;
  Status status = Status::kSuccess;
  CompletionKind kind = CompletionKind::kSend;
  bool has_immediate = false;
  uint32_t immediate = 0;  // host byte order
  uint32_t bytes = 0;      // of a receive: of the one message that took it
  uint32_t vendor_error = 0;
  uint32_t queue_pair_number = 0;
};

enum class AsyncKind : uint8_t {
  kOther,  // nothing that the transport handles; `raw` has its number
  kPortActive,
  kPortError,
  kGidChange,
  kLidChange,
  kPkeyChange,
  kQueuePairFatal,
  kQueuePairRequestError,
  kQueuePairAccessError,
  kPathMigrated,
  kCommunicationEstablished,
  kSendQueueDrained,
  kLastRequestReached,
  kCompletionQueueError,
  kDeviceFatal,
};

// One of a port has a port number, one of a queue pair or of a completion queue its handle: that thing cannot be ended before the event is
// acknowledged. `raw` is the implementation's.
struct AsyncEvent {
  AsyncKind kind = AsyncKind::kOther;
  uint8_t port = 0;
  QueuePairId queue_pair{};
  CompletionQueueId completion_queue{};
  uint32_t raw = 0;
};

class Verbs {
 public:
  virtual ~Verbs() = default;

  // Before the first registration, once: memory of the device survives a fork of the process.
  virtual int ForkInit() = 0;
  // None, with 0, where there is no library or no device. MAY BLOCK.
  virtual int Devices(std::vector<DeviceInfo>* devices) = 0;
  // The asynchronous events of the device come readable on `*async_fd`, which is non-blocking and belongs to the context. MAY BLOCK.
  virtual int Open(const std::string& device, ContextId* context, int* async_fd) = 0;
  virtual int Close(ContextId context) = 0;

  // MAY BLOCK, all three.
  virtual int QueryDevice(ContextId context, DeviceLimits* limits) = 0;
  virtual int QueryPort(ContextId context, uint8_t port, PortInfo* info) = 0;
  // Those that are in use, without those of an unknown type.
  virtual int QueryGids(ContextId context, uint8_t port, std::vector<GidEntry>* entries) = 0;

  // EAGAIN: there is none now. Each that was read must be acknowledged, even of what nobody knows any more.
  virtual int ReadAsyncEvent(ContextId context, AsyncEvent* event) = 0;
  virtual void AckAsyncEvent(ContextId context, const AsyncEvent& event) = 0;

  // MAY BLOCK, these too.
  virtual int AllocateDomain(ContextId context, DomainId* domain) = 0;
  virtual int FreeDomain(DomainId domain) = 0;
  // Remote addresses are the process's own. `access`: or-ed.
  virtual int Register(DomainId domain, void* base, uint64_t bytes, uint32_t access, MemoryRegion* region) = 0;
  // The same for `bytes` from `offset` of a dma-buf; remote addresses begin with `base`. The descriptor stays the caller's.
  virtual int RegisterDmaBuf(DomainId domain, int fd, uint64_t offset, uint64_t bytes, uint64_t base, uint32_t access,
                             MemoryRegion* region) = 0;
  // 0: the device does not reach it any more, and will not.
  virtual int Deregister(MemoryRegionId region) = 0;

  // Completion events come readable on `*fd`, which is non-blocking and belongs to the channel.
  virtual int CreateChannel(ContextId context, CompletionChannelId* channel, int* fd) = 0;
  virtual int DestroyChannel(CompletionChannelId channel) = 0;
  // Takes and acknowledges what is there. EAGAIN: nothing was. Never blocks.
  virtual int TakeCompletionEvents(CompletionChannelId channel) = 0;
  // `channel`: 0 for none. MAY BLOCK.
  virtual int CreateCompletionQueue(ContextId context, uint32_t entries, CompletionChannelId channel, CompletionQueueId* queue) = 0;
  virtual int DestroyCompletionQueue(CompletionQueueId queue) = 0;
  // The next completion makes one event of the channel. One that came before shows only in Poll(): poll once more after this.
  virtual int Arm(CompletionQueueId queue, bool solicited_only) = 0;
  // Takes at most `completions.size()`. `*taken` is how many, also after an error; an error is of the queue, which is lost then.
  virtual int Poll(CompletionQueueId queue, std::span<Completion> completions, size_t* taken) = 0;

  // Reliable, connected; in RESET. MAY BLOCK, and so may all that change it.
  virtual int CreateQueuePair(DomainId domain, const QueuePairLimits& limits, QueuePairInfo* info) = 0;
  virtual int Init(QueuePairId queue_pair, uint8_t port, uint16_t pkey_index, uint32_t access) = 0;
  virtual int MakeReadyToReceive(QueuePairId queue_pair, const ReadyToReceive& attributes) = 0;
  virtual int MakeReadyToSend(QueuePairId queue_pair, const ReadyToSend& attributes) = 0;
  // To kError: what is posted is flushed. To kReset: it vanishes. No other state.
  virtual int SetState(QueuePairId queue_pair, QueuePairState state) = 0;
  virtual int QueryState(QueuePairId queue_pair, QueuePairState* state) = 0;
  // Completions that were not polled may vanish. Waits until its asynchronous events are acknowledged.
  virtual int DestroyQueuePair(QueuePairId queue_pair) = 0;

  // In order, one doorbell. On an error the first `*posted` are with the device, the others are not. ENOMEM: the queue is full.
  virtual int PostSend(QueuePairId queue_pair, std::span<const SendRequest> requests, size_t* posted) = 0;
  virtual int PostReceive(QueuePairId queue_pair, std::span<const ReceiveRequest> requests, size_t* posted) = 0;
};

}  // namespace r2cc::verbs

#endif  // R2CC_BASE_CORE_VERBS_VERBS_H_
