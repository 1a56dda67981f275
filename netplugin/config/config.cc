#include "netplugin/config/config.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <string_view>

namespace r2cc::net {
namespace {

constexpr size_t kNameCharsMax = 63;         // of a node or job: fields of 64 bytes in pages and packets
constexpr size_t kSocketPathCharsMax = 107;  // sockaddr_un
constexpr size_t kAlgorithmCharsMax = 15;    // TCP_CA_NAME_MAX with its end
constexpr int64_t kDayMs = 24 * 60 * 60 * 1000;
// Beyond this distance a suggestion is a guess.
constexpr size_t kTyposMax = 3;

// What the environment of a whole system may hold without the plugin's caring.
constexpr std::string_view kOthersVariables[] = {"R2CC_REQUIRE"};

bool IsName(const std::string& text) {
  return text.size() <= kNameCharsMax && std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7f && c != '/'; });
}

bool SetNumber(const std::string& text, int64_t least, int64_t most, int64_t* value) {
  if (text.empty() || text.size() > 15) return false;
  int64_t number = 0;
  for (char c : text) {
    if (c < '0' || c > '9') return false;
    number = number * 10 + (c - '0');
  }
  if (number < least || number > most) return false;
  *value = number;
  return true;
}

bool SetFlag(const std::string& text, bool* value) {
  *value = text == "1";
  return text == "0" || text == "1";
}

bool SetTransport(const std::string& value, PluginConfig* config) {
  if (value == "auto") config->transport = TransportOption::kAuto;
  if (value == "tcp") config->transport = TransportOption::kTcp;
  if (value == "verbs") config->transport = TransportOption::kVerbs;
  return value == "auto" || value == "tcp" || value == "verbs";
}

bool SetAttach(const std::string& value, PluginConfig* config, std::string* why) {
  config->attach_socket = value == "none" ? "" : value;
  if (value.size() > kSocketPathCharsMax) *why = "a Unix socket's path has at most " + std::to_string(kSocketPathCharsMax) + " characters";
  return value == "none" || (value[0] == '/' && value.size() <= kSocketPathCharsMax);
}

bool SetName(const std::string& value, std::string* name) {
  *name = value;
  return IsName(value);
}

bool SetMode(const std::string& value, PluginConfig* config) {
  int64_t number = 0;
  if (!SetNumber(value, 0, 3, &number)) return false;
  config->mode = static_cast<Mode>(number);
  return true;
}

bool SetFailRails(const std::string& value, PluginConfig* config, std::string* why) {
  std::set<std::string> seen;
  config->fail_rails.clear();
  for (size_t begin = 0; begin <= value.size();) {
    const size_t end = std::min(value.find(',', begin), value.size());
    const std::string item = value.substr(begin, end - begin);
    const size_t at = item.find('@');
    FailRail rail{item.substr(0, at), 0};
    if (rail.rail.empty() || (at != std::string::npos && !SetNumber(item.substr(at + 1), 0, kDayMs, &rail.after_ms))) return false;
    if (!seen.insert(rail.rail).second) {
      *why = rail.rail + " is there twice";
      return false;
    }
    config->fail_rails.push_back(rail);
    begin = end + 1;
  }
  return true;
}

bool SetSockets(const std::string& value, PluginConfig* config) {
  int64_t number = 0;
  if (!SetNumber(value, 1, 16, &number)) return false;
  config->sockets_per_rail = static_cast<int>(number);
  return true;
}

bool SetBulkThreads(const std::string& value, PluginConfig* config) {
  int64_t number = 0;
  if (!SetNumber(value, 0, 16, &number)) return false;
  config->bulk_threads = static_cast<int>(number);
  return true;
}

bool SetCollNetMinBytes(const std::string& value, PluginConfig* config) {
  int64_t number = 0;
  if (!SetNumber(value, 0, 1'000'000'000'000, &number)) return false;
  config->collnet_min_bytes = static_cast<uint64_t>(number);
  return true;
}

bool SetLog(const std::string& value, PluginConfig* config) {
  config->log = value == "debug" ? LogLevel::kDebug : value == "info" ? LogLevel::kInfo : LogLevel::kWarn;
  return value == "warn" || value == "info" || value == "debug";
}

