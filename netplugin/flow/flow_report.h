// What the receiver of a flow tells its sender: whole states, so that reports may overtake each other and be told again. Pure.
#ifndef R2CC_NETPLUGIN_FLOW_FLOW_REPORT_H_
#define R2CC_NETPLUGIN_FLOW_FLOW_REPORT_H_

#include <cstdint>
#include <vector>

#include "netplugin/flow/types.h"

namespace r2cc::net {

struct FlowReport {
  FlowId flow = 0;
  MessageId placed_through = 0;      // all messages below are here
  bool grants = false;               // `capacities` are set; else it is an acknowledgement alone
  std::vector<uint64_t> capacities;  // of all buffers that are posted, from `placed_through` on
  std::vector<Place> places;         // where they lie; none: nowhere that the sender has to know
};

class FlowReportSink {
 public:
  virtual ~FlowReportSink() = default;
  // Sends it, on the link `home` if that is up. False if there is no way to the sender now.
  virtual bool Report(FlowReport report, LinkId home) = 0;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_FLOW_FLOW_REPORT_H_
