// What libr2cc-nccl.so finds by dlsym in R2CC's other two libraries of a process, as it lies in memory. A change of layout is another name.
#ifndef R2CC_NETPLUGIN_ABI_SEAT_V1_H_
#define R2CC_NETPLUGIN_ABI_SEAT_V1_H_

#include <cstddef>
#include <cstdint>

namespace r2cc::abi {

// `r2cc_seat_v1` of libnccl-net-r2cc.so. Any thread; nothing is started.
struct SeatTableV1 {
  uint64_t (*node_key)();  // equal in all processes of a node
  int (*kept_permille)();  // of the node's bandwidth; negative: the plugin does not run
  int (*rails)();          // of the node, lost ones too
  // From now on communicators are noted as they begin.
  void (*watch)();
  // Until now. The flows of the one that began are dealt out over all rails; 0, and nothing changes: none began, or several.
  int (*mark)();
};
static_assert(sizeof(SeatTableV1) == 5 * sizeof(void*));

// `r2cc_seat_tuner_v1` of libnccl-tuner-r2cc.so. Any thread.
struct SeatTunerTableV1 {
  // From now on communicators of so many ranks are noted as they begin.
  void (*watch)(size_t ranks);
  // Until now. Of the one that began the AllReduces take the tree from now on; 0, and nothing changes: none began, or several.
  int (*mark)();
};
static_assert(sizeof(SeatTunerTableV1) == 2 * sizeof(void*));

}  // namespace r2cc::abi

#endif  // R2CC_NETPLUGIN_ABI_SEAT_V1_H_
