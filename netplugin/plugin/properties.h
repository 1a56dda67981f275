// Fills in a device's properties for each version of the net and CollNet tables: the same rails, in the same order, in both.
#ifndef R2CC_NETPLUGIN_PLUGIN_PROPERTIES_H_
#define R2CC_NETPLUGIN_PLUGIN_PROPERTIES_H_

#include <cstring>

#include "netplugin/abi/nccl_types.h"
#include "netplugin/abi/net_v12.h"
#include "netplugin/plugin/calls.h"

namespace r2cc::net {

// Communicators of one device: no limit that we know of.
constexpr int kCommsMax = 65'536;

// Sets the fields that every version has. The rest is zero, which means "host device, nothing special" in all of them.
//
// So v8 has no reg_is_global, although handles are global. With it NCCL 2.20 to 2.22 sends from memory that the job has registered, also
// more than the peer receives, and takes what the peer received for sent. The plugin fails such a flow.
template <typename Properties>
abi::Result Fill(int index, Properties* out) {
  RailProperties device{};
  const abi::Result result = CallDevice(index, &device);
  if (result != abi::Result::kSuccess) return result;
  std::memset(out, 0, sizeof(*out));
  out->name = const_cast<char*>(device.name);
  out->pci_path = const_cast<char*>(device.pci_path);
  out->guid = device.guid;
  out->ptr_support = device.memory_kinds;
  out->speed_mbps = device.speed_mbps;
  out->port = 1;
  out->max_comms = kCommsMax;
  out->max_recvs = 1;
  return abi::Result::kSuccess;
}

// v9 and later: what a device consists of, and how large a message may be.
template <typename Properties>
abi::Result FillV9(int index, Properties* out) {
  const abi::Result result = Fill(index, out);
  if (result != abi::Result::kSuccess) return result;
  out->reg_is_global = 1;
  out->v_props.ndevs = 1;
  out->v_props.devs[0] = index;
  out->max_p2p_bytes = abi::kMessageBytesMax;
  out->max_coll_bytes = abi::kMessageBytesMax;
  return abi::Result::kSuccess;
}

template <typename Properties>
abi::Result FillV11(int index, Properties* out) {
  const abi::Result result = FillV9(index, out);
  if (result == abi::Result::kSuccess) out->max_multi_request_size = 1;
  return result;
}

inline abi::Result FillV12(int index, abi::NetPropertiesV12* out) {
  const abi::Result result = FillV11(index, out);
  if (result != abi::Result::kSuccess) return result;
  out->rail_id = abi::kUndefined;
  out->plane_id = abi::kUndefined;
  return abi::Result::kSuccess;
}

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_PLUGIN_PROPERTIES_H_
