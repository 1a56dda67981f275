// Computes the events about this node's NICs for NVSentinel. Pure.
//
// A fault of a NIC that jobs survive is stored and acts on nothing: not fatal, STORE_ONLY. Only a node without any NIC that carries jobs is
// fatal. Each event about a fault is followed by one about its end, with the same entities: the reporter compares what it has delivered
// with the present state, so an event that could not be delivered is made again. After a start it reports every NIC, which ends what a
// former reporter left open.
#ifndef R2CC_CLIENT_HEALTH_HEALTH_REPORTER_H_
#define R2CC_CLIENT_HEALTH_HEALTH_REPORTER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "proto/nvsentinel.pb.h"
#include "proto/r2cc.pb.h"

namespace r2cc::client {

class HealthReporter {
 public:
  static constexpr char kAgent[] = "r2cc";
  static constexpr char kNicCheck[] = "R2CCNic";
  static constexpr char kNodeCheck[] = "R2CCNoRail";

  // `node`: as Kubernetes calls it; empty: as r2ccd does.
  explicit HealthReporter(std::string node) : node_(std::move(node)) {}

  // The events for the present state in `own`, the view that r2ccd has of this node. Without events there is nothing new.
  datamodels::HealthEvents Look(const v1::NodeView& own, int64_t now_realtime_ns);
  // The last Look()'s events were taken.
  void Delivered();

 private:
  struct Check {
    bool ill = false;
    std::string reason;
    std::string entity;  // the PCI address of a NIC, or its name; of the node its name
    friend bool operator==(const Check&, const Check&) = default;
  };
  datamodels::HealthEvent EventOf(const std::string& nic, const Check& check, const std::string& node, int64_t now_realtime_ns) const;

  const std::string node_;
  // By NIC; "" is the node.
  std::map<std::string, Check> delivered_;
  std::map<std::string, std::optional<Check>> offered_;  // nothing: the NIC is gone
};

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_HEALTH_HEALTH_REPORTER_H_
