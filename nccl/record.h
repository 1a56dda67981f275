// The report of each rank in the agreement: a record of some words in its place of a vector. All other places of its vector are at the
// largest value, so that a minimum of all ranks' vectors has everybody's record. Pure.
#ifndef R2CC_NCCL_RECORD_H_
#define R2CC_NCCL_RECORD_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "plan/collective/ways.h"

namespace r2cc::nccl {

constexpr uint32_t kRecordWords = 8;
constexpr uint32_t kRecordVersion = 2;

struct Record {
  uint64_t node_key = 0;           // equal on all ranks of a node
  uint32_t kept_permille = 0;      // of the node's bandwidth, as this process knows it
  uint32_t rails = 0;              // that the node has, lost ones too
  uint32_t free_mib = 0;           // of the GPU
  uint32_t child = 0;              // the number of the child that this rank has; 0: none
  bool able = false;               // the plugin, its tuner and the driver are there
  uint32_t node_mbps = 0;          // what the node's rails carry together, lost ones too; 0: not known
  bool offers_collnet = false;     // NCCL can use CollNet here
  uint64_t collnet_min_bytes = 0;  // R2CC_COLLNET_MIN_BYTES; 0: not set
  friend bool operator==(const Record&, const Record&) = default;
};

// `vector` has kRecordWords for each rank.
void Encode(const Record& record, uint32_t rank, std::span<uint32_t> vector);

// The result of the agreement, which all ranks have.
struct Vector {
  bool is_small = false;  // it has fewer than three nodes: then that is the problem
  std::string problem;    // why there can be no seat for this communicator; empty: there can
  plan::SeatNodes nodes;  // by the first rank of each
  plan::CollNetOffer collnet;
  std::vector<uint32_t> node_of;  // each rank's
  uint32_t free_mib = 0;          // of the rank that has least
  bool all_have_child = false;    // the one that is asked for
};
// From the minimum. `child`: see Record.
Vector Decode(std::span<const uint32_t> minimum, uint32_t child);

}  // namespace r2cc::nccl

#endif  // R2CC_NCCL_RECORD_H_
