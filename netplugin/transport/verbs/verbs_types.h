// Brings the types of base/core/verbs into the namespace of the verbs transport.
#ifndef R2CC_NETPLUGIN_TRANSPORT_VERBS_VERBS_TYPES_H_
#define R2CC_NETPLUGIN_TRANSPORT_VERBS_VERBS_TYPES_H_

#include "base/core/verbs/port_facts.h"
#include "base/core/verbs/verbs.h"

namespace r2cc::net::verbs {

using enum r2cc::verbs::Access;
using r2cc::verbs::AsyncEvent;
using r2cc::verbs::AsyncKind;
using r2cc::verbs::Completion;
using r2cc::verbs::CompletionChannelId;
using r2cc::verbs::CompletionKind;
using r2cc::verbs::CompletionQueueId;
using r2cc::verbs::ContextId;
using r2cc::verbs::DeviceInfo;
using r2cc::verbs::DeviceLimits;
using r2cc::verbs::DomainId;
using r2cc::verbs::Gid;
using r2cc::verbs::GidEntry;
using r2cc::verbs::GidType;
using r2cc::verbs::InterfaceFacts;
using r2cc::verbs::LinkLayer;
using r2cc::verbs::MemoryRegion;
using r2cc::verbs::MemoryRegionId;
using r2cc::verbs::Path;
using r2cc::verbs::PortFacts;
using r2cc::verbs::PortInfo;
using r2cc::verbs::PortOfInterface;
using r2cc::verbs::PortState;
using r2cc::verbs::QueuePairId;
using r2cc::verbs::QueuePairInfo;
using r2cc::verbs::QueuePairLimits;
using r2cc::verbs::QueuePairState;
using r2cc::verbs::ReadPortFacts;
using r2cc::verbs::ReadyToReceive;
using r2cc::verbs::ReadyToSend;
using r2cc::verbs::ReceiveRequest;
using r2cc::verbs::Segment;
using r2cc::verbs::SendKind;
using r2cc::verbs::SendRequest;
using r2cc::verbs::Status;
using r2cc::verbs::Verbs;

}  // namespace r2cc::net::verbs

#endif  // R2CC_NETPLUGIN_TRANSPORT_VERBS_VERBS_TYPES_H_
