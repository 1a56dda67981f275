#include "daemon/wiring_parts.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "daemon/nics/nic_inventory.h"
#include "daemon/nics/port_claims.h"

namespace r2cc::daemon {
namespace {

std::map<std::string, health::NicKey> Cables(const Config& config) {
  std::map<std::string, health::NicKey> cables;
  for (const NicSpec& nic : config.nics)
    if (!nic.cable_node.empty()) cables[nic.name] = {nic.cable_node, nic.cable_nic};
  return cables;
}

}  // namespace

void Alarms::Set(const std::string& about, const std::string& alarm) {
  if (alarm.empty())
    named.erase(about);
  else
    named[about] = alarm;
}

std::function<void(const absl::Status&)> Alarms::OnTurnOf(EventReporter* reporter, const std::string& file, const std::string& what) {
  return [this, reporter, file, what](const absl::Status& status) {
    if (status.ok()) {
      named.erase(file);
      return reporter->Report("state", absl::StrCat(file, " can be written again: ", what, " is kept"));
    }
    const std::string alarm = absl::StrCat(what, " will be lost at a restart: ", status.message());
    named[file] = alarm;
    LogError(alarm);
    reporter->Report("state", alarm);
  };
}

KeptParts::KeptParts(const World& world, const Config& config, EventReporter* reporter, Alarms* alarms)
    : settings(world.files, world.disk, world.core, config.state_file(),
               alarms->OnTurnOf(reporter, config.state_file(), "operators' settings")),
      audit(world.files, world.disk, world.core, config.audit_file(), reporter,
            alarms->OnTurnOf(reporter, config.audit_file(), "the audit")),
      history(world.files, world.disk, world.core, config.state_dir + "/events.log",
              alarms->OnTurnOf(reporter, config.state_dir + "/events.log", "the history of events")),
      jobs(world.files, world.disk, world.core, config.state_dir + "/jobs",
           alarms->OnTurnOf(reporter, config.state_dir + "/jobs", "what jobs met")),
      loaded(settings.Load(&trouble)),
      saved(loaded.ok() ? *loaded : SavedState()),
      operator_settings(Resume(saved, world.BootNow(), &ended_drills)),
      first_start(saved.boot_id.empty()),
      same_boot(saved.boot_id == world.boot_id) {}

ConfiguredParts::ConfiguredParts(const World& world, const Config& config, EventReporter* reporter, Alarms* alarms, Audit* audit,
                                 Outputs outputs)
    : missing(world.addresses, &alarms->named),
      certificates({world.core, world.disk, world.config, std::move(outputs.now_s), std::move(outputs.set_certificate_alarm)}, config),
      roles(world.roles),
      reload({world.core, world.disk, world.config, reporter, audit, std::move(outputs.apply)}, config) {}

ProbeParts::ProbeParts(const World& of_node, const Config& config, const health::OperatorSettings& settings,
                       const std::set<std::string>& cabled, const health::ClusterView* view, EventReporter* reporter, Outputs on)
    : outputs(std::move(on)),
      world(of_node),
      local(config.node, IdentitiesOf(config.nics, world.addresses->ByInterface()), settings, cabled,
            {world.core, world.links, world.sysfs, world.addresses, world.evidence_max}, reporter,
            {.on_state = outputs.on_state,
             .on_suspect = [this](const std::string& nic) { rails.Suspect(nic); },
             .on_drill_end = outputs.on_drill_end,
             .on_port_facts =
                 [this](const std::string& nic, const health::SysfsPortFacts& facts) {
                   fabric.OnFacts(nic, facts);
                   rdma.OnFacts(nic, facts);
                   outputs.on_sample();
                 }}),
      fabric(config.node, world.fabric, world.core,
             [view, node = config.node](uint64_t port_guid) { return NicOfPort(*view, node, port_guid); },
             {.evidence = [this](const health::Evidence& evidence) { local.Handle(evidence); },
              .report = [reporter](const health::NicKey& nic, const std::string& text) { reporter->ReportFabric(nic, text); }}),
      rdma(config.node, IdentitiesOf(config.nics, world.addresses->ByInterface()), world.rdma, world.core,
           {.evidence = [this](const health::Evidence& evidence) { local.Handle(evidence); },
            .look = [this](const std::string& nic) { local.Look(nic); },
            .on_port = [this](const std::string& nic,
                              const std::optional<health::RdmaPortName>& port) { rdma_paths.SetPort(nic, port, world.core->Now()); }}),
      rdma_paths(
          config.node, world.rdma_pairs, view, world.incarnation,
          {.on_fault = [this](const std::string& nic, const std::string& why) { rdma.SetFault(nic, why); }, .on_report = outputs.on_state}),
      rails(config.node, IdentitiesOf(config.nics, world.addresses->ByInterface()), world.new_probe_secret, Cables(config), view,
            {world.core, world.datagrams},
            {.evidence = [this](const health::Evidence& evidence) { local.Handle(evidence); },
             .on_state = outputs.on_state,
             .on_ping = [this](const health::RailPing& ping) { rdma_paths.OnPing(ping, world.core->Now()); },
             .on_targets = [this](const std::vector<health::RailTarget>& targets) { rdma_paths.SetTargets(targets, world.core->Now()); }}) {
}

void ProbeParts::Add(const health::NicIdentity& nic, const health::OperatorSetting& setting, bool was_cabled) {
  rails.Add(nic);
  rdma.Add(nic);
  local.Add(nic, setting, was_cabled);
}

void ProbeParts::Remove(const std::string& nic) {
  rails.Remove(nic);
  local.Remove(nic);
  fabric.Remove(nic);
  rdma.Remove(nic);
  rdma_paths.SetPort(nic, std::nullopt, world.core->Now());
}

void ProbeParts::SetAddress(const std::string& nic, const std::string& address) {
  rails.SetAddress(nic, address);
  local.SetAddress(nic, address);
}

ServiceParts::ServiceParts(const Needs& needs)
    : operators({.executor = needs.world->core,
                 .local = &needs.probes->local,
                 .view = needs.view,
                 .peer_set = needs.peer_set,
                 .peers = needs.world->peers,
                 .keeper = &needs.kept->settings,
                 .audit = &needs.kept->audit,
                 .reporter = needs.reporter,
                 .jobs_on = [jobs = needs.jobs](const std::string& nic, const std::string& job) { return jobs->JobsOn(nic, job); },
                 .boot_now = [world = needs.world] { return world->BootNow(); }},
                needs.kept->operator_settings, needs.kept->saved.cabled),
      forget({.executor = needs.world->core,
              .view = needs.view,
              .peer_set = needs.peer_set,
              .peers = needs.world->peers,
              .audit = &needs.kept->audit,
              .reporter = needs.reporter,
              .unknown_node = [this](const std::string& node) { return operators.UnknownNode(node); }}),
      report({.executor = needs.world->core,
              .registry = &needs.jobs->registry(),
              .peer_set = needs.peer_set,
              .peers = needs.world->peers,
              .reporter = needs.reporter,
              .view = needs.view}),
      disagreement(&needs.kept->audit, needs.reporter),
      explain({.local = &needs.probes->local,
               .rails = &needs.probes->rails,
               .view = needs.view,
               .peer_set = needs.peer_set,
               .operators = &operators,
               .publisher = needs.publisher,
               .events = needs.events,
               .reporter = needs.reporter,
               .peers = needs.world->peers,
               .traffic = [jobs = needs.jobs](const std::string& nic, const std::string& job) { return jobs->TrafficOn(nic, job); },
               .inventory =
                   [probes = needs.probes](const health::NicIdentity& nic) {
                     const auto port = probes->rdma_paths.PortOf(nic.name);
                     return InventoryOf(*probes->world.sysfs, nic.interface, port.has_value() ? port->device : "", nic.pci);
                   }}),
      metrics({.view = needs.view,
               .reporter = needs.reporter,
               .peer_set = needs.peer_set,
               .publisher = needs.publisher,
               .jobs = needs.jobs,
               .rails = &needs.probes->rails,
               .rdma_paths = &needs.probes->rdma_paths,
               .reload = &needs.configured->reload,
               .certificates = &needs.configured->certificates,
               .refusals = needs.world->refusals,
               .turns = needs.world->turns,
               .insecure = needs.config->insecure,
               .state_alarms = &needs.alarms->named,
               .rail_alarms = &needs.alarms->rails,
               .report = &report}),
      status({.node = needs.config->node,
              .core = needs.world->core,
              .view = needs.view,
              .reporter = needs.reporter,
              .peer_set = needs.peer_set,
              .publisher = needs.publisher,
              .jobs = needs.jobs,
              .operators = &operators,
              .report = &report,
              .reload = &needs.configured->reload,
              .peer_address = needs.peer_address,
              .refusals = needs.world->refusals,
              .insecure = needs.config->insecure,
              .state_alarms = &needs.alarms->named,
              .rail_alarms = &needs.alarms->rails}),
      control({.node = needs.config->node,
               .core = needs.world->core,
               .alive = needs.alive,
               .allow = [node = needs.config->node, roles = &needs.configured->roles](
                            const Caller& caller, Role role) { return roles->Get()->Check(caller, role, node); },
               .on_refused =
                   [refusals = needs.world->refusals](const Caller& caller, const std::string& what, const absl::Status& why) {
                     if (refusals == nullptr) return;
                     const bool here = caller.kind == Caller::Kind::kLocal && !caller.forwarded();
                     refusals->Count(here ? "control" : "peers", "role", Describe(caller), absl::StrCat(what, ": ", why.message()));
                   }}),
      backend({.core = needs.world->core,
               .control = &control,
               .peer_set = needs.peer_set,
               .events = needs.events,
               .broadcaster = needs.broadcaster},
              needs.alive) {
  SetControlRows({.status = &status,
                  .operators = &operators,
                  .forget = &forget,
                  .report = &report,
                  .explain = &explain,
                  .metrics = &metrics,
                  .reload = &needs.configured->reload,
                  .disagreement = &disagreement},
                 &control);
}

}  // namespace r2cc::daemon
