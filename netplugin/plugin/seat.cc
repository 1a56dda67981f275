// The exported symbol by which libr2cc-nccl.so learns what this node has left, and names the communicator that it made.
#include "netplugin/abi/seat_v2.h"
#include "netplugin/plugin/calls.h"
#include "netplugin/plugin/process.h"
#include "netplugin/transport/record.h"

namespace r2cc::net {
namespace {

uint64_t NodeKey() { return Process::Get().node_key(); }
int KeptPermille() { return Process::Get().is_running() ? static_cast<int>(Process::Get().engine().KeptPermille()) : -1; }
int Rails() { return Process::Get().is_running() ? static_cast<int>(Process::Get().rails().size()) : 0; }
uint64_t BytesPerSecond() { return Process::Get().is_running() ? Process::Get().engine().WholeBytesPerSecond() : 0; }
int OffersCollNet() { return Process::Get().is_running() && Process::Get().collnet() ? 1 : 0; }
void Report(const abi::SeatReport* report) {
  Process& process = Process::Get();
  if (report == nullptr || !process.is_running()) return;
  process.engine().Report(WayRecord(process.Now(), report->communicator, report->call, report->bytes_min,
                                    static_cast<uint32_t>(report->way), report->expected_permille));
}

}  // namespace
}  // namespace r2cc::net

extern "C" {

__attribute__((visibility("default"))) r2cc::abi::SeatTableV2 r2cc_seat_v2 = {
    r2cc::net::NodeKey,       r2cc::net::KeptPermille,      r2cc::net::Rails,         r2cc::net::BytesPerSecond,
    r2cc::net::OffersCollNet, r2cc::net::WatchForSeatFlows, r2cc::net::MarkSeatFlows, r2cc::net::Report};

}  // extern "C"
