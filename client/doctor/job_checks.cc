#include "client/doctor/job_checks.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/core/glob.h"
#include "client/core/units.h"

namespace r2cc::client {
namespace {

std::string Value(const JobFacts& job, const std::string& name) {
  const auto found = job.environment.find(name);
  return found == job.environment.end() ? "" : found->second;
}

std::vector<std::string> List(const std::string& text) {
  std::vector<std::string> names = absl::StrSplit(text, ',', absl::SkipWhitespace());
  for (std::string& name : names) absl::StripAsciiWhitespace(&name);
  return names;
}

void CheckVariables(const JobFacts& job, Findings* found) {
  const std::string plugin = Value(job, "NCCL_NET_PLUGIN");
  constexpr char kSet[] = "export NCCL_NET_PLUGIN=r2cc NCCL_NET=R2CC (r2ccctl job env prints the lines)";
  if (plugin.empty())
    found->push_back(Fail("plugin variable", "NCCL_NET_PLUGIN is not set: NCCL does not look for the plugin", kSet));
  else if (!absl::StrContains(plugin, "r2cc"))
    found->push_back(Fail("plugin variable", absl::StrCat("NCCL_NET_PLUGIN=", plugin, " is another plugin"), kSet));
  else
    found->push_back(Ok("plugin variable", absl::StrCat("NCCL_NET_PLUGIN=", plugin)));
  const std::string net = Value(job, "NCCL_NET");
  if (net.empty())
    found->push_back(
        Warn("NCCL_NET", "not set: if the plugin cannot be used, NCCL continues without it and logs little", "export NCCL_NET=R2CC"));
  else if (net != "R2CC")
    found->push_back(
        Fail("NCCL_NET", absl::StrCat("NCCL_NET=", net, " is another network: the plugin is not used"), "export NCCL_NET=R2CC"));
  else
    found->push_back(Ok("NCCL_NET", "NCCL_NET=R2CC"));
  // 0 is NCCL's default.
  const std::string kept = Value(job, "NCCL_NET_PLUGIN_REF_COUNT");
  if (kept.empty() || kept == "0")
    found->push_back(Warn("plugin kept",
                          "NCCL_NET_PLUGIN_REF_COUNT=1 is not set: a process of NCCL 2.28 or 2.29 that ends all its communicators can make "
                          "no others",
                          "export NCCL_NET_PLUGIN_REF_COUNT=1"));
  else
    found->push_back(Ok("plugin kept", absl::StrCat("NCCL_NET_PLUGIN_REF_COUNT=", kept)));
}

// NCCL's list of interfaces: prefixes, "=" for whole names, "^" for all but these.
bool NamedBy(const std::string& list, const std::string& interface) {
  std::string text = list;
  const bool not_these = absl::StartsWith(text, "^");
  if (not_these) text.erase(0, 1);
  const bool exact = absl::StartsWith(text, "=");
  if (exact) text.erase(0, 1);
  const std::vector<std::string> names = List(text);
  const bool named = std::any_of(names.begin(), names.end(),
                                 [&](const std::string& name) { return exact ? name == interface : absl::StartsWith(interface, name); });
  return named != not_these;
}

void CheckRails(const JobFacts& job, Findings* found) {
  const size_t before = found->size();
  const std::string rails = Value(job, "R2CC_RAILS");
  const bool excludes = !rails.empty() && rails.front() == '^';
  const bool may_lack = !rails.empty() && rails.front() == '~';
  const std::string transport = Value(job, "R2CC_TRANSPORT");
  std::vector<std::string> missing, control, unused;
  for (const std::string& rail : List(excludes || may_lack ? rails.substr(1) : rails)) {
    const bool is_address = absl::StrContains(rail, '.') || std::count(rail.begin(), rail.end(), ':') > 1;
    if (is_address) continue;
    if (std::find(job.devices.begin(), job.devices.end(), rail) != job.devices.end()) {
      if (!excludes && (transport.empty() || transport == "tcp")) unused.push_back(rail);
      continue;
    }
    // A pattern may fit devices, which are known by their names alone.
    const bool may_be_devices = rail.find_first_of("*?") != std::string::npos && job.has_rdma && !transport.empty() && transport != "tcp";
    const auto fits = [&](const std::string& interface) { return GlobFits(rail, interface); };
    if (!may_be_devices && std::none_of(job.interfaces.begin(), job.interfaces.end(), fits)) missing.push_back(rail);
    const std::string names = Value(job, "NCCL_SOCKET_IFNAME");
    for (const std::string& interface : job.interfaces)
      if (!excludes && fits(interface) && !names.empty() && NamedBy(names, interface)) control.push_back(interface);
  }
  if (!missing.empty()) {
    const std::string what = absl::StrCat(excludes ? "R2CC_RAILS excludes " : "R2CC_RAILS names ", absl::StrJoin(missing, ", "),
                                          ", which this machine has not; it has ", absl::StrJoin(job.interfaces, " "));
    // One list may serve machines that are not alike.
    found->push_back(may_lack   ? Warn("rails", what, "jobs start without it; is the NIC still on the bus?")
                     : excludes ? Warn("rails", what, "correct R2CC_RAILS if the name is misspelt: nothing is left out for it")
                                : Fail("rails", what, "correct R2CC_RAILS, or leave it out: then the job takes the NICs of r2ccd"));
  }
  std::vector<std::string> unwatched;
  for (const std::string& rail : List(excludes || job.daemon_rails.empty() ? "" : rails))
    if (rail.find_first_of("*?") == std::string::npos &&
        std::find(job.interfaces.begin(), job.interfaces.end(), rail) != job.interfaces.end() &&
        std::find(job.daemon_rails.begin(), job.daemon_rails.end(), rail) == job.daemon_rails.end())
      unwatched.push_back(rail);
  if (!unwatched.empty())
    found->push_back(Warn("rails", absl::StrCat("R2CC_RAILS names ", absl::StrJoin(unwatched, ", "), ", which r2ccd does not watch"),
                          "name it in r2ccd's nics, or leave R2CC_RAILS out: then the job takes the NICs of r2ccd"));
  if (!unused.empty())
    found->push_back(Fail("rails",
                          absl::StrCat("R2CC_RAILS names ", absl::StrJoin(unused, ", "), ", of RDMA, and R2CC_TRANSPORT is ",
                                       transport.empty() ? "not set" : transport),
                          "set R2CC_TRANSPORT=verbs, or auto, or name the interfaces"));
  if (!control.empty())
    found->push_back(
        Warn("rails",
             absl::StrCat("NCCL_SOCKET_IFNAME=", Value(job, "NCCL_SOCKET_IFNAME"), " puts NCCL's own control traffic on ",
                          absl::StrJoin(control, ", "), ", which R2CC_RAILS names: it does not move to another rail when this one fails"),
             "name an interface that is no rail in NCCL_SOCKET_IFNAME"));
  if (Value(job, "NCCL_IB_DISABLE") == "1" && Value(job, "R2CC_TRANSPORT") == "verbs")
    found->push_back(
        Warn("rails", "NCCL_IB_DISABLE=1 and R2CC_TRANSPORT=verbs contradict each other; NCCL_IB_DISABLE affects NCCL's own network only",
             "unset NCCL_IB_DISABLE"));
  if (found->size() > before) return;
  const auto lo = std::count(job.interfaces.begin(), job.interfaces.end(), "lo");
  if (!rails.empty())
    found->push_back(Ok("rails", absl::StrCat("R2CC_RAILS=", rails)));
  else if (!job.daemon_rails.empty())
    found->push_back(Ok("rails", absl::StrCat("the NICs of r2ccd: ", absl::StrJoin(job.daemon_rails, ", "))));
  else if (static_cast<ptrdiff_t>(job.interfaces.size()) - lo < 2)
    found->push_back(Ok("rails", "every usable interface"));
  else
    found->push_back(Warn("rails",
                          "neither R2CC_RAILS nor r2ccd's configuration names any: every usable interface is one, a management network too",
                          "name the rails in r2ccd's nics, or in R2CC_RAILS"));
}

void CheckPlugin(const JobFacts& job, Findings* found) {
  if (absl::IsNotFound(job.plugin_loads))
    return found->push_back(
        Fail("plugin", std::string(job.plugin_loads.message()), "install libnccl-net-r2cc, or put its directory into LD_LIBRARY_PATH"));
  if (!job.plugin_loads.ok())
    found->push_back(Fail("plugin", absl::StrCat("does not load: ", job.plugin_loads.message()),
                          "install what it misses; ldd names it. The plugin needs glibc 2.34 or newer and nothing else"));
  else
    found->push_back(Ok("plugin", absl::StrCat(job.plugin_files.empty() ? "it" : job.plugin_files.front(), " loads")));
  if (job.plugin_files.size() > 1)
    found->push_back(Warn("plugin files",
                          absl::StrCat(job.plugin_files.front(), " comes before ", job.plugin_files[1], ", which is another file"),
                          "take one of the two out of LD_LIBRARY_PATH"));
}

void CheckNccl(const JobFacts& job, Findings* found) {
  if (!job.nccl_version.ok()) return found->push_back(Unchecked("NCCL", std::string(job.nccl_version.status().message())));
  const int version = *job.nccl_version;
  const std::string text = absl::StrCat(version / 10'000, ".", version / 100 % 100, ".", version % 100);
  if (version < kNcclVersionMin)
    found->push_back(Fail("NCCL", absl::StrCat(text, " has no v7 net tables: it cannot load the plugin"), "install NCCL 2.19.1 or newer"));
  else
    found->push_back(Ok("NCCL", absl::StrCat(text, " knows the plugin's tables")));
}

void CheckSystem(const JobFacts& job, Findings* found) {
  const std::string asked = Value(job, "R2CC_TCP_CONGESTION");
  const bool bbr = absl::StartsWith(asked, "bbr") || (asked == "system" && job.congestion.ok() && absl::StartsWith(*job.congestion, "bbr"));
  if (bbr)
    found->push_back(Warn(
        "congestion", absl::StrCat("R2CC_TCP_CONGESTION=", asked, " is BBR, which all but stops a busy connection for 0.2 s every 10 s"),
        "leave R2CC_TCP_CONGESTION out, or set cubic"));
  else if (!job.congestion.ok() && asked == "system")
    found->push_back(Unchecked("congestion", std::string(job.congestion.status().message())));
  else
    found->push_back(Ok("congestion", asked.empty() ? "not BBR" : absl::StrCat("R2CC_TCP_CONGESTION=", asked)));
  if (job.has_rdma && job.locked_memory_max < kLockedMemoryMin)
    found->push_back(Warn("memlock",
                          absl::StrCat("a process may lock ", FormatBytes(job.locked_memory_max), " of memory: RDMA registers more"),
                          "ulimit -l unlimited, LimitMEMLOCK=infinity in slurmd's unit"));
}

}  // namespace

std::map<std::string, std::string> ParseNcclConf(const std::string& text) {
  std::map<std::string, std::string> variables;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    line = absl::StripAsciiWhitespace(line.substr(0, line.find('#')));
    const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(line, absl::MaxSplits('=', 1));
    if (parts.first.empty() || parts.first.size() == line.size()) continue;
    variables[std::string(absl::StripAsciiWhitespace(parts.first))] = std::string(absl::StripAsciiWhitespace(parts.second));
  }
  return variables;
}

Findings CheckAttach(const JobFacts& job) {
  Findings found;
  if (job.attach_path == "none")
    found.push_back(Warn("attach", "R2CC_ATTACH=none: the job does not use its node's daemon", "unset R2CC_ATTACH"));
  else if (!job.attach.ok())
    found.push_back(Fail("attach", std::string(job.attach.message()), "is r2ccd up, and its run directory mounted and open to this user?"));
  else
    found.push_back(Ok("attach", absl::StrCat(job.attach_path, " takes jobs")));
  return found;
}

Findings CheckJob(const JobFacts& job) {
  Findings found;
  CheckVariables(job, &found);
  CheckPlugin(job, &found);
  CheckRails(job, &found);
  CheckNccl(job, &found);
  CheckSystem(job, &found);
  return found;
}

}  // namespace r2cc::client
