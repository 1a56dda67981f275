#include "base/core/verbs/stub_libibverbs.h"

#include <endian.h>
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

extern "C" r2cc::verbs::Stub stub;
r2cc::verbs::Stub stub;

namespace {

ibv_device device = {{}, IBV_NODE_CA, IBV_TRANSPORT_IB, "stub0", "uverbs0", "", ""};
ibv_device* devices[] = {&device, nullptr};
ibv_context context;
ibv_pd domain = {&context, 0};
ibv_mr region = {&context, &domain, nullptr, 0, 0, 17, 18};
ibv_comp_channel channel;
ibv_cq queue;
ibv_qp pair;

// An object, or none with errno.
template <typename Object>
Object* Made(Object* object) {
  errno = stub.error;
  return stub.error == 0 ? object : nullptr;
}

int PollQueue(ibv_cq*, int room, ibv_wc* wc) {
  const int count = std::min(room, stub.completions);
  for (int i = 0; i < count; ++i) wc[i] = stub.found[i % r2cc::verbs::Stub::kKept];
  stub.completions -= std::max(0, count);
  return count;
}

int Notify(ibv_cq*, int solicited_only) {
  stub.mask = solicited_only;
  return stub.error;
}

template <typename Work, typename Keep>
int Post(Work* list, Work** bad, const Keep& keep) {
  ++stub.doorbells;
  int number = 0;
  for (; list != nullptr; list = list->next, ++number) {
    if (stub.post_error != 0 && (stub.post_refused < 0 || number == stub.post_refused)) {
      if (stub.post_refused >= 0) *bad = list;
      return stub.post_error;
    }
    keep(*list, stub.requests++);
  }
  return 0;
}

int PostSend(ibv_qp*, ibv_send_wr* list, ibv_send_wr** bad) {
  return Post(list, bad, [](const ibv_send_wr& work, int number) {
    stub.sends[number] = work;
    if (work.num_sge > 0) stub.segments[number] = work.sg_list[0];
  });
}

int PostReceive(ibv_qp*, ibv_recv_wr* list, ibv_recv_wr** bad) {
  return Post(list, bad, [](const ibv_recv_wr& work, int number) { stub.receives[number] = work; });
}

}  // namespace

#undef ibv_get_device_list
#undef ibv_query_port
#undef ibv_reg_mr

extern "C" {

int ibv_fork_init() { return stub.error; }

ibv_device** ibv_get_device_list(int* count) {
  *count = 1;
  ++stub.lists;
  return devices;
}
void ibv_free_device_list(ibv_device**) { --stub.lists; }
__be64 ibv_get_device_guid(ibv_device*) { return htobe64(0x1122334455667788); }

ibv_context* ibv_open_device(ibv_device*) {
  if (stub.error == 0) ++stub.contexts;
  context.async_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  context.ops.poll_cq = PollQueue;
  context.ops.req_notify_cq = Notify;
  context.ops.post_send = PostSend;
  context.ops.post_recv = PostReceive;
  return Made(&context);
}
int ibv_close_device(ibv_context*) {
  --stub.contexts;
  return stub.error;
}

int ibv_query_device(ibv_context*, ibv_device_attr* attributes) {
  attributes->phys_port_cnt = 2;
  attributes->max_qp = 100;
  attributes->max_qp_rd_atom = 16;
  attributes->max_qp_init_rd_atom = 8;
  std::memset(attributes->fw_ver, 'f', sizeof(attributes->fw_ver));  // without an end
  return stub.error;
}
int ibv_query_port(ibv_context*, uint8_t, _compat_ibv_port_attr* compat) {
  ibv_port_attr& port = *reinterpret_cast<ibv_port_attr*>(compat);
  port.state = IBV_PORT_ACTIVE;
  port.active_mtu = IBV_MTU_4096;
  port.gid_tbl_len = 2;
  port.active_speed = 128;
  port.active_width = 2;
  port.link_layer = IBV_LINK_LAYER_ETHERNET;
  return stub.error;
}
ssize_t _ibv_query_gid_table(ibv_context*, ibv_gid_entry* entries, size_t room, uint32_t, size_t) {
  if (stub.error != 0) return -stub.error;
  std::copy_n(stub.gids, std::min<size_t>(room, static_cast<size_t>(stub.gid_count)), entries);
  return stub.gid_count;
}

int ibv_get_async_event(ibv_context*, ibv_async_event* event) {
  *event = stub.event;
  errno = stub.error;
  return stub.error != 0 ? -1 : 0;
}
void ibv_ack_async_event(ibv_async_event* event) {
  stub.acknowledged = *event;
  ++stub.events_acknowledged;
}

ibv_pd* ibv_alloc_pd(ibv_context*) { return Made(&domain); }
int ibv_dealloc_pd(ibv_pd*) { return stub.error; }
ibv_mr* ibv_reg_mr(ibv_pd*, void*, size_t, int access) {
  stub.access = static_cast<unsigned>(access);
  stub.iova = false;
  return Made(&region);
}
ibv_mr* ibv_reg_mr_iova2(ibv_pd*, void*, size_t, uint64_t, unsigned access) {
  stub.access = access;
  stub.iova = true;
  return Made(&region);
}
ibv_mr* ibv_reg_dmabuf_mr(ibv_pd*, uint64_t, size_t, uint64_t, int, int access) {
  stub.access = static_cast<unsigned>(access);
  return Made(&region);
}
int ibv_dereg_mr(ibv_mr*) { return stub.error; }

ibv_comp_channel* ibv_create_comp_channel(ibv_context*) {
  channel.fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  return Made(&channel);
}
int ibv_destroy_comp_channel(ibv_comp_channel*) { return stub.error; }
int ibv_get_cq_event(ibv_comp_channel*, ibv_cq** of, void**) {
  *of = &queue;
  errno = EAGAIN;
  return stub.completion_events-- > 0 ? 0 : -1;
}
void ibv_ack_cq_events(ibv_cq*, unsigned count) { stub.events_acknowledged += static_cast<int>(count); }

ibv_cq* ibv_create_cq(ibv_context*, int entries, void*, ibv_comp_channel*, int) {
  queue.context = &context;
  queue.cqe = entries;
  return Made(&queue);
}
int ibv_destroy_cq(ibv_cq*) { return stub.error; }

ibv_qp* ibv_create_qp(ibv_pd*, ibv_qp_init_attr* limits) {
  stub.limits = *limits;
  limits->cap.max_inline_data += 28;
  pair.context = &context;
  pair.qp_num = 0x123456;
  return Made(&pair);
}
int ibv_modify_qp(ibv_qp*, ibv_qp_attr* attributes, int mask) {
  stub.attributes = *attributes;
  stub.mask = mask;
  return stub.error;
}
int ibv_query_qp(ibv_qp*, ibv_qp_attr* attributes, int, ibv_qp_init_attr*) {
  attributes->qp_state = stub.attributes.qp_state;
  return stub.error;
}
int ibv_destroy_qp(ibv_qp*) { return stub.error; }

}  // extern "C"
