// The exported symbol by which libr2cc-nccl.so learns what this node has left, and names the communicator of a seat.
#include "netplugin/abi/seat_v1.h"

#include "netplugin/plugin/calls.h"
#include "netplugin/plugin/process.h"

namespace r2cc::net {
namespace {

uint64_t NodeKey() { return Process::Get().node_key(); }
int KeptPermille() { return Process::Get().is_running() ? static_cast<int>(Process::Get().engine().KeptPermille()) : -1; }
int Rails() { return Process::Get().is_running() ? static_cast<int>(Process::Get().rails().size()) : 0; }

}  // namespace
}  // namespace r2cc::net

extern "C" {

__attribute__((visibility("default"))) r2cc::abi::SeatTableV1 r2cc_seat_v1 = {r2cc::net::NodeKey, r2cc::net::KeptPermille, r2cc::net::Rails,
                                                                              r2cc::net::WatchForSeatFlows, r2cc::net::MarkSeatFlows};

}  // extern "C"
