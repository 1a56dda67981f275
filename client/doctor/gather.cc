#include "client/doctor/gather.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/core/rails_file.h"
#include "base/run_dirs.h"
#include "client/doctor/job_checks.h"
#include "google/protobuf/text_format.h"
#include "proto/config.pb.h"

namespace r2cc::client {
namespace {

// Two daemons of one name report it once; an older report may be over.
constexpr int64_t kDuplicatesNs = 3'600'000'000'000;
// With the IP header: what every network takes.
constexpr int kSmallPacketBytes = 84;
// The value of a NIC that has no interface of its own.
constexpr int kPlainMtu = 1500;
constexpr int kLargestPacketBytes = 65'535;

void ReadConfig(const v1::ConfigReply& reply, DaemonFacts* daemon) {
  CertificateFacts certificates;
  certificates.wrong.assign(reply.certificates_wrong().begin(), reply.certificates_wrong().end());
  certificates.until_s = reply.certificates_until_s();
  daemon->certificates = std::move(certificates);
  v1::DaemonConfig config;
  google::protobuf::TextFormat::Parser parser;
  // One of a newer release has fields that this one does not know.
  parser.AllowUnknownField(true);
  if (!parser.ParseFromString(reply.text(), &config)) return;
  daemon->realtime_priority = static_cast<int>(config.realtime_priority());
  daemon->nice = config.nice();
  for (const v1::NicConfig& nic : config.nics()) {
    if (nic.rate_bits_per_s() != 0) daemon->configured_rates[nic.name()] = nic.rate_bits_per_s();
    if (!nic.interface().empty()) daemon->interfaces[nic.name()] = nic.interface();
  }
}

absl::StatusOr<int> ReadNumber(Machine& machine, const std::string& path) {
  const auto text = machine.Read(path);
  int number = 0;
  if (!text.ok()) return text.status();
  if (!absl::SimpleAtoi(*text, &number)) return absl::InvalidArgumentError(absl::StrCat(path, " is no number"));
  return number;
}

// A sysctl of an interface counts as the larger of its own value and that of all.
absl::StatusOr<int> ReadConf(Machine& machine, const std::string& interface, const std::string& name) {
  const auto all = ReadNumber(machine, absl::StrCat("/proc/sys/net/ipv4/conf/all/", name));
  const auto own = ReadNumber(machine, absl::StrCat("/proc/sys/net/ipv4/conf/", interface, "/", name));
  if (!all.ok()) return all;
  if (!own.ok()) return own;
  return std::max(*all, *own);
}

const v1::NodeView* Find(const v1::StatusReply& status, const std::string& node) {
  for (const v1::NodeView& view : status.nodes())
    if (view.node() == node) return &view;
  return nullptr;
}

// This machine's own interfaces leave `rail->other_owners`.
void NameOwners(const std::map<std::string, std::string>& own_macs, RailFacts* rail) {
  if (!rail->other_owners.ok()) return;
  std::erase_if(*rail->other_owners, [&](const std::string& mac) {
    const auto own = own_macs.find(mac);
    if (own != own_macs.end()) rail->own_owners.push_back(own->second);
    return own != own_macs.end();
  });
}

// Interfaces by hardware address. A bridge or a bond has that of one of its members, which is the same owner.
std::map<std::string, std::string> OwnMacs(Machine& machine, const std::vector<LocalInterface>& interfaces) {
  std::map<std::string, std::string> macs;
  for (const LocalInterface& interface : interfaces)
    if (const auto mac = machine.Read(absl::StrCat("/sys/class/net/", interface.name, "/address")); mac.ok())
      macs.emplace(*mac, interface.name);
  return macs;
}

void LookAtRails(Machine& machine, Facts* facts) {
  const v1::NodeView* const own = Find(facts->daemon.status, facts->daemon.status.node());
  if (own == nullptr) return;
  const std::vector<LocalInterface> interfaces = machine.Interfaces();
  const std::map<std::string, std::string> own_macs = OwnMacs(machine, interfaces);
  for (const v1::NicView& nic : own->nics()) {
    RailFacts rail;
    rail.nic = nic.name();
    rail.address = nic.address();
    const std::string& name = facts->daemon.interfaces[nic.name()];
    const auto found = std::find_if(interfaces.begin(), interfaces.end(), [&](const LocalInterface& one) { return one.name == name; });
    if (!name.empty() && found != interfaces.end()) {
      rail.interface = *found;
      rail.rp_filter = ReadConf(machine, name, "rp_filter");
      rail.arp_ignore = ReadConf(machine, name, "arp_ignore");
      if (nic.link_up() && !rail.address.empty()) rail.other_owners = machine.OtherOwners(name, rail.address);
      NameOwners(own_macs, &rail);
    }
    facts->rails.push_back(std::move(rail));
  }
}

// The first port without an answer, among ports like those that a job's processes listen on.
absl::Status TryJobPorts(Machine& machine, const Source& source, const std::string& destination) {
  const auto range = machine.Read("/proc/sys/net/ipv4/ip_local_port_range");
  if (!range.ok()) return range.status();
  const std::vector<std::string> ends = absl::StrSplit(*range, absl::ByAnyChar(" \t"), absl::SkipEmpty());
  uint32_t least = 0, most = 0;
  if (ends.size() != 2 || !absl::SimpleAtoi(ends[0], &least) || !absl::SimpleAtoi(ends[1], &most) || least > most || most > 65'535)
    return absl::InvalidArgumentError(absl::StrCat("net.ipv4.ip_local_port_range is '", *range, "'"));
  for (const uint32_t port : {least, least + (most - least) / 2, most})
    if (absl::Status status = machine.TcpAnswers(source, destination, static_cast<uint16_t>(port)); !status.ok()) return status;
  return absl::OkStatus();
}

// A peer that is silent on all of its pairs changes the state of none: that shows nothing about one of them. A person wants to know it.
bool LongUnanswered(const v1::PairStatus& pair, int64_t now_ns) {
  constexpr int64_t kLongNs = 10'000'000'000;
  constexpr uint64_t kAskedMin = 5;
  const int64_t since_ns = pair.last_answer_ns() != 0 ? pair.last_answer_ns() : pair.since_ns();
  return pair.sent() >= kAskedMin && now_ns - since_ns >= kLongNs;
}

std::string ProbeState(const DaemonFacts& daemon, const PairFacts& pair, int64_t now_ns) {
  for (const v1::PairStatus& status : daemon.pairs)
    if (status.nic() == pair.nic && status.peer_node() == pair.peer && status.peer_nic() == pair.nic)
      return LongUnanswered(status, now_ns) ? "silent" : status.state();
  return "";
}

// Carries packets, or should.
bool Up(const v1::NicView& nic) { return nic.link_up() && !nic.address().empty(); }

void LookAtPair(Machine& machine, const RailFacts& rail, const std::string& peer, const std::string& peer_address, Facts* facts) {
  PairFacts pair;
  pair.nic = rail.nic;
  pair.interface = rail.interface.name;
  pair.address = rail.address;
  pair.peer = peer;
  pair.peer_address = peer_address;
  const Source source{pair.address, pair.interface};
  if (!pair.interface.empty()) pair.route = machine.Route(pair.address, pair.peer_address);
  pair.full_bytes = std::min(rail.interface.mtu > 0 ? rail.interface.mtu : kPlainMtu, kLargestPacketBytes);
  pair.small_ping = machine.Ping(source, pair.peer_address, kSmallPacketBytes);
  // The size means nothing on a dead way.
  pair.full_ping = pair.small_ping.ok() ? machine.Ping(source, pair.peer_address, pair.full_bytes) : pair.small_ping;
  pair.probes = ProbeState(facts->daemon, pair, facts->now_ns);
  const bool alive = pair.small_ping.ok() || pair.probes == "up" || pair.probes == "late";
  pair.job_ports = alive ? TryJobPorts(machine, source, pair.peer_address) : pair.small_ping;
  facts->pairs.push_back(std::move(pair));
}

// Those that the configuration names first.
std::vector<std::string> ChoosePeers(const v1::StatusReply& status, size_t most) {
  std::vector<std::string> chosen;
  const auto add = [&](const std::string& node) {
    if (node != status.node() && chosen.size() < most && std::find(chosen.begin(), chosen.end(), node) == chosen.end())
      chosen.push_back(node);
  };
  for (const v1::PeerStatus& peer : status.peers()) add(peer.node());
  for (const v1::NodeView& node : status.nodes()) add(node.node());
  return chosen;
}

void LookAtPeers(Machine& machine, size_t most, Facts* facts) {
  const v1::StatusReply& status = facts->daemon.status;
  const v1::NodeView* const own = Find(status, status.node());
  for (const std::string& name : ChoosePeers(status, most)) {
    const v1::NodeView* const view = Find(status, name);
    std::string address = view == nullptr ? "" : view->peer_address();
    for (const v1::PeerStatus& peer : status.peers())
      if (peer.node() == name && !peer.address().empty()) address = peer.address();
    const size_t colon = address.rfind(':');
    uint32_t port = 0;
    if (colon == std::string::npos || !absl::SimpleAtoi(address.substr(colon + 1), &port) || port > 65'535) continue;
    std::string host = address.substr(0, colon);
    if (absl::StartsWith(host, "[") && absl::EndsWith(host, "]")) host = host.substr(1, host.size() - 2);
    facts->peers.push_back({name, address, machine.TcpAccepts(host, static_cast<uint16_t>(port))});
    if (view == nullptr || own == nullptr) continue;
    for (const RailFacts& rail : facts->rails)
      for (const v1::NicView& nic : view->nics())
        for (const v1::NicView& mine : own->nics())
          if (nic.name() == rail.nic && mine.name() == rail.nic && Up(nic) && Up(mine))
            LookAtPair(machine, rail, name, nic.address(), facts);
  }
}

void LookAtDaemon(Machine& machine, const std::string& run_dir, DaemonFacts* daemon) {
  daemon->attach = machine.UnixAccepts(AttachSocket(run_dir));
  // Not by the number in the lock file: a container's r2ccd is number 1 there, and systemd is number 1 here.
  const absl::StatusOr<int> pid = machine.ListenerPid(ControlSocket(run_dir));
  if (pid.ok())
    daemon->process = machine.Process(*pid);
  else
    daemon->process = absl::Status(pid.status().code(), absl::StrCat("which process it is cannot be seen: ", pid.status().message()));
  const auto buffer = ReadNumber(machine, "/proc/sys/net/core/rmem_default");
  daemon->receive_buffer = buffer.ok() ? absl::StatusOr<int64_t>(*buffer) : buffer.status();
}

JobFacts LookAtJob(Machine& machine, const std::string& run_dir) {
  JobFacts job;
  job.environment = machine.Environment();
  // As NCCL does it: the user's file or the one that is named, and then the system's; a variable that is set already stays.
  const auto value = [&](const std::string& name) {
    const auto found = job.environment.find(name);
    return found == job.environment.end() ? std::string() : found->second;
  };
  const std::string own = value("NCCL_CONF_FILE").empty() ? value("HOME") + "/.nccl.conf" : value("NCCL_CONF_FILE");
  for (const std::string& file : {own, std::string("/etc/nccl.conf")})
    if (const auto text = machine.Read(file); text.ok())
      for (auto& variable : ParseNcclConf(*text)) job.environment.insert(variable);

  job.attach_path = value("R2CC_ATTACH").empty() ? absl::StrCat(run_dir, "/attach.sock") : value("R2CC_ATTACH");
  const std::string folder = job.attach_path.substr(0, job.attach_path.rfind('/') + 1);
  if (const auto text = machine.Read(absl::StrCat(folder, kRailsFileName)); text.ok() && !folder.empty())
    if (auto file = ParseRailsFile(absl::StrCat(*text, "\n")); file.has_value()) job.daemon_rails = std::move(file->rails);
  if (job.attach_path != "none") job.attach = machine.UnixAccepts(job.attach_path);
  // If another one is named, that is reported, and this one is looked for all the same.
  std::string plugin = absl::StrContains(value("NCCL_NET_PLUGIN"), "r2cc") ? value("NCCL_NET_PLUGIN") : "r2cc";
  if (absl::StrContains(plugin, "/")) {
    job.plugin_files = {plugin};
  } else {
    if (!absl::EndsWith(plugin, ".so")) plugin = absl::StrCat("libnccl-net-", plugin, ".so");
    job.plugin_files = machine.Libraries(plugin);
  }
  if (job.plugin_files.empty())
    job.plugin_loads = absl::NotFoundError(absl::StrCat("there is no ", plugin, " in LD_LIBRARY_PATH or the system's directories"));
  else
    job.plugin_loads = machine.Loads(job.plugin_files.front());
  // A missing library that it needs is none of the plugin's absence.
  if (!job.plugin_files.empty() && absl::IsNotFound(job.plugin_loads))
    job.plugin_loads = absl::FailedPreconditionError(job.plugin_loads.message());
  job.nccl_version = machine.NcclVersion();
  job.congestion = machine.Read("/proc/sys/net/ipv4/tcp_congestion_control");
  for (const LocalInterface& interface : machine.Interfaces()) job.interfaces.push_back(interface.name);
  const auto rails = job.environment.find("R2CC_RAILS");
  if (rails != job.environment.end())
    for (const absl::string_view name : absl::StrSplit(rails->second, absl::ByAnyChar("^~, "), absl::SkipEmpty())) {
      // "mlx5_0", or of several ports "mlx5_0:2".
      const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(name, absl::MaxSplits(':', 1));
      const std::string known = parts.second.empty() ? "node_guid" : absl::StrCat("ports/", parts.second, "/state");
      if (machine.Read(absl::StrCat("/sys/class/infiniband/", parts.first, "/", known)).ok()) job.devices.emplace_back(name);
    }
  job.locked_memory_max = machine.LockedMemoryMax();
  job.has_rdma = machine.Read("/sys/class/infiniband_verbs/abi_version").ok();
  return job;
}

}  // namespace

DaemonFacts AskDaemon(Client& client, int64_t now_ns) {
  DaemonFacts daemon;
  const auto status = client.GetStatus({});
  if (!status.ok()) {
    daemon.connection = status.status();
    return daemon;
  }
  daemon.status = *status;
  v1::EventsRequest events;
  events.add_kinds("duplicate-node");
  events.set_since_ns(now_ns - kDuplicatesNs);
  // Without it they are not known to be there, which the missing line of another check also shows.
  (void)client.Events(events, [&](const v1::Event& event) {
    daemon.duplicates.push_back(event);
    return true;
  });
  const auto plan = client.GetPlan({});
  daemon.plan_entries = plan.ok() ? absl::StatusOr<size_t>(static_cast<size_t>(plan->nics_size())) : plan.status();
  if (const auto config = client.GetConfig({}); config.ok())
    ReadConfig(*config, &daemon);
  else
    daemon.certificates = config.status();
  v1::ProbePathsRequest paths;
  paths.set_node(daemon.status.node());
  if (const auto probes = client.ProbePaths(paths); probes.ok()) daemon.pairs.assign(probes->pairs().begin(), probes->pairs().end());
  return daemon;
}

void LookAround(Machine& machine, const LookOptions& options, Facts* facts) {
  LookAtDaemon(machine, options.run_dir, &facts->daemon);
  if (facts->daemon.connection.ok()) {
    LookAtRails(machine, facts);
    LookAtPeers(machine, options.peers_max, facts);
  }
  if (options.job) facts->job = LookAtJob(machine, options.run_dir);
}

}  // namespace r2cc::client
