// Implements NCCL's CollNet table for all its versions, as calls.h does for the net table: one function per entry. NCCL has one group for
// each rail with a head GPU, of one member a node, and all members of a group call the same operations in the same order.
//
// A set-up that cannot succeed returns an error, and NCCL then uses its rings. A later error is final. No function holds a lock while it
// waits for a member: members may be threads of one process.
#ifndef R2CC_NETPLUGIN_PLUGIN_COLL_CALLS_H_
#define R2CC_NETPLUGIN_PLUGIN_COLL_CALLS_H_

#include <cstddef>
#include <cstdint>

#include "netplugin/abi/nccl_types.h"

namespace r2cc::net {

// The rails, if the job has turned CollNet on; otherwise none. From 2.30 on, NCCL ends a job in which ranks have different numbers of
// CollNet devices. A node that has lost a NIC must be able to take part in a job that does not use CollNet.
abi::Result CallCollDevices(int* count);
// The handle is the net table's.
abi::Result CallCollListen(int device, void* handle, void** listen_comm);
// Returns when all members hear each other, or with an error, at the latest after R2CC_DEADLINE_MS. The group then owns the listener.
abi::Result CallCollConnect(void** handles, int members, int member, void* listen_comm, void** coll_comm);
// As CallRegister(), but only for host memory: with CollNet, CallDevice() offers no other kind.
abi::Result CallCollRegister(void* data, size_t bytes, int type, void** mhandle);
abi::Result CallReduceSupport(abi::DataType type, abi::RedOp op, int* supported);
// Null request and success: the most requests are outstanding; call again.
abi::Result CallAllReduce(void* coll_comm, void* send_data, void* recv_data, size_t count, abi::DataType type, abi::RedOp op,
                          void* send_mhandle, void* recv_mhandle, void** request);
abi::Result CallCollTest(void* request, int* done, int* size);
// When it returns nothing touches the memory of operations any more.
abi::Result CallCloseColl(void* coll_comm);
abi::Result CallCollCloseListen(void* listen_comm);

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_PLUGIN_COLL_CALLS_H_