bool SetChunkBytes(const std::string& value, PluginConfig* config) {
  int64_t number = 0;
  if (!SetNumber(value, 4096, 4 << 20, &number) || number % 128 != 0) return false;
  config->chunk_bytes = static_cast<uint32_t>(number);
  return true;
}

// For the error line: printable and short, whatever the environment holds.
std::string Shown(std::string_view value) {
  std::string shown(value.substr(0, 80));
  for (char& c : shown)
    if (c < 0x20 || c > 0x7e) c = '?';
  return value.size() > 80 ? shown + "..." : shown;
}

size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

std::string WarningFor(std::string_view name) {
  const Variable* nearest = nullptr;
  size_t distance = kTyposMax + 1;
  for (const Variable& variable : Variables()) {
    const size_t d = EditDistance(name, variable.name);
    if (d < distance) {
      distance = d;
      nearest = &variable;
    }
  }
  std::string line = Shown(name) + " is not a variable of R2CC: ignored";
  if (nearest != nullptr) line += std::string(" (did you mean ") + nearest->name + "?)";
  return line;
}

}  // namespace

const std::vector<Variable>& Variables() {
  static const std::vector<Variable>* const table = new std::vector<Variable>{
      {"R2CC_RAILS",
       "interfaces, IP addresses, RDMA devices or patterns (mlx5_*), comma separated; ~ first: those that exist; or ^ and those that are "
       "no rails",
       "", "the NICs of r2ccd, or every usable one: a job should not need to know its node",
       [](const std::string& v, PluginConfig* c, std::string*) { return c->rails = v, true; }},
      {"R2CC_TRANSPORT", "auto, tcp or verbs", "tcp", "RDMA rails are new: a job has to ask for them",
       [](const std::string& v, PluginConfig* c, std::string*) { return SetTransport(v, c); }},
      {"R2CC_OOB_IFNAME", "an interface or an IP address", "", "the first interface that is no rail keeps control apart from data",
       [](const std::string& v, PluginConfig* c, std::string*) { return c->oob_ifname = v, true; }},
      {"R2CC_ATTACH", "an absolute path of r2ccd's attach socket, or none", "/run/r2cc/attach.sock", "where r2ccd listens by default",
       SetAttach},
      {"R2CC_NODE", "up to 63 printable characters without blanks and /", "", "the host's name, unless a daemon gives the node another",
       [](const std::string& v, PluginConfig* c, std::string*) { return SetName(v, &c->node); }},
      {"R2CC_JOB", "up to 63 printable characters without blanks and /", "", "the program's name distinguishes jobs of one node",
       [](const std::string& v, PluginConfig* c, std::string*) { return SetName(v, &c->job); }},
      {"R2CC_MODE", "0 (one rail per flow), 1 (migration), 2 (and balance) or 3 (and degraded AllReduce)", "",
       "the planner decides; fixed modes are for tests and comparisons",
       [](const std::string& v, PluginConfig* c, std::string*) { return SetMode(v, c); }},
      {"R2CC_FAIL_RAILS", "NAME[@ms],...: rails to lose on purpose, each that many milliseconds after the start", "", "no drill",
       SetFailRails},
      {"R2CC_DEADLINE_MS", "milliseconds, 100 to 86400000", "30000",
       "well above any failover, well below the shortest usual watchdog of an application (minutes)",
       [](const std::string& v, PluginConfig* c, std::string*) { return SetNumber(v, 100, kDayMs, &c->deadline_ms); }},
      {"R2CC_SILENCE_MS", "milliseconds, 20 to 60000", "250", "above a retransmission timeout of TCP (200 ms), below what a user notices",
       [](const std::string& v, PluginConfig* c, std::string*) { return SetNumber(v, 20, 60'000, &c->silence_ms); }},
      {"R2CC_SOCKETS_PER_RAIL", "1 to 16", "",
       "TCP streams of bulk: one, and up to 4 where there are threads of R2CC_BULK_THREADS to fill them; more costs memory and wake-ups",
       [](const std::string& v, PluginConfig* c, std::string*) { return SetSockets(v, c); }},
      {"R2CC_TCP_CONGESTION", "system or a congestion control of this kernel's, up to 15 characters", "",
       "the system's, but for BBR, which all but stops a connection for 0.2 s every 10 s and paces it with a timer: cubic then, or reno",
       [](const std::string& v, PluginConfig* c, std::string*) { return c->tcp_congestion = v, v.size() <= kAlgorithmCharsMax; }},
      {"R2CC_LINK_MONITOR", "0 or 1", "1", "the kernel reports a lost link before any socket does",
       [](const std::string& v, PluginConfig* c, std::string*) { return SetFlag(v, &c->link_monitor); }},
      {"R2CC_BULK_THREADS", "0 to 16", "",
       "threads that move messages over 12 KiB in addition to NCCL's: three of four processors that the process may use, at most 16; below "
       "8 half "
       "of those beyond 4",
       [](const std::string& v, PluginConfig* c, std::string*) { return SetBulkThreads(v, c); }},
      {"R2CC_COLLNET_MIN_BYTES", "bytes, 0 to 1000000000000, the same on all ranks", "",
       "there is no size from which on CollNet gains while all rails are there (docs/results/tables.md), so NCCL's estimates choose",
       [](const std::string& v, PluginConfig* c, std::string*) { return SetCollNetMinBytes(v, c); }},
      {"R2CC_COLLNET_DEADLINE_MS", "milliseconds, 1000 to 86400000", "1800000",
       "above the 10 minutes after which PyTorch ends a job; a member that saves a checkpoint is no fault",
       [](const std::string& v, PluginConfig* c, std::string*) { return SetNumber(v, 1000, kDayMs, &c->collnet_deadline_ms); }},
      {"R2CC_CHECKSUM", "0 or 1", "0", "TCP and the NIC check already; a CRC of each chunk costs CPU",
       [](const std::string& v, PluginConfig* c, std::string*) { return SetFlag(v, &c->checksum); }},
      {"R2CC_SEAT", "0 or 1, the same on all ranks", "0",
       "sums of floats are as right in another order, but not the same to the bit; libr2cc-nccl.so in LD_PRELOAD reads it",
       [](const std::string& v, PluginConfig* c, std::string*) { return SetFlag(v, &c->seat); }},
      {"R2CC_SEAT_EVERY", "calls, 2 to 1000000, the same on all ranks", "256",
       "of AllReduce, between two agreements of all ranks: a tiny AllReduce each, less than a thousandth of the time",
       [](const std::string& v, PluginConfig* c, std::string*) { return SetNumber(v, 2, 1'000'000, &c->seat_every); }},
      {"R2CC_LOG", "warn, info or debug", "warn", "a healthy job logs nothing",
       [](const std::string& v, PluginConfig* c, std::string*) { return SetLog(v, c); }},
      {"R2CC_CHUNK_BYTES", "a multiple of 128 from 4096 to 4194304", "",
       "131072, eight chunks in NCCL's 1 MiB slice: fine enough to share among rails; up to 524288, fewer turns, on rails that are quick; "
       "down to 32768 next to slow ones, for which messages would wait",
       [](const std::string& v, PluginConfig* c, std::string*) { return SetChunkBytes(v, c); }},
  };
  return *table;
}

bool LoadConfig(const GetEnv& get, PluginConfig* out, std::string* error) {
  PluginConfig config;
  for (const Variable& variable : Variables()) {
    const char* given = get(variable.name);
    const std::string value = given != nullptr && *given != '\0' ? given : variable.default_text;
    std::string why;
    if (value.empty() || variable.set(value, &config, &why)) continue;
    *error = std::string(variable.name) + "=" + Shown(value) + ": " + (why.empty() ? "" : why + "; ") + "want " + variable.allowed;
    return false;
  }
  if (config.silence_ms >= config.deadline_ms) {
    *error = "R2CC_SILENCE_MS=" + std::to_string(config.silence_ms) + ": want less than R2CC_DEADLINE_MS (" +
             std::to_string(config.deadline_ms) + ")";
    return false;
  }
  *out = std::move(config);
  return true;
}

std::vector<std::string> UnknownVariables(const char* const* environment) {
  std::vector<std::string> warnings;
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    std::string_view name = *environment;
    name = name.substr(0, name.find('='));
    if (name.substr(0, 5) != "R2CC_") continue;
    const bool known = std::any_of(Variables().begin(), Variables().end(), [&](const Variable& v) { return name == v.name; }) ||
                       std::count(std::begin(kOthersVariables), std::end(kOthersVariables), name) > 0;
    if (!known) warnings.push_back(WarningFor(name));
  }
  return warnings;
}

}  // namespace r2cc::net
