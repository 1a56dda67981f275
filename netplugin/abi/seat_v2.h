// Defines the memory layout of the tables that libr2cc-nccl.so finds by dlsym in R2CC's other two libraries of a process. A change of
// layout gets a new name.
#ifndef R2CC_NETPLUGIN_ABI_SEAT_V2_H_
#define R2CC_NETPLUGIN_ABI_SEAT_V2_H_

#include <cstddef>
#include <cstdint>

namespace r2cc::abi {

// The way of a communicator's AllReduces, a plan::Way.
enum class SeatWay : uint32_t { kUsual = 0, kTree = 1, kCollNet = 2 };

// The report of a communicator's first rank when its way changes.
struct SeatReport {
  uint32_t communicator;       // its number in this process, from 1
  SeatWay way;                 // the way since `call`
  uint64_t call;               // the number of an AllReduce of the communicator
  uint64_t bytes_min;          // smaller vectors stay with NCCL's own choice
  uint32_t expected_permille;  // time for large vectors, relative to the usual way
  uint32_t zero;
};
static_assert(sizeof(SeatReport) == 32);

// `r2cc_seat_v2` of libnccl-net-r2cc.so. Any thread; starts nothing.
struct SeatTableV2 {
  uint64_t (*node_key)();          // equal in all processes of a node
  int (*kept_permille)();          // of the node's bandwidth; negative: the plugin does not run
  int (*rails)();                  // how many the node has, lost ones included
  uint64_t (*bytes_per_second)();  // of the node, lost rails included, as their NICs report it; 0: unknown
  int (*offers_collnet)();         // 1: NCCL can use CollNet here
  // Begins to note communicators as they begin.
  void (*watch)();
  // Ends what watch() began. `dealt` 1: stripes the flows of the noted communicator over all rails. 0, and nothing changes: none was noted,
  // or several.
  int (*mark)(int dealt);
  // Copies the report, for `r2ccctl jobs`.
  void (*report)(const SeatReport* report);
};
static_assert(sizeof(SeatTableV2) == 8 * sizeof(void*));

// `r2cc_seat_tuner_v3` of libnccl-tuner-r2cc.so. Any thread.
struct SeatTunerTableV3 {
  // Begins to note communicators of `ranks` ranks as they begin.
  void (*watch)(size_t ranks);
  // Ends what watch() began: the AllReduces of the noted communicator use the tree from now on. 0, and nothing changes: none was noted, or
  // several.
  int (*mark)();
  // Begins to note communicators for which NCCL asks about an AllReduce of this size.
  void (*watch_all_reduce)(size_t bytes);
  // Ends what watch_all_reduce() began. Returns the noted communicator's number in this process; 0: none was noted, several were, or NCCL
  // does not offer it CollNet.
  uint64_t (*watched)();
  // From now on the AllReduces of the communicator with that number use `way`. 0: the communicator has ended.
  int (*set_way)(uint64_t number, SeatWay way);
};
static_assert(sizeof(SeatTunerTableV3) == 5 * sizeof(void*));

}  // namespace r2cc::abi

#endif  // R2CC_NETPLUGIN_ABI_SEAT_V2_H_
