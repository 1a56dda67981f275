// R2CC's plugin and tuner for the stub of NCCL: a node for each thread.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "netplugin/abi/seat_v2.h"

namespace {

thread_local int own = 0;
std::atomic<int> kept{1000};  // of node 1

uint64_t NodeKey() { return 100 + static_cast<uint64_t>(own); }
int Kept() { return own == 1 ? kept.load() : 1000; }
int Rails() { return 4; }
thread_local bool by_collnet = false;  // what NCCL would be told for the rank's next AllReduce
thread_local bool flows_watched = false, flows_marked = false;
void WatchFlows() { flows_watched = true; }
int MarkFlows(int) { return flows_marked = std::exchange(flows_watched, false); }
void Watch(size_t) { flows_marked = false; }
// A seat whose flows were not marked is none here.
int Mark() { return flows_marked; }
void WatchAllReduce(size_t) {}
uint64_t Watched() { return 1; }
int SetWay(uint64_t, r2cc::abi::SeatWay way) {
  by_collnet = way == r2cc::abi::SeatWay::kCollNet;
  return 1;
}
uint64_t BytesPerSecond() { return 1'000'000'000; }
int OffersCollNet() { return std::getenv("STUB_COLLNET") != nullptr; }
void Report(const r2cc::abi::SeatReport* report) {
  std::printf("report: communicator %u, way %u, call %lu, %lu MiB, %u\n", report->communicator, static_cast<uint32_t>(report->way),
              report->call, report->bytes_min >> 20, report->expected_permille);
}

}  // namespace

extern "C" {

r2cc::abi::SeatTableV2 r2cc_seat_v2 = {NodeKey, Kept, Rails, BytesPerSecond, OffersCollNet, WatchFlows, MarkFlows, Report};
r2cc::abi::SeatTunerTableV3 r2cc_seat_tuner_v3 = {Watch, Mark, WatchAllReduce, Watched, SetWay};
void stub_own_node(int node) { own = node; }
void stub_keep(int permille) { kept = permille; }
int stub_by_collnet() { return by_collnet; }

}  // extern "C"
