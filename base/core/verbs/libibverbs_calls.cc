#include "base/core/verbs/libibverbs_calls.h"

#include <dlfcn.h>

#include <type_traits>

namespace r2cc::verbs {

std::string LibibverbsCalls::Find(void* handle) {
  std::string lacks;
  // By version, because 1.0 of most has other structs.
  const auto find = [&](auto& call, const char* name, const char* version, bool needed = true) {
    void* const found = dlvsym(handle, name, version);
    call = reinterpret_cast<std::remove_reference_t<decltype(call)>>(found);
    if (found == nullptr && needed && lacks.empty()) lacks = std::string(name) + " of " + version;
  };
  find(fork_init, "ibv_fork_init", "IBVERBS_1.1");
  find(get_device_list, "ibv_get_device_list", "IBVERBS_1.1");
  find(free_device_list, "ibv_free_device_list", "IBVERBS_1.1");
  find(get_device_guid, "ibv_get_device_guid", "IBVERBS_1.1");
  find(open_device, "ibv_open_device", "IBVERBS_1.1");
  find(close_device, "ibv_close_device", "IBVERBS_1.1");
  find(query_device, "ibv_query_device", "IBVERBS_1.1");
  find(query_port, "ibv_query_port", "IBVERBS_1.1");
  find(query_gid_table, "_ibv_query_gid_table", "IBVERBS_1.11");
  find(get_async_event, "ibv_get_async_event", "IBVERBS_1.1");
  find(ack_async_event, "ibv_ack_async_event", "IBVERBS_1.1");
  find(alloc_pd, "ibv_alloc_pd", "IBVERBS_1.1");
  find(dealloc_pd, "ibv_dealloc_pd", "IBVERBS_1.1");
  find(reg_mr, "ibv_reg_mr", "IBVERBS_1.1");
  find(reg_mr_iova2, "ibv_reg_mr_iova2", "IBVERBS_1.8", false);
  find(reg_dmabuf_mr, "ibv_reg_dmabuf_mr", "IBVERBS_1.12", false);
  find(dereg_mr, "ibv_dereg_mr", "IBVERBS_1.1");
  find(create_comp_channel, "ibv_create_comp_channel", "IBVERBS_1.0");
  find(destroy_comp_channel, "ibv_destroy_comp_channel", "IBVERBS_1.0");
  find(create_cq, "ibv_create_cq", "IBVERBS_1.1");
  find(destroy_cq, "ibv_destroy_cq", "IBVERBS_1.1");
  find(get_cq_event, "ibv_get_cq_event", "IBVERBS_1.1");
  find(ack_cq_events, "ibv_ack_cq_events", "IBVERBS_1.1");
  find(create_qp, "ibv_create_qp", "IBVERBS_1.1");
  find(modify_qp, "ibv_modify_qp", "IBVERBS_1.1");
  find(query_qp, "ibv_query_qp", "IBVERBS_1.1");
  find(destroy_qp, "ibv_destroy_qp", "IBVERBS_1.1");
  return lacks;
}

}  // namespace r2cc::verbs
