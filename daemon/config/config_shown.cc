#include "daemon/config/config_shown.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "google/protobuf/text_format.h"
#include "proto/config.pb.h"

namespace r2cc::daemon {
namespace {

void Show(const TlsSpec& tls, v1::TlsConfig* shown) {
  shown->set_certificate_file(tls.certificate_file);
  shown->set_key_file(tls.key_file);
  shown->set_ca_file(tls.ca_file);
}

void Show(const NicSpec& nic, v1::NicConfig* shown) {
  shown->set_name(nic.name);
  shown->set_interface(nic.interface);
  shown->set_address(nic.address);
  shown->set_rate_bits_per_s(nic.rate_bits_per_s);
  if (nic.port_guid != 0) shown->set_port_guid(absl::StrFormat("0x%016x", nic.port_guid));
  if (!nic.cable_node.empty()) shown->set_cable_to(absl::StrCat(nic.cable_node, "/", nic.cable_nic));
}

void Show(const GrantSpec& grant, v1::GrantConfig* shown) {
  if (grant.view) shown->add_roles(v1::VIEW);
  if (grant.operate) shown->add_roles(v1::OPERATE);
  if (grant.drill) shown->add_roles(v1::DRILL);
  for (const std::string& name : grant.users) shown->add_users(name);
  for (const std::string& name : grant.groups) shown->add_groups(name);
  shown->set_everyone(grant.everyone);
  for (const std::string& name : grant.on_nodes) shown->add_on_nodes(name);
  for (const std::string& name : grant.operators) shown->add_operators(name);
}

void ShowStore(const Config& config, v1::StoreConfig* shown) {
  shown->set_embedded_node(config.store_node);
  shown->set_prefix(config.store_prefix);
  if (!config.etcd.has_value()) return;
  for (const std::string& endpoint : config.etcd->endpoints) shown->add_etcd_endpoints(endpoint);
  if (config.etcd->tls.has_value()) Show(*config.etcd->tls, shown->mutable_etcd_tls());
}

}  // namespace

std::string SeverityName(Severity level) {
  switch (level) {
    case Severity::kDebug: return "debug";
    case Severity::kInfo: return "info";
    case Severity::kWarning: return "warning";
    case Severity::kError: return "error";
  }
  return "?";
}

std::string ShowConfig(const Config& config) {
  v1::DaemonConfig shown;
  shown.set_node(config.node);
  shown.set_listen(config.listen);
  for (const PeerSpec& peer : config.peers) {
    v1::PeerConfig* one = shown.add_peers();
    one->set_node(peer.node);
    one->set_address(peer.address);
  }
  for (const NicSpec& nic : config.nics) Show(nic, shown.add_nics());
  ShowStore(config, shown.mutable_store());
  if (config.tls.has_value()) Show(*config.tls, shown.mutable_tls());
  shown.set_nice(config.nice);
  shown.set_realtime_priority(static_cast<uint32_t>(config.realtime_priority));
  shown.set_insecure(config.insecure);
  for (const GrantSpec& grant : config.grants) Show(grant, shown.add_grants());
  shown.mutable_drills()->set_allow(config.drills);
  for (const uint32_t uid : config.attach.uids) shown.mutable_attach()->add_uids(uid);
  for (const uint32_t gid : config.attach.gids) shown.mutable_attach()->add_gids(gid);
  shown.mutable_limits()->set_nics_per_node(static_cast<uint32_t>(config.nics_per_node));
  shown.mutable_limits()->set_nodes(static_cast<uint32_t>(config.nodes_max));
  shown.mutable_limits()->set_forget_nodes_after_h(static_cast<uint32_t>(config.forget_after / kNanosPerSecond / 3600));
  shown.set_log_level(SeverityName(config.log_level.value_or(Severity::kInfo)));
  shown.mutable_http()->set_listen(config.http.listen);
  shown.mutable_http()->set_off(config.http.listen.empty());
  for (const std::string& host : config.http.hosts) shown.mutable_http()->add_hosts(host);
  shown.mutable_rdma()->set_traffic_class(config.rdma.traffic_class);
  shown.mutable_rdma()->set_service_level(config.rdma.service_level);
  shown.mutable_rdma()->set_pkey_index(config.rdma.pkey_index);
  std::string text;
  google::protobuf::TextFormat::PrintToString(shown, &text);
  return text;
}

}  // namespace r2cc::daemon
