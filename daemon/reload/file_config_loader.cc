#include "daemon/reload/file_config_loader.h"

#include <net/if.h>
#include <unistd.h>

#include <algorithm>
#include <climits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/names.h"
#include "base/status_macros.h"
#include "base/tls/certificate.h"
#include "daemon/config/config_patterns.h"
#include "daemon/io/addresses.h"
#include "daemon/io/default_nics.h"
#include "daemon/io/files.h"
#include "daemon/reload/config_files.h"
#include "daemon/trust/accounts.h"
#include "daemon/trust/tls_files.h"
#include "health/io/sysfs.h"

namespace r2cc::daemon {
namespace {

std::string HostName() {
  char name[HOST_NAME_MAX + 1] = {};
  gethostname(name, sizeof(name) - 1);
  return name;
}

// This machine's, and those of NICs in force that it has lost: with their interfaces, or an address that is being changed.
Addresses::Map KnownAddresses(const Config* in_force) {
  Addresses::Map addresses = OsAddresses().ByInterface();
  if (in_force == nullptr) return addresses;
  for (const NicSpec& nic : in_force->nics) {
    if (nic.interface.empty() || nic.address.empty()) {
      // One whose network is not there has no interface either.
      if (!nic.interface.empty() && !nic.network.has_value()) addresses[nic.interface];
      continue;
    }
    const auto [found, lost] = addresses.try_emplace(nic.interface);
    const auto fits = [&](const std::string& one) { return nic.network.has_value() && nic.network->Contains(one); };
    if (lost || (nic.network.has_value() && std::none_of(found->second.begin(), found->second.end(), fits)))
      found->second.push_back(nic.address);
  }
  return addresses;
}

// A NIC that a running daemon lacks already is no news.
MayLack LackedBy(const Config* in_force, Absent absent) {
  MayLack may_lack{.everything = absent == Absent::kAccept};
  if (in_force == nullptr) return may_lack;
  may_lack.names.insert(in_force->lacking_globs.begin(), in_force->lacking_globs.end());
  for (const NicSpec& nic : in_force->nics)
    if (nic.network.has_value() && nic.address.empty()) may_lack.names.insert(nic.name);
  return may_lack;
}

}  // namespace

absl::StatusOr<Config> ReadConfig(const ConfigFlags& flags, const Config* in_force, Absent absent) {
  const ConfigContext context{flags.run_dir, HostName(), flags.node, flags.state_dir};
  Config config;
  if (flags.file.empty()) {
    ASSIGN_OR_RETURN(config, DefaultConfig(context));
  } else {
    ASSIGN_OR_RETURN(const std::vector<ConfigText> texts, ReadConfigFiles(flags.file));
    ASSIGN_OR_RETURN(config, ParseConfig(texts, context));
  }
  config.wall_clock_offset = flags.wall_clock_offset;
  if (flags.log_level.has_value()) config.log_level = flags.log_level;
  const Addresses::Map addresses = KnownAddresses(in_force);
  std::vector<std::string> present;
  for (const auto& [interface, of] : addresses) present.push_back(interface);
  RETURN_IF_ERROR(FitToMachine(addresses, &config, LackedBy(in_force, absent)));
  if (in_force != nullptr && in_force->listen_by_default && config.listen_by_default) config.listen = in_force->listen;
  if (absent == Absent::kRefuse) RETURN_IF_ERROR(CheckInterfaces(config, present));
  if (!config.nics.empty() || !config.nic_patterns.empty()) return config;
  // Which these are depends on what they are like now: they stay what they were found to be at the start.
  if (in_force != nullptr && in_force->nics_by_default) {
    config.nics = in_force->nics;
  } else {
    for (const std::string& interface : DefaultNics(addresses, health::RealSysfs(),
                                                    [](const std::string& name) { return static_cast<int>(if_nametoindex(name.c_str())); }))
      if (IsNicName(interface) && config.nics.size() < config.nics_per_node) config.nics.push_back({interface, interface, "", 0, 0});
  }
  config.nics_by_default = true;
  return config;
}

CertificateState CheckAllTlsFiles(const Config& config, int64_t now_s) {
  CertificateState state;
  const auto look = [&](const std::optional<TlsSpec>& tls, const std::string& node, const char* where) {
    if (!tls.has_value()) return;
    for (std::string& line : CheckTlsFiles(*tls, node, now_s, absl::StrCat(config.file, ": ", where), OperatorsGid()))
      state.wrong.push_back(std::move(line));
    const auto pem = OsFiles().Read(tls->certificate_file);
    const auto certificate = pem.ok() ? Certificate::Parse(*pem) : pem.status();
    if (!certificate.ok()) return;
    const int64_t until_s = certificate->not_after_s();
    state.until_s = state.until_s == 0 ? until_s : std::min(state.until_s, until_s);
  };
  look(config.tls, config.node, "tls");
  if (config.etcd.has_value()) look(config.etcd->tls, "", "store.etcd_tls");
  return state;
}

std::string SoundConfigLine(const Config& config) {
  return absl::StrCat(config.file.empty() ? "no file" : config.file, ": ok: node ", config.node, ", ", config.nics.size(), " NICs, ",
                      config.peers.size(), " peers");
}

absl::StatusOr<LoadedConfig> FileConfigLoader::Load(const Config* in_force) {
  LoadedConfig loaded;
  ASSIGN_OR_RETURN(loaded.config, ReadConfig(flags_, in_force, Absent::kRefuse));
  std::vector<std::string> wrong = CheckAllTlsFiles(loaded.config, now_s_()).wrong;
  // The default grants differ if callers do not prove their identity, and that does not change while it runs.
  Config as_it_runs = loaded.config;
  if (in_force != nullptr) as_it_runs.insecure = in_force->insecure;
  absl::StatusOr<std::vector<Grant>> grants = ResolveGrants(as_it_runs);
  if (!grants.ok()) wrong.emplace_back(grants.status().message());
  if (!wrong.empty()) return absl::InvalidArgumentError(absl::StrJoin(wrong, "\n"));
  loaded.grants = *std::move(grants);
  return loaded;
}

}  // namespace r2cc::daemon
