#include "daemon/config/config.h"

#include <arpa/inet.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/names.h"
#include "daemon/config/config_text.h"
#include "health/io/sysfs_port_facts.h"
#include "proto/config.pb.h"

namespace r2cc::daemon {
namespace {

constexpr size_t kPeersMax = 1024;
constexpr size_t kEtcdEndpointsMax = 16;
constexpr size_t kStorePrefixBytesMax = 128;
constexpr char kNeedsTls[] =
    " needs tls, which authenticates other daemons: tls { directory: ... } (`r2ccctl certs` makes it); or insecure: true, with which "
    "everybody who can reach the port may command this node";

absl::Status ReadPeers(const v1::DaemonConfig& file, const ConfigPlaces& places, Config* config) {
  if (static_cast<size_t>(file.peers_size()) > kPeersMax)
    return places.Wrong(places.Line(file, "peers", static_cast<int>(kPeersMax)), absl::StrCat("more than ", kPeersMax, " peers"));
  std::set<std::string> nodes;
  std::map<std::string, std::string> addresses;
  for (int i = 0; i < file.peers_size(); ++i) {
    const auto& peer = file.peers(i);
    const int line = places.Line(file, "peers", i);
    if (!IsNodeName(peer.node()))
      return places.Wrong(line, absl::StrCat("peer node '", peer.node(), "' is not a node name (", NameRule(kNodeNameBytesMax), ")"));
    auto address = ParseHostPort(peer.address(), /*allow_port_zero=*/false);
    if (!address.ok()) return places.Wrong(line, absl::StrCat("peer ", peer.node(), ": ", address.status().message()));
    if (peer.node() == config->node) continue;  // the same file may serve all nodes
    if (!nodes.insert(peer.node()).second) return places.Wrong(line, absl::StrCat("peer ", peer.node(), " is listed twice"));
    auto [other, fresh] = addresses.emplace(peer.address(), peer.node());
    if (!fresh)
      return places.Wrong(line, absl::StrCat("peers ", other->second, " and ", peer.node(), " have one address, ", peer.address()));
    config->peers.push_back({peer.node(), peer.address()});
  }
  return absl::OkStatus();
}

absl::Status ReadLimits(const v1::DaemonConfig& file, const ConfigPlaces& places, Config* config) {
  if (const uint32_t nics = file.limits().nics_per_node(); nics != 0) {
    if (nics > kNicsPerNodeMax)
      return places.Wrong(places.Line(file, "limits"), absl::StrCat("limits: nics_per_node is 1 to ", kNicsPerNodeMax, ", not ", nics));
    config->nics_per_node = nics;
  }
  if (const uint32_t nodes = file.limits().nodes(); nodes != 0) {
    if (nodes > kNodesMost)
      return places.Wrong(places.Line(file, "limits"), absl::StrCat("limits: nodes is 1 to ", kNodesMost, ", not ", nodes));
    config->nodes_max = nodes;
  }
  if (const uint32_t hours = file.limits().forget_nodes_after_h(); hours != 0) {
    if (hours > kForgetAfterHoursMost)
      return places.Wrong(places.Line(file, "limits"),
                          absl::StrCat("limits: forget_nodes_after_h is 1 to ", kForgetAfterHoursMost, ", not ", hours));
    config->forget_after = hours * 3600 * kNanosPerSecond;
  }
  return absl::OkStatus();
}

absl::Status ReadNics(const v1::DaemonConfig& file, const ConfigPlaces& places, Config* config) {
  if (static_cast<size_t>(file.nics_size()) > config->nics_per_node)
    return places.Wrong(places.Line(file, "nics", static_cast<int>(config->nics_per_node)),
                        absl::StrCat("more than ", config->nics_per_node, " NICs; set limits { nics_per_node }, on all nodes"));
  std::set<std::string> names;
  std::map<std::string, std::string> interfaces;
  std::map<std::string, std::string> addresses;
  for (int i = 0; i < file.nics_size(); ++i) {
    const auto& nic = file.nics(i);
    const int line = places.Line(file, "nics", i);
    if (nic.interface().find_first_of("*?") != std::string::npos) {
      if (!nic.name().empty() || !nic.address().empty() || !nic.port_guid().empty() || !nic.cable_to().empty())
        return places.Wrong(line, absl::StrCat("nics { interface: '", nic.interface(),
                                               "' } names NICs by their interfaces: it has no name, address, port_guid or cable_to"));
      config->nic_patterns.push_back({{"", "", "", nic.rate_bits_per_s(), line}, nic.interface(), std::nullopt});
      continue;
    }
    if (!IsNicName(nic.name()))
      return places.Wrong(line, absl::StrCat("NIC name '", nic.name(), "' is not one (", NameRule(kNicNameBytesMax), ")"));
    if (!names.insert(nic.name()).second) return places.Wrong(line, absl::StrCat("NIC ", nic.name(), " is listed twice"));
    NicSpec spec{nic.name(), nic.interface(), "", nic.rate_bits_per_s(), line, health::ParseGuid(nic.port_guid())};
    if (!nic.port_guid().empty() && spec.port_guid == 0)
      return places.Wrong(line, absl::StrCat("NIC ", nic.name(), ": port_guid '", nic.port_guid(), "' is not like 0x0002c9030000abcd"));
    if (nic.address().find('/') != std::string::npos) {
      auto network = Network::Parse(nic.address());
      if (!network.ok()) return places.Wrong(line, absl::StrCat("NIC ", nic.name(), ": ", network.status().message()));
      if (!nic.interface().empty() || !nic.cable_to().empty() || !nic.port_guid().empty())
        return places.Wrong(line,
                            absl::StrCat("NIC ", nic.name(), ": with a network, ", nic.address(), ", only a name and a rate are possible"));
      config->nic_patterns.push_back({spec, "", *std::move(network)});
      continue;
    }
    if (!nic.address().empty()) {
      spec.address = CanonicalAddress(nic.address());
      if (spec.address.empty())
        return places.Wrong(line, absl::StrCat("NIC ", nic.name(), ": '", nic.address(), "' is not a numeric IP address"));
      auto [other, fresh] = addresses.emplace(spec.address, nic.name());
      if (!fresh) return places.Wrong(line, absl::StrCat("NICs ", other->second, " and ", nic.name(), " have one address, ", spec.address));
    } else if (spec.interface.empty() && spec.port_guid == 0) {
      spec.interface = nic.name();
    }
    if (!spec.interface.empty()) {
      auto [other, fresh] = interfaces.emplace(spec.interface, nic.name());
      if (!fresh)
        return places.Wrong(line, absl::StrCat("NICs ", other->second, " and ", nic.name(), " have one interface, ", spec.interface));
    }
    if (!nic.cable_to().empty()) {
      const size_t slash = nic.cable_to().find('/');
      spec.cable_node = nic.cable_to().substr(0, slash);
      spec.cable_nic = slash == std::string::npos ? "" : nic.cable_to().substr(slash + 1);
      if (!IsNodeName(spec.cable_node) || !IsNicName(spec.cable_nic) || spec.cable_node == config->node)
        return places.Wrong(line, absl::StrCat("NIC ", nic.name(), ": cable_to '", nic.cable_to(), "' is not a NODE/NIC of another node"));
    }
    config->nics.push_back(std::move(spec));
  }
  return absl::OkStatus();
}

absl::Status ReadTls(const v1::TlsConfig& tls, const std::string& name, const std::string& node, int line, const ConfigPlaces& places,
                     std::optional<TlsSpec>* spec) {
  const auto path = [&node](const std::string& text) { return absl::StrReplaceAll(text, {{"{node}", node}}); };
  const bool files = !tls.certificate_file().empty() || !tls.key_file().empty() || !tls.ca_file().empty();
  if (!tls.directory().empty()) {
    if (files) return places.Wrong(line, name + " is either a directory or three files, not both");
    const std::string directory = path(tls.directory());
    *spec = TlsSpec{directory + "/node.crt", directory + "/node.key", directory + "/ca.crt"};
    return absl::OkStatus();
  }
  if (tls.certificate_file().empty() || tls.key_file().empty() || tls.ca_file().empty())
    return places.Wrong(line, name + " needs a directory, or certificate_file, key_file and ca_file");
  *spec = TlsSpec{path(tls.certificate_file()), path(tls.key_file()), path(tls.ca_file())};
  return absl::OkStatus();
}

absl::Status ReadEtcd(const v1::StoreConfig& store, int line, const ConfigPlaces& places, Config* config) {
  if (!store.embedded_node().empty()) return places.Wrong(line, "store is either embedded_node or etcd_endpoints, not both");
  EtcdSpec etcd;
  for (const std::string& endpoint : store.etcd_endpoints()) {
    if (const auto address = ParseHostPort(endpoint, /*allow_port_zero=*/false); !address.ok())
      return places.Wrong(line, absl::StrCat("store.etcd_endpoints: ", address.status().message()));
    etcd.endpoints.push_back(endpoint);
  }
  if (etcd.endpoints.size() > kEtcdEndpointsMax)
    return places.Wrong(line, absl::StrCat("more than ", kEtcdEndpointsMax, " etcd_endpoints"));
  if (store.has_etcd_tls())
    if (auto status = ReadTls(store.etcd_tls(), "store.etcd_tls", config->node, line, places, &etcd.tls); !status.ok()) return status;
  config->etcd = std::move(etcd);
  return absl::OkStatus();
}

absl::Status ReadStore(const v1::DaemonConfig& file, const ConfigPlaces& places, Config* config) {
  if (const std::string& prefix = file.store().prefix(); !prefix.empty()) {
    if (prefix.front() != '/' || prefix.back() != '/' || prefix.size() > kStorePrefixBytesMax)
      return places.Wrong(places.Line(file, "store"),
                          absl::StrCat("store.prefix '", prefix, "' is not like /r2cc/: it begins and ends with a slash"));
    config->store_prefix = prefix;
  }
  if (file.store().etcd_endpoints_size() > 0) return ReadEtcd(file.store(), places.Line(file, "store"), places, config);
  if (file.store().has_etcd_tls()) return places.Wrong(places.Line(file, "store"), "store.etcd_tls without etcd_endpoints");
  const std::string& node = file.store().embedded_node();
  if (node.empty()) return absl::OkStatus();
  const bool known = node == config->node ||
                     std::any_of(config->peers.begin(), config->peers.end(), [&](const PeerSpec& peer) { return peer.node == node; });
  if (!known)
    return places.Wrong(places.Line(file, "store"),
                        absl::StrCat("store.embedded_node '", node, "' is neither this node (", config->node, ") nor a peer"));
  config->store_node = node;
  return absl::OkStatus();
}

// The callers that may speak with this daemon, and the addresses at which it listens.
absl::Status ReadTrust(const v1::DaemonConfig& file, const ConfigPlaces& places, Config* config) {
  config->insecure = file.insecure();
  config->drills = file.drills().allow();
  const bool open = config->tls.has_value() || config->insecure;
  config->listen = !file.listen().empty() ? file.listen() : open ? kDefaultListen : kLoopbackListen;
  config->listen_by_default = file.listen().empty() && open;
  const int listen_line = places.Line(file, "listen");
  config->listen_line = listen_line;
  if (const size_t colon = config->listen.rfind(':'); config->listen.find('/') < colon && colon != std::string::npos) {
    std::string_view text = std::string_view(config->listen).substr(0, colon);
    if (text.front() == '[' && text.back() == ']') text = text.substr(1, text.size() - 2);
    auto network = Network::Parse(text);
    if (!network.ok()) return places.Wrong(listen_line, absl::StrCat("listen: ", network.status().message()));
    if (!open) return places.Wrong(listen_line, absl::StrCat("listen: ", network->text(), kNeedsTls));
    config->listen_network = *std::move(network);
    config->listen = absl::StrCat("127.0.0.1", config->listen.substr(colon));
  }
  const auto listen = ParseHostPort(config->listen, /*allow_port_zero=*/true);
  if (!listen.ok()) return places.Wrong(listen_line, absl::StrCat("listen: ", listen.status().message()));
  if (!open && !IsLoopback(listen->host))
    return places.Wrong(listen_line, absl::StrCat("listen: ", listen->host, " is not loopback", kNeedsTls));
  if (!open && !config->peers.empty()) return places.Wrong(places.Line(file, "peers", 0), absl::StrCat("peers", kNeedsTls));
  if (!open && (config->etcd.has_value() || !config->store_node.empty()))
    return places.Wrong(places.Line(file, "store"), absl::StrCat("a store", kNeedsTls));
  for (int i = 0; i < file.grants_size(); ++i) {
    const auto& grant = file.grants(i);
    GrantSpec spec;
    spec.line = places.Line(file, "grants", i);
    if (grant.roles().empty()) return places.Wrong(spec.line, "grants gives no roles: VIEW, OPERATE, DRILL");
    for (const int role : grant.roles()) {
      spec.view |= role == v1::VIEW;
      spec.operate |= role == v1::OPERATE;
      spec.drill |= role == v1::DRILL;
    }
    spec.users.assign(grant.users().begin(), grant.users().end());
    spec.groups.assign(grant.groups().begin(), grant.groups().end());
    spec.everyone = grant.everyone();
    spec.on_nodes.assign(grant.on_nodes().begin(), grant.on_nodes().end());
    spec.operators.assign(grant.operators().begin(), grant.operators().end());
    if (spec.users.empty() && spec.groups.empty() && !spec.everyone && spec.operators.empty())
      return places.Wrong(spec.line, "grants names no caller: set users, groups, everyone or operators");
    for (const auto* names : {&spec.on_nodes, &spec.operators})
      for (const std::string& name : *names)
        if (name != "*" && !IsNodeName(name))
          return places.Wrong(spec.line,
                              absl::StrCat("grants: '", name, "' is neither a name (", NameRule(kNodeNameBytesMax), ") nor \"*\""));
    config->grants.push_back(std::move(spec));
  }
  return absl::OkStatus();
}

absl::Status SetNode(const std::string& name, const std::string& source, Config* config) {
  if (!IsNodeName(name))
    return RefuseConfig(absl::StrCat(source, ": '", name, "' is not a node name (", NameRule(kNodeNameBytesMax), "); set --node"));
  config->node = name;
  return absl::OkStatus();
}

}  // namespace

std::string ConfigParts::Place(int line) const {
  if (parts_.empty()) return "";
  if (line <= 0) return parts_.front().file;
  const Part* of = &parts_.front();
  for (const Part& part : parts_)
    if (part.lines_before < line) of = &part;
  return absl::StrCat(of->file, ":", line - of->lines_before);
}

std::string CanonicalAddress(std::string_view text) {
  const std::string bare(text.substr(0, text.find('%')));
  char buffer[INET6_ADDRSTRLEN];
  in6_addr v6;
  in_addr v4;
  if (inet_pton(AF_INET, bare.c_str(), &v4) == 1) return inet_ntop(AF_INET, &v4, buffer, sizeof(buffer));
  if (inet_pton(AF_INET6, bare.c_str(), &v6) == 1) return inet_ntop(AF_INET6, &v6, buffer, sizeof(buffer));
  return "";
}

bool IsLoopback(const std::string& host) {
  if (host == "localhost") return true;
  in_addr v4;
  in6_addr v6;
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  return inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

absl::StatusOr<HostPort> ParseHostPort(std::string_view text, bool allow_port_zero) {
  const auto wrong = [&](const char* why) {
    return absl::InvalidArgumentError(absl::StrCat("'", std::string(text), "' is not host:port (", why, ")"));
  };
  if (text.find("://") != std::string_view::npos) return wrong("remove what is before the host");
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return wrong("no port");
  std::string_view host = text.substr(0, colon);
  if (host.empty()) return wrong("no host");
  const bool bracketed = host.front() == '[' && host.back() == ']' && host.size() > 2;
  if (bracketed)
    host = host.substr(1, host.size() - 2);
  else if (host.find(':') != std::string_view::npos)
    return wrong("write an IPv6 address as [address]:port");
  if (bracketed && CanonicalAddress(host).empty()) return wrong("no IPv6 address in the brackets");
  for (char c : host)
    if (c <= ' ' || c == '/' || c == '[' || c == ']') return wrong("a character that no host name has");
  const std::string_view digits = text.substr(colon + 1);
  uint32_t port = 0;
  const bool numeric =
      !digits.empty() && digits.size() <= 5 && std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!numeric || !absl::SimpleAtoi(std::string(digits), &port) || port > 65535 || (port == 0 && !allow_port_zero))
    return wrong("the port is a number from 1 to 65535");
  return HostPort{std::string(host), static_cast<uint16_t>(port)};
}

absl::StatusOr<Config> DefaultConfig(const ConfigContext& context) {
  Config config;
  config.run_dir = context.run_dir;
  config.state_dir = context.state_dir;
  const bool flag = !context.node_flag.empty();
  if (auto status = SetNode(flag ? context.node_flag : context.host_name, flag ? "--node" : "host name", &config); !status.ok())
    return status;
  return config;
}

absl::StatusOr<Config> ParseConfig(std::string_view text, const std::string& file, const ConfigContext& context) {
  return ParseConfig({{file, std::string(text)}}, context);
}

absl::StatusOr<Config> ParseConfig(const std::vector<ConfigText>& texts, const ConfigContext& context) {
  auto merged = MergeConfigTexts(texts);
  if (!merged.ok()) return merged.status();
  const v1::DaemonConfig& parsed = merged->message;
  const ConfigPlaces& places = merged->places;

  Config config;
  config.file = texts.front().file;
  config.parts = places.parts();
  config.run_dir = context.run_dir;
  config.state_dir = context.state_dir;
  absl::Status status;
  if (!context.node_flag.empty())
    status = SetNode(context.node_flag, "--node", &config);
  else if (!parsed.node().empty())
    status = SetNode(parsed.node(), places.parts().Place(places.Line(parsed, "node")), &config);
  else
    status = SetNode(context.host_name, "host name", &config);
  if (!status.ok()) return status;
  if (parsed.has_nice()) {
    if (parsed.nice() < -20 || parsed.nice() > 19)
      return places.Wrong(places.Line(parsed, "nice"), absl::StrCat("nice is -20 to 19, not ", parsed.nice()));
    config.nice = parsed.nice();
  }
  if (parsed.has_realtime_priority()) {
    if (parsed.realtime_priority() > kRealtimePriorityMost)
      return places.Wrong(places.Line(parsed, "realtime_priority"),
                          absl::StrCat("realtime_priority is 0 to ", kRealtimePriorityMost, ", not ", parsed.realtime_priority()));
    config.realtime_priority = static_cast<int>(parsed.realtime_priority());
  }
  if (!parsed.log_level().empty()) {
    config.log_level = ParseSeverity(parsed.log_level());
    if (!config.log_level.has_value())
      return places.Wrong(places.Line(parsed, "log_level"),
                          absl::StrCat("log_level is debug, info, warning or error, not '", parsed.log_level(), "'"));
  }
  config.attach.uids.insert(parsed.attach().uids().begin(), parsed.attach().uids().end());
  config.attach.gids.insert(parsed.attach().gids().begin(), parsed.attach().gids().end());
  status = ReadLimits(parsed, places, &config);
  if (status.ok()) status = ReadPeers(parsed, places, &config);
  if (status.ok()) status = ReadNics(parsed, places, &config);
  if (status.ok()) status = ReadStore(parsed, places, &config);
  if (status.ok() && parsed.has_tls()) status = ReadTls(parsed.tls(), "tls", config.node, places.Line(parsed, "tls"), places, &config.tls);
  if (status.ok()) status = ReadTrust(parsed, places, &config);
  if (status.ok()) status = ReadHttp(parsed, places, &config);
  if (status.ok()) status = ReadRdma(parsed, places, &config);
  if (!status.ok()) return status;
  return config;
}

absl::Status CheckInterfaces(const Config& config, const std::vector<std::string>& present) {
  for (const NicSpec& nic : config.nics) {
    // One whose network is not there was let pass by FitToMachine.
    const bool absent = nic.network.has_value() && nic.address.empty();
    if (nic.interface.empty() || absent || std::find(present.begin(), present.end(), nic.interface) != present.end()) continue;
    std::vector<std::string> sorted = present;
    std::sort(sorted.begin(), sorted.end());
    return absl::NotFoundError(absl::StrCat(config.parts.Place(nic.line), ": NIC ", nic.name, ": there is no interface '", nic.interface,
                                            "' on this machine; it has ", sorted.empty() ? "none" : absl::StrJoin(sorted, " ")));
  }
  return absl::OkStatus();
}

}  // namespace r2cc::daemon
