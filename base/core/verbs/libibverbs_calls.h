// Finds the calls of libibverbs, by name and version, in a library that was opened at run time. Only for libibverbs.cc.
#ifndef R2CC_BASE_CORE_VERBS_LIBIBVERBS_CALLS_H_
#define R2CC_BASE_CORE_VERBS_LIBIBVERBS_CALLS_H_

#include <infiniband/verbs.h>

#include <string>

namespace r2cc::verbs {

struct LibibverbsCalls {
  decltype(&::ibv_fork_init) fork_init;
  decltype(&::ibv_get_device_list) get_device_list;
  decltype(&::ibv_free_device_list) free_device_list;
  decltype(&::ibv_get_device_guid) get_device_guid;
  decltype(&::ibv_open_device) open_device;
  decltype(&::ibv_close_device) close_device;
  decltype(&::ibv_query_device) query_device;
  decltype(&::ibv_query_port) query_port;
  decltype(&::_ibv_query_gid_table) query_gid_table;
  decltype(&::ibv_get_async_event) get_async_event;
  decltype(&::ibv_ack_async_event) ack_async_event;
  decltype(&::ibv_alloc_pd) alloc_pd;
  decltype(&::ibv_dealloc_pd) dealloc_pd;
  decltype(&::ibv_reg_mr) reg_mr;
  decltype(&::ibv_reg_mr_iova2) reg_mr_iova2;    // null: no relaxed ordering
  decltype(&::ibv_reg_dmabuf_mr) reg_dmabuf_mr;  // null: no dma-buf
  decltype(&::ibv_dereg_mr) dereg_mr;
  decltype(&::ibv_create_comp_channel) create_comp_channel;
  decltype(&::ibv_destroy_comp_channel) destroy_comp_channel;
  decltype(&::ibv_create_cq) create_cq;
  decltype(&::ibv_destroy_cq) destroy_cq;
  decltype(&::ibv_get_cq_event) get_cq_event;
  decltype(&::ibv_ack_cq_events) ack_cq_events;
  decltype(&::ibv_create_qp) create_qp;
  decltype(&::ibv_modify_qp) modify_qp;
  decltype(&::ibv_query_qp) query_qp;
  decltype(&::ibv_destroy_qp) destroy_qp;

  // From what dlopen() returned. Returns the first that is needed and not there, with its version; empty: all are.
  std::string Find(void* handle);
};

}  // namespace r2cc::verbs

#endif  // R2CC_BASE_CORE_VERBS_LIBIBVERBS_CALLS_H_
