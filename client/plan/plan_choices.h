// Computes what `r2ccctl plan why` adds to the reasons of weights: how an AllReduce runs with the NICs that are left. Asks no daemon.
#ifndef R2CC_CLIENT_PLAN_PLAN_CHOICES_H_
#define R2CC_CLIENT_PLAN_PLAN_CHOICES_H_

#include <string>

#include "client/core/style.h"
#include "proto/r2cc.pb.h"

namespace r2cc::client {

// Balance, the schedules of CollNet and the seat in NCCL's tree, each by its time over the ring without a fault. Empty where nothing is
// lost, and with fewer than two nodes. A NIC counts by its weight; one that carries nothing counts as a full one that is lost.
std::string FormatAllReduce(const v1::ExplainPlanReply& reply, const Style& style);

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_PLAN_PLAN_CHOICES_H_
