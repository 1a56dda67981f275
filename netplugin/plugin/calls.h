// Implements NCCL's net table, for all its versions: one function per entry, in our own types. The versions differ only in the shapes of
// their arguments (tables.cc). Any thread may call them; calls for one communicator come from one thread at a time, as NCCL's do. No
// exception leaves these functions. A call that throws, usually for lack of memory, returns an error, and its flows have failed.
//
// NCCL's rules leave two decisions to a plugin. First, a receiver that closes while receives are outstanding makes the sender's next isend
// an error at once: NCCL closes so only in an abort, and the sender would wait forever. Second, a send that is larger than its receive is
// not clamped: the end that sees it first (for a large message the sender) fails its flow with a line, and the other end has its error when
// that closes.
#ifndef R2CC_NETPLUGIN_PLUGIN_CALLS_H_
#define R2CC_NETPLUGIN_PLUGIN_CALLS_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "netplugin/abi/nccl_types.h"

namespace r2cc::net {

constexpr char kNetName[] = "R2CC";

// One rail, as all versions of the properties describe it. The strings live as long as the process.
struct RailProperties {
  const char* name;
  const char* pci_path;  // null: none
  uint64_t guid;
  int speed_mbps;
  int memory_kinds;  // NCCL_PTR_*, or-ed
};

abi::Result CallInit(abi::Logger logger);
abi::Result CallDevices(int* count);
abi::Result CallDevice(int index, RailProperties* device);
abi::Result CallListen(int device, void* handle, void** listen_comm);
// What NCCL passes for one communicator, as it begins (v11) or with each of its connections (v10). Null: nothing.
abi::Result CallUse(const abi::NetCommConfig* config);
// Null comm and success: not yet, call again. `context`: the communicator's, also one that has ended; null if NCCL has none.
abi::Result CallConnect(const void* context, int device, const void* handle, void** send_comm);
abi::Result CallAccept(void* listen_comm, void** recv_comm);
// The comm is ignored: all comms of a process share its rails, and a handle is valid for any.
abi::Result CallRegister(void* data, size_t bytes, int type, void** mhandle);
abi::Result CallRegisterDmaBuf(void* data, size_t bytes, uint64_t offset, int descriptor, void** mhandle);
abi::Result CallDeregister(void* mhandle);
abi::Result CallSend(void* send_comm, void* data, size_t bytes, void* mhandle, void** request);
abi::Result CallReceive(void* recv_comm, int count, void** data, const size_t* capacities, void** mhandles, void** request);
abi::Result CallTest(void* request, int* done, int* sizes);
abi::Result CallCloseSend(void* send_comm);
abi::Result CallCloseReceive(void* recv_comm);
abi::Result CallCloseListen(void* listen_comm);
// `communicator`: its commId.
abi::Result CallOpenContext(void** context, uint64_t communicator, abi::Logger logger, const abi::NetCommConfig* config);
// Success also if the context has ended, or is none of ours.
abi::Result CallFinalize(void* context);

// For libr2cc-nccl.so: see abi/seat_v2.h. A node in a seat carries all its traffic on the rails that it has left, so its neighbours have to
// move their traffic with others to their other rails. Striping a flow over all rails does that.
void WatchForSeatFlows() noexcept;
int MarkSeatFlows(int dealt) noexcept;

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_PLUGIN_CALLS_H_
