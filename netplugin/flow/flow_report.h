// Carries a receiver's grants and acknowledgements of one flow to its sender. A report is a whole state, so reports may overtake each other
// and may be repeated. Pure.
#ifndef R2CC_NETPLUGIN_FLOW_FLOW_REPORT_H_
#define R2CC_NETPLUGIN_FLOW_FLOW_REPORT_H_

#include <cstdint>
#include <vector>

#include "netplugin/flow/types.h"

namespace r2cc::net {

struct FlowReport {
  FlowId flow = 0;
  MessageId placed_through = 0;      // all messages below are placed
  bool grants = false;               // `capacities` are set; otherwise the report only acknowledges
  std::vector<uint64_t> capacities;  // of all posted buffers, from `placed_through` on
  std::vector<BufferPlace> places;   // where they lie; empty: the sender needs no place
};

class FlowReportSink {
 public:
  virtual ~FlowReportSink() = default;
  // Sends the report, on the link `home` if that is up. False if no channel leads to the sender now.
  virtual bool Report(FlowReport report, LinkId home) = 0;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_FLOW_FLOW_REPORT_H_
