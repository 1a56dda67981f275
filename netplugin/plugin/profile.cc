// The exported symbol by which libnccl-profiler-r2cc.so offers to name the operations that a stall held up.
#include "netplugin/abi/profile_v1.h"
#include "netplugin/plugin/process.h"

namespace r2cc::net {
namespace {

int Ask(abi::HeldOperationsV1 held) { return Process::Get().AskForHeld(held) ? 1 : 0; }

}  // namespace
}  // namespace r2cc::net

extern "C" {

__attribute__((visibility("default"))) r2cc::abi::ProfileTableV1 r2cc_profile_v1 = {r2cc::net::Ask};

}  // extern "C"
