// Replies of the daemon as text for people. Pure.
#ifndef R2CC_CLIENT_FORMAT_FORMAT_H_
#define R2CC_CLIENT_FORMAT_FORMAT_H_

#include <cstddef>
#include <string>
#include <vector>

#include "client/core/style.h"
#include "proto/r2cc.pb.h"

namespace r2cc::client {

// Widths of an event's columns. Events arrive one by one: columns that one needed stay so wide.
struct EventColumns {
  void Grow(const v1::Event& event);

  size_t where = 16;
  size_t kind = 14;
};

// Each ends with a newline. `epochs`: also those of view and plan, for a person who compares daemons.
std::string FormatStatus(const v1::StatusReply& reply, const Style& style, bool epochs = true);
// LIMIT is the operator's share of a full NIC (`nic weight`), WEIGHT in a plan what comes of it and the state. `only_bad`: others were not
// asked for.
std::string FormatNics(const v1::ListNicsReply& reply, const Style& style, bool only_bad = false);
std::string FormatNicAction(const v1::NicActionRequest& request, const v1::NicActionReply& reply, const Style& style);
std::string FormatForgetNode(const v1::ForgetNodeRequest& request, const v1::ForgetNodeReply& reply);
// One line.
std::string FormatEvent(const v1::Event& event, const Style& style, const EventColumns& columns = {});
// The facts of /sys about each; a missing one with its reason, once below.
std::string FormatWideNics(const std::vector<v1::ExplainNicReply>& nics, const Style& style);
std::string FormatJobs(const v1::ListJobsReply& reply, const Style& style);
std::string FormatEndedJobs(const v1::ListJobsReply& reply, const Style& style);
std::string FormatPlan(const v1::Plan& plan, const Style& style);
std::string FormatExplainNic(const v1::ExplainNicReply& reply, const Style& style);
std::string FormatPaths(const v1::ProbePathsReply& reply, const Style& style);
std::string FormatConfig(const v1::ConfigReply& reply, const Style& style);
std::string FormatReload(const v1::ReloadReply& reply, const Style& style);
std::string FormatDisagreement(const v1::DisagreementReply& reply);
std::string FormatExplainPlan(const v1::ExplainPlanReply& reply, const Style& style);

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_FORMAT_FORMAT_H_
