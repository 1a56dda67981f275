// R2CC's plugin and tuner for the stub of NCCL: a node for each thread.
#include <atomic>
#include <utility>

#include "netplugin/abi/seat_v1.h"

namespace {

thread_local int own = 0;
std::atomic<int> kept{1000};  // of node 1

uint64_t NodeKey() { return 100 + static_cast<uint64_t>(own); }
int Kept() { return own == 1 ? kept.load() : 1000; }
int Rails() { return 4; }
thread_local bool flows_watched = false, flows_marked = false;
void WatchFlows() { flows_watched = true; }
int MarkFlows() { return flows_marked = std::exchange(flows_watched, false); }
void Watch(size_t) { flows_marked = false; }
// A seat whose flows were not marked is none here.
int Mark() { return flows_marked; }

}  // namespace

extern "C" {

r2cc::abi::SeatTableV1 r2cc_seat_v1 = {NodeKey, Kept, Rails, WatchFlows, MarkFlows};
r2cc::abi::SeatTunerTableV1 r2cc_seat_tuner_v1 = {Watch, Mark};
void stub_own_node(int node) { own = node; }
void stub_keep(int permille) { kept = permille; }

}  // extern "C"
