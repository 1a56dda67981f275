#include "base/core/verbs/libibverbs.h"

#include <dlfcn.h>
#include <endian.h>
#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

#include "base/core/fork_guard.h"
#include "base/core/verbs/device_sysfs.h"
#include "base/core/verbs/libibverbs_calls.h"
#include "base/core/verbs/libibverbs_values.h"

namespace r2cc::verbs {
namespace {

constexpr size_t kRequestsPerDoorbell = 32;
constexpr size_t kSegmentsPerDoorbell = 64;
constexpr size_t kCompletionsPerPoll = 32;  // 1.5 KiB of stack

// Most calls return an errno value, some -1 and have it in errno.
int Error(int returned) {
  if (returned >= 0) return returned;
  return errno != 0 ? errno : EIO;
}

// The error of a call that returned no object.
int NoObject() { return errno != 0 ? errno : EIO; }

template <typename Id, typename Object>
Id IdOf(Object* object) {
  return static_cast<Id>(reinterpret_cast<uintptr_t>(object));
}

ibv_context* Of(ContextId id) { return reinterpret_cast<ibv_context*>(id); }
ibv_pd* Of(DomainId id) { return reinterpret_cast<ibv_pd*>(id); }
ibv_mr* Of(MemoryRegionId id) { return reinterpret_cast<ibv_mr*>(id); }
ibv_comp_channel* Of(CompletionChannelId id) { return reinterpret_cast<ibv_comp_channel*>(id); }
ibv_cq* Of(CompletionQueueId id) { return reinterpret_cast<ibv_cq*>(id); }
ibv_qp* Of(QueuePairId id) { return reinterpret_cast<ibv_qp*>(id); }

int MakeNonBlocking(int fd) {
  const int flags = fcntl(fd, F_GETFL);
  return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0 ? 0 : errno;
}

// Hands `requests` to `post`(first, bad), as many at a time as a doorbell holds. `*posted`: how many the device has.
template <typename Work, typename Request, typename Post>
int PostLists(std::span<const Request> requests, size_t* posted, const Post& post) {
  *posted = 0;
  while (*posted < requests.size()) {
    std::array<Work, kRequestsPerDoorbell> list;
    std::array<ibv_sge, kSegmentsPerDoorbell> segments;
    size_t count = 0;
    size_t used = 0;
    for (const Request& request : requests.subspan(*posted, std::min(kRequestsPerDoorbell, requests.size() - *posted))) {
      if (request.segments.size() > segments.size() - used) break;
      list[count] = WorkRequestOf(request);
      list[count].sg_list = segments.data() + used;
      list[count].num_sge = static_cast<int>(request.segments.size());
      for (const Segment& segment : request.segments)
        segments[used++] = {.addr = reinterpret_cast<uintptr_t>(segment.address), .length = segment.bytes, .lkey = segment.local_key};
      if (count > 0) list[count - 1].next = &list[count];
      ++count;
    }
    if (count == 0) return EINVAL;  // more segments than any list holds
    Work* bad = nullptr;
    if (const int error = Error(post(list.data(), &bad)); error != 0) {
      // If the library does not name the one that it refused, it took none.
      if (bad >= list.data() && bad < list.data() + count) *posted += static_cast<size_t>(bad - list.data());
      return error;
    }
    *posted += count;
  }
  return 0;
}

}  // namespace

Libibverbs::Libibverbs(const Options& options) : options_(options) {
  // Never closed: providers that it loads leave threads and handlers of their own behind.
  void* const handle = dlopen(options_.library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const why = dlerror();
    missing_ = "no RDMA devices: " + std::string(why != nullptr ? why : options_.library + " cannot be opened") + " (install libibverbs1)";
    return;
  }
  auto library = std::make_unique<LibibverbsCalls>();
  const std::string lacks = library->Find(handle);
  if (lacks.empty())
    library_ = std::move(library);
  else
    missing_ = "no RDMA devices: " + options_.library + " lacks " + lacks + " (rdma-core 33 or later has it)";
}

Libibverbs::~Libibverbs() = default;

int Libibverbs::ForkInit() { return library_ != nullptr ? Error(library_->fork_init()) : 0; }

int Libibverbs::Devices(std::vector<DeviceInfo>* devices) {
  devices->clear();
  if (library_ == nullptr) return 0;
  int count = 0;
  ibv_device** const list = library_->get_device_list(&count);
  // ENOSYS: the kernel has no RDMA at all.
  if (list == nullptr) return errno == ENOSYS ? 0 : NoObject();
  for (int i = 0; i < count; ++i) {
    const DeviceSysfs known = ReadSysfs(options_.sysfs, list[i]->name);
    devices->push_back({list[i]->name, known.driver, be64toh(library_->get_device_guid(list[i])), known.pci, known.interface});
  }
  library_->free_device_list(list);
  return 0;
}

int Libibverbs::Open(const std::string& device, ContextId* context, int* async_fd) {
  if (library_ == nullptr) return ENODEV;
  int count = 0;
  ibv_device** const list = library_->get_device_list(&count);
  if (list == nullptr) return NoObject();
  ibv_device** const found = std::find_if(list, list + count, [&](const ibv_device* entry) { return device == entry->name; });
  errno = 0;
  ibv_context* const opened = found != list + count ? mappings_.Change([&] { return library_->open_device(*found); }) : nullptr;
  const int error = opened != nullptr ? MakeNonBlocking(opened->async_fd) : found != list + count ? NoObject() : ENODEV;
  library_->free_device_list(list);
  if (error != 0) {
    if (opened != nullptr) library_->close_device(opened);
    return error;
  }
  // The queue pairs of a job that dies live on as long as a child of it has these, or a mapping of the device.
  fork_guard::Add(opened->cmd_fd);
  fork_guard::Add(opened->async_fd);
  *context = IdOf<ContextId>(opened);
  *async_fd = opened->async_fd;
  return 0;
}

int Libibverbs::Close(ContextId context) {
  fork_guard::Remove(Of(context)->cmd_fd);
  fork_guard::Remove(Of(context)->async_fd);
  return Error(mappings_.Change([&] { return library_->close_device(Of(context)); }));
}

int Libibverbs::QueryDevice(ContextId context, DeviceLimits* limits) {
  ibv_device_attr attributes{};
  if (const int error = Error(library_->query_device(Of(context), &attributes)); error != 0) return error;
  *limits = {.ports = attributes.phys_port_cnt,
             .queue_pairs = static_cast<uint32_t>(attributes.max_qp),
             .requests = static_cast<uint32_t>(attributes.max_qp_wr),
             .completions = static_cast<uint32_t>(attributes.max_cqe),
             .segments = static_cast<uint32_t>(attributes.max_sge),
             .reads = static_cast<uint32_t>(std::min(attributes.max_qp_rd_atom, attributes.max_qp_init_rd_atom)),
             .relaxed_ordering = library_->reg_mr_iova2 != nullptr,
             .dma_buf = library_->reg_dmabuf_mr != nullptr,
             .firmware = std::string(attributes.fw_ver, strnlen(attributes.fw_ver, sizeof(attributes.fw_ver))),
             .vendor = attributes.vendor_id,
             .part = attributes.vendor_part_id};
  return 0;
}

int Libibverbs::QueryPort(ContextId context, uint8_t port, PortInfo* info) {
  ibv_port_attr attributes{};
  // The library writes no member that came after link_layer and flags; none of those is read here.
  if (const int error = Error(library_->query_port(Of(context), port, reinterpret_cast<_compat_ibv_port_attr*>(&attributes))); error != 0)
    return error;
  *info = {.state = StateOf(attributes.state),
           .link_layer = LinkLayerOf(attributes.link_layer),
           .mtu_bytes = MtuBytes(attributes.active_mtu),
           .lid = attributes.lid,
           .manager_lid = attributes.sm_lid,
           .gid_entries = static_cast<uint32_t>(std::max(0, attributes.gid_tbl_len)),
           .bits_per_second = BitsPerSecond(attributes.active_speed, attributes.active_width),
           .message_bytes = attributes.max_msg_sz};
  return 0;
}

int Libibverbs::QueryGids(ContextId context, uint8_t port, std::vector<GidEntry>* entries) {
  entries->clear();
  // As many as all ports together can have in use.
  DeviceLimits limits;
  if (const int error = QueryDevice(context, &limits); error != 0) return error;
  size_t room = 0;
  for (uint8_t number = 1; number <= limits.ports; ++number) {
    PortInfo info;
    if (const int error = QueryPort(context, number, &info); error != 0) return error;
    room += info.gid_entries;
  }
  std::vector<ibv_gid_entry> table(room);
  const ssize_t count = library_->query_gid_table(Of(context), table.data(), table.size(), 0, sizeof(ibv_gid_entry));
  // Returns the negative of an errno value.
  if (count < 0) return static_cast<int>(-count);
  for (const ibv_gid_entry& entry : std::span(table).first(std::min(room, static_cast<size_t>(count)))) {
    if (entry.port_num != port || entry.gid_type > IBV_GID_TYPE_ROCE_V2 || entry.gid_index > kGidIndexMax) continue;
    GidEntry& added = entries->emplace_back();
    added = {.index = entry.gid_index, .type = static_cast<GidType>(entry.gid_type), .interface_index = entry.ndev_ifindex};
    std::memcpy(added.gid.data(), entry.gid.raw, added.gid.size());
  }
  return 0;
}

int Libibverbs::ReadAsyncEvent(ContextId context, AsyncEvent* event) {
  ibv_async_event read{};
  if (library_->get_async_event(Of(context), &read) != 0) return NoObject();
  *event = {.kind = AsyncKindOf(read.event_type), .raw = static_cast<uint32_t>(read.event_type)};
  switch (SubjectOf(read.event_type)) {
    case Subject::kPort: event->port = static_cast<uint8_t>(read.element.port_num); break;
    case Subject::kQueuePair: event->queue_pair = IdOf<QueuePairId>(read.element.qp); break;
    case Subject::kCompletionQueue: event->completion_queue = IdOf<CompletionQueueId>(read.element.cq); break;
    case Subject::kNone: library_->ack_async_event(&read); break;
  }
  return 0;
}

void Libibverbs::AckAsyncEvent(ContextId, const AsyncEvent& event) {
  ibv_async_event read{};
  read.event_type = static_cast<ibv_event_type>(event.raw);
  switch (SubjectOf(read.event_type)) {
    case Subject::kPort: read.element.port_num = event.port; break;
    case Subject::kQueuePair: read.element.qp = Of(event.queue_pair); break;
    case Subject::kCompletionQueue: read.element.cq = Of(event.completion_queue); break;
    case Subject::kNone: return;  // done when it was read: what it was of is not known any more
  }
  library_->ack_async_event(&read);
}

int Libibverbs::AllocateDomain(ContextId context, DomainId* domain) {
  errno = 0;
  ibv_pd* const made = library_->alloc_pd(Of(context));
  if (made == nullptr) return NoObject();
  *domain = IdOf<DomainId>(made);
  return 0;
}

int Libibverbs::FreeDomain(DomainId domain) { return Error(library_->dealloc_pd(Of(domain))); }

int Libibverbs::Register(DomainId domain, void* base, uint64_t bytes, uint32_t access, MemoryRegion* region) {
  errno = 0;
  const bool relaxed = (access & kRelaxedOrdering) != 0 && library_->reg_mr_iova2 != nullptr;
  const int flags = AccessFlags(access);
  ibv_mr* const made = relaxed ? library_->reg_mr_iova2(Of(domain), base, bytes, reinterpret_cast<uintptr_t>(base),
                                                        static_cast<unsigned>(flags) | IBV_ACCESS_RELAXED_ORDERING)
                               : library_->reg_mr(Of(domain), base, bytes, flags);
  if (made == nullptr) return NoObject();
  *region = {.id = IdOf<MemoryRegionId>(made), .local_key = made->lkey, .remote_key = made->rkey};
  return 0;
}

int Libibverbs::RegisterDmaBuf(DomainId domain, int fd, uint64_t offset, uint64_t bytes, uint64_t base, uint32_t access,
                               MemoryRegion* region) {
  if (library_->reg_dmabuf_mr == nullptr) return EOPNOTSUPP;
  errno = 0;
  const int relaxed = (access & kRelaxedOrdering) != 0 ? IBV_ACCESS_RELAXED_ORDERING : 0;
  ibv_mr* const made = library_->reg_dmabuf_mr(Of(domain), offset, bytes, base, fd, AccessFlags(access) | relaxed);
  if (made == nullptr) return NoObject();
  *region = {.id = IdOf<MemoryRegionId>(made), .local_key = made->lkey, .remote_key = made->rkey};
  return 0;
}

int Libibverbs::Deregister(MemoryRegionId region) { return Error(library_->dereg_mr(Of(region))); }

int Libibverbs::CreateChannel(ContextId context, CompletionChannelId* channel, int* fd) {
  errno = 0;
  ibv_comp_channel* const made = library_->create_comp_channel(Of(context));
  if (made == nullptr) return NoObject();
  if (const int error = MakeNonBlocking(made->fd); error != 0) {
    library_->destroy_comp_channel(made);
    return error;
  }
  fork_guard::Add(made->fd);
  *channel = IdOf<CompletionChannelId>(made);
  *fd = made->fd;
  return 0;
}

int Libibverbs::DestroyChannel(CompletionChannelId channel) {
  fork_guard::Remove(Of(channel)->fd);
  return Error(library_->destroy_comp_channel(Of(channel)));
}

int Libibverbs::TakeCompletionEvents(CompletionChannelId channel) {
  ibv_cq* queue = nullptr;
  void* user = nullptr;
  bool any = false;
  while (library_->get_cq_event(Of(channel), &queue, &user) == 0) {
    library_->ack_cq_events(queue, 1);
    any = true;
  }
  return any ? 0 : NoObject();
}

int Libibverbs::CreateCompletionQueue(ContextId context, uint32_t entries, CompletionChannelId channel, CompletionQueueId* queue) {
  if (entries > INT_MAX) return EINVAL;
  errno = 0;
  ibv_cq* const made =
      mappings_.Change([&] { return library_->create_cq(Of(context), static_cast<int>(entries), nullptr, Of(channel), 0); });
  if (made == nullptr) return NoObject();
  *queue = IdOf<CompletionQueueId>(made);
  return 0;
}

int Libibverbs::DestroyCompletionQueue(CompletionQueueId queue) {
  return Error(mappings_.Change([&] { return library_->destroy_cq(Of(queue)); }));
}

int Libibverbs::Arm(CompletionQueueId queue, bool solicited_only) {
  return Error(Of(queue)->context->ops.req_notify_cq(Of(queue), solicited_only ? 1 : 0));
}

int Libibverbs::Poll(CompletionQueueId queue, std::span<Completion> completions, size_t* taken) {
  *taken = 0;
  std::array<ibv_wc, kCompletionsPerPoll> found;
  while (*taken < completions.size()) {
    const size_t room = std::min(found.size(), completions.size() - *taken);
    const int count = Of(queue)->context->ops.poll_cq(Of(queue), static_cast<int>(room), found.data());
    if (count < 0) return EIO;
    for (const ibv_wc& wc : std::span(found).first(std::min(room, static_cast<size_t>(count)))) completions[(*taken)++] = CompletionOf(wc);
    if (static_cast<size_t>(count) < room) return 0;
  }
  return 0;
}

int Libibverbs::CreateQueuePair(DomainId domain, const QueuePairLimits& limits, QueuePairInfo* info) {
  ibv_qp_init_attr attributes{};
  attributes.send_cq = Of(limits.send_completions);
  attributes.recv_cq = Of(limits.receive_completions);
  attributes.qp_type = IBV_QPT_RC;
  attributes.cap = {.max_send_wr = limits.sends,
                    .max_recv_wr = limits.receives,
                    .max_send_sge = limits.send_segments,
                    .max_recv_sge = limits.receive_segments,
                    .max_inline_data = limits.inline_bytes};
  errno = 0;
  ibv_qp* const made = mappings_.Change([&] { return library_->create_qp(Of(domain), &attributes); });
  if (made == nullptr) return NoObject();
  *info = {.id = IdOf<QueuePairId>(made), .number = made->qp_num, .inline_bytes = attributes.cap.max_inline_data};
  return 0;
}

int Libibverbs::Init(QueuePairId queue_pair, uint8_t port, uint16_t pkey_index, uint32_t access) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = port;
  attributes.pkey_index = pkey_index;
  attributes.qp_access_flags = static_cast<unsigned>(AccessFlags(access));
  return Error(library_->modify_qp(Of(queue_pair), &attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
}

int Libibverbs::MakeReadyToReceive(QueuePairId queue_pair, const ReadyToReceive& ready) {
  ibv_qp_attr attributes;
  if (!AttributesOf(ready, &attributes)) return EINVAL;
  return Error(library_->modify_qp(
      Of(queue_pair), &attributes,
      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
}

int Libibverbs::MakeReadyToSend(QueuePairId queue_pair, const ReadyToSend& ready) {
  ibv_qp_attr attributes = AttributesOf(ready);
  return Error(
      library_->modify_qp(Of(queue_pair), &attributes,
                          IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC));
}

int Libibverbs::SetState(QueuePairId queue_pair, QueuePairState state) {
  if (state != QueuePairState::kError && state != QueuePairState::kReset) return EINVAL;
  ibv_qp_attr attributes{};
  attributes.qp_state = state == QueuePairState::kError ? IBV_QPS_ERR : IBV_QPS_RESET;
  return Error(library_->modify_qp(Of(queue_pair), &attributes, IBV_QP_STATE));
}

int Libibverbs::QueryState(QueuePairId queue_pair, QueuePairState* state) {
  ibv_qp_attr attributes{};
  ibv_qp_init_attr first{};
  if (const int error = Error(library_->query_qp(Of(queue_pair), &attributes, IBV_QP_STATE, &first)); error != 0) return error;
  *state = StateOf(attributes.qp_state);
  return 0;
}

int Libibverbs::DestroyQueuePair(QueuePairId pair) {
  return Error(mappings_.Change([&] { return library_->destroy_qp(Of(pair)); }));
}

int Libibverbs::PostSend(QueuePairId queue_pair, std::span<const SendRequest> requests, size_t* posted) {
  ibv_qp* const pair = Of(queue_pair);
  return PostLists<ibv_send_wr>(requests, posted,
                                [&](ibv_send_wr* list, ibv_send_wr** bad) { return pair->context->ops.post_send(pair, list, bad); });
}

int Libibverbs::PostReceive(QueuePairId queue_pair, std::span<const ReceiveRequest> requests, size_t* posted) {
  ibv_qp* const pair = Of(queue_pair);
  return PostLists<ibv_recv_wr>(requests, posted,
                                [&](ibv_recv_wr* list, ibv_recv_wr** bad) { return pair->context->ops.post_recv(pair, list, bad); });
}

}  // namespace r2cc::verbs
