// What libr2cc-nccl.so finds by dlsym in R2CC's other two libraries of a process, as it lies in memory. A change of layout is another name.
#ifndef R2CC_NETPLUGIN_ABI_SEAT_V2_H_
#define R2CC_NETPLUGIN_ABI_SEAT_V2_H_

#include <cstddef>
#include <cstdint>

namespace r2cc::abi {

// By which way the AllReduces of a communicator go: plan::Way.
enum class SeatWay : uint32_t { kUsual = 0, kTree = 1, kCollNet = 2 };

// What a communicator's first rank reports when its way changes.
struct SeatReport {
  uint32_t communicator;       // its number in this process, from 1
  SeatWay way;                 // since `call`
  uint64_t call;               // of the communicator's AllReduces
  uint64_t bytes_min;          // smaller ones stay with NCCL's own choice
  uint32_t expected_permille;  // of the usual time, for large vectors
  uint32_t zero;
};
static_assert(sizeof(SeatReport) == 32);

// `r2cc_seat_v2` of libnccl-net-r2cc.so. Any thread; nothing is started.
struct SeatTableV2 {
  uint64_t (*node_key)();          // equal in all processes of a node
  int (*kept_permille)();          // of the node's bandwidth; negative: the plugin does not run
  int (*rails)();                  // of the node, lost ones too
  uint64_t (*bytes_per_second)();  // of the node, lost rails too, as their NICs state it; 0: not known
  int (*offers_collnet)();         // 1: NCCL can use CollNet here
  // From now on communicators are noted as they begin.
  void (*watch)();
  // Until now. `dealt` 1: the flows of the one that began are dealt out over all rails. 0, and nothing changes: none began, or several.
  int (*mark)(int dealt);
  // A copy is kept for `r2ccctl jobs`.
  void (*report)(const SeatReport* report);
};
static_assert(sizeof(SeatTableV2) == 8 * sizeof(void*));

// `r2cc_seat_tuner_v3` of libnccl-tuner-r2cc.so. Any thread.
struct SeatTunerTableV3 {
  // From now on communicators of so many ranks are noted as they begin.
  void (*watch)(size_t ranks);
  // Until now. The AllReduces of the one that began use the tree from now on; 0, and nothing changes: none began, or several.
  int (*mark)();
  // From now on communicators are noted for which NCCL asks about an AllReduce of this size.
  void (*watch_all_reduce)(size_t bytes);
  // Until now. The number of that communicator in this process; 0: none was noted, several were, or NCCL does not offer it CollNet.
  uint64_t (*watched)();
  // The AllReduces of the communicator with that number go that way from now on. 0: it has ended.
  int (*set_way)(uint64_t number, SeatWay way);
};
static_assert(sizeof(SeatTunerTableV3) == 5 * sizeof(void*));

}  // namespace r2cc::abi

#endif  // R2CC_NETPLUGIN_ABI_SEAT_V2_H_
