#include "client/health/health_reporter.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/ready.h"

namespace r2cc::client {
namespace {

constexpr uint32_t kVersion = 1;
// "" is no name of a NIC.
constexpr char kNode[] = "";

// A drill, an operator's setting and a port without a cable are no faults. Nothing: it is not decided.
std::optional<bool> IsIll(const v1::NicView& nic) {
  if (nic.state() == v1::PROVING || nic.state() == v1::SUSPECT) return std::nullopt;
  return (nic.state() == v1::FAILED && !nic.drill_failed()) || nic.state() == v1::DEGRADED;
}

}  // namespace

datamodels::HealthEvent HealthReporter::EventOf(const std::string& nic, const Check& check, const std::string& node,
                                                int64_t now_realtime_ns) const {
  const bool of_node = nic == kNode;
  datamodels::HealthEvent event;
  event.set_version(kVersion);
  event.set_agent(kAgent);
  event.set_componentclass("NIC");
  event.set_checkname(of_node ? kNodeCheck : kNicCheck);
  event.set_ishealthy(!check.ill);
  event.set_isfatal(of_node && check.ill);
  event.set_message(check.ill ? check.reason : of_node ? "the node has a NIC that carries jobs" : absl::StrCat(nic, " carries jobs"));
  event.set_recommendedaction(of_node && check.ill ? datamodels::CONTACT_SUPPORT : datamodels::NONE);
  if (check.ill) event.add_errorcode(of_node ? "R2CC_NO_RAIL" : "R2CC_NIC");
  datamodels::Entity& entity = *event.add_entitiesimpacted();
  entity.set_entitytype(of_node ? "NODE" : "NIC");
  entity.set_entityvalue(check.entity);
  if (!of_node) (*event.mutable_metadata())["nic"] = nic;
  event.mutable_generatedtimestamp()->set_seconds(now_realtime_ns / 1'000'000'000);
  event.mutable_generatedtimestamp()->set_nanos(static_cast<int32_t>(now_realtime_ns % 1'000'000'000));
  event.set_nodename(node);
  event.set_processingstrategy(of_node ? datamodels::EXECUTE_REMEDIATION : datamodels::STORE_ONLY);
  return event;
}

datamodels::HealthEvents HealthReporter::Look(const v1::NodeView& own, int64_t now_realtime_ns) {
  datamodels::HealthEvents events;
  events.set_version(kVersion);
  offered_.clear();
  const std::string& node = node_.empty() ? own.node() : node_;
  const auto offer = [&](const std::string& name, std::optional<Check> check) {
    const auto known = delivered_.find(name);
    const bool known_before = known != delivered_.end();
    if (!check.has_value()) {
      if (known_before && known->second.ill) *events.add_events() = EventOf(name, {false, "", known->second.entity}, node, now_realtime_ns);
    } else if (!known_before || known->second.ill != check->ill || known->second.entity != check->entity) {
      // The end of a fault names what its begin named.
      if (known_before && known->second.ill && known->second.entity != check->entity)
        *events.add_events() = EventOf(name, {false, "", known->second.entity}, node, now_realtime_ns);
      *events.add_events() = EventOf(name, *check, node, now_realtime_ns);
    } else {
      return;
    }
    offered_[name] = std::move(check);
  };
  bool carries = false, decided = own.nics_size() > 0;
  std::map<std::string, bool> there;
  std::string reasons;
  for (const v1::NicView& nic : own.nics()) {
    if (nic.name().empty()) continue;
    there[nic.name()] = true;
    carries = carries || CarriesJobs(nic);
    decided = decided && nic.state() != v1::PROVING;
    const std::string reason =
        absl::StrCat(nic.name(), " ", v1::NicState_Name(nic.state()), nic.reason().empty() ? "" : ": ", nic.reason());
    if (!CarriesJobs(nic)) absl::StrAppend(&reasons, reasons.empty() ? "" : "; ", reason);
    const std::optional<bool> ill = IsIll(nic);
    if (ill.has_value()) offer(nic.name(), Check{*ill, *ill ? reason : "", nic.pci().empty() ? nic.name() : nic.pci()});
  }
  for (const auto& [name, check] : std::map<std::string, Check>(delivered_))
    if (name != kNode && !there.contains(name)) offer(name, std::nullopt);
  if (carries || decided) offer(kNode, Check{!carries, carries ? "" : absl::StrCat("no NIC carries jobs: ", reasons), node});
  return events;
}

void HealthReporter::Delivered() {
  for (auto& [name, check] : std::exchange(offered_, {}))
    if (check.has_value())
      delivered_[name] = *std::move(check);
    else
      delivered_.erase(name);
}

}  // namespace r2cc::client
