#include "tools/perf/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdio>

#include "base/command_line/command_help.h"
#include "base/core/release.h"
#include "tools/perf/pattern.h"

namespace r2cc::perf {
namespace {

constexpr int kUsageExit = 2;
constexpr size_t kSizesMax = 100'000;
constexpr double kSizeBytesMax = 1e12;
constexpr int kLocalRanksMax = 256;
constexpr int kChannelsMax = 64;
constexpr int kChildrenMax = 64;
constexpr int kAggregateMax = 10'000;
constexpr abi::DataType kTypes[] = {abi::DataType::kFloat32, abi::DataType::kFloat16, abi::DataType::kBfloat16};

struct Text {
  std::string collective = "all_reduce";
  std::string type = "float";
  std::string min_bytes = "32M";
  std::string max_bytes;
  std::string step_bytes = "1M";
  double factor = 1;
  int check = 1;
  int slot_checks = 1;
  int ranks = 0;
  int nranks = 0;
};

void AddFlags(CLI::App* app, Text* text, Options* options) {
  app->add_option("collective,--collective", text->collective, "all_reduce (ring, float32 sum), sendrecv (to the next rank) or alltoall")
      ->capture_default_str();
  app->add_option("--plugin", options->plugin, "the net plugin: a path, or a name as in NCCL_NET_PLUGIN")->required();
  app->add_option("-b,--minbytes", text->min_bytes, "first size; suffixes K, M, G")->capture_default_str();
  app->add_option("-e,--maxbytes", text->max_bytes, "last size (default: the first)");
  app->add_option("-i,--stepbytes", text->step_bytes, "added from size to size, if -f is 1")->capture_default_str();
  app->add_option("-f,--stepfactor", text->factor, "multiplied from size to size")->capture_default_str();
  app->add_option("-n,--iters", options->iterations, "timed iterations of each size")->capture_default_str()->check(CLI::PositiveNumber);
  app->add_option("-w,--warmup_iters", options->warmup_iterations, "iterations before them")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  app->add_option("-m,--agg_iters", options->aggregate, "collectives that make one iteration, without a pause; times are of one")
      ->capture_default_str()
      ->check(CLI::Range(1, kAggregateMax));
  app->add_option("-c,--check", text->check, "1: check every element of every iteration")->capture_default_str()->check(CLI::Range(0, 1));
  app->add_option("-d,--datatype", text->type, "float, half or bfloat16")->capture_default_str();
  app->add_option("--random", options->random_seed,
                  "random values from this seed, so that sums are rounded: every result must be near the right one, and the "
                  "same to the bit in all iterations, on all ranks; its hash is printed");
  app->add_option("--slot-checks", text->slot_checks, "1: poison slots after use and look for late writes")
      ->capture_default_str()
      ->check(CLI::Range(0, 1));
  app->add_option("--ranks", text->ranks, "number of ranks to start on this machine")->check(CLI::Range(2, kLocalRanksMax));
  app->add_option("--rank", options->rank, "run this one rank of a job; with --nranks and --root")->check(CLI::NonNegativeNumber);
  app->add_option("--nranks", text->nranks, "ranks of that job")->check(CLI::Range(2, kRanksMax));
  app->add_option("--root", options->root, "HOST:PORT at which rank 0 listens (under a launcher by default MASTER_ADDR:MASTER_PORT)");
  app->add_option("--channels", options->channels, "channels; channel c uses device c mod devices (default: one per device)")
      ->check(CLI::Range(1, kChannelsMax));
  app->add_option("--seconds", options->seconds, "repeat the last size for this number of seconds")->check(CLI::NonNegativeNumber);
  app->add_option("--timeout", options->timeout_s, "fail if nothing completes for this number of seconds (0: never)")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  app->add_option("--idle-sleep-us", options->idle_sleep_us, "sleep of an idle progress loop (0: only yield)")
      ->capture_default_str()
      ->check(CLI::Range(0, 100'000));
  app->add_option("--progress", options->progress_s, "seconds between progress lines on standard error (0: none)")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  app->add_option("--net-version", options->table_version, "drive this version of the plugin's table: 11 or 8 (default: the newest)")
      ->check(CLI::IsMember({8, 11}));
  app->add_option("--profiler", options->profiler, "give the events of collectives to the profiler plugin of this path");
  app->add_option("--trace", options->trace_prefix, "append every completion to PREFIX.RANK.csv");
  app->add_option("--fork-children", options->fork_children,
                  "children that each rank forks once it is connected, and that sleep until it ends")
      ->capture_default_str()
      ->check(CLI::Range(0, kChildrenMax));
  app->add_option("--pin", options->pin, "processors of each rank, assigned in turn from the allowed ones (with --ranks)")
      ->check(CLI::Range(1, 1024));
  app->add_flag("--collnet", options->collnet, "the all_reduce by the plugin's CollNet table instead of a ring over its net table");
  app->add_flag("--json", options->json, "a JSON object as the last line of rank 0's output");
  app->add_flag("--debug", options->debug, "print the plugin's INFO messages too");
}

// Finds the launcher of the ranks. Empty: fine. Otherwise what is wrong, and the way out.
std::string ApplyRanks(const Text& text, const Environment& environment, Options* options) {
  if (text.ranks > 0 && options->rank >= 0) return "--ranks starts all ranks here and --rank runs one of a job; give one of them";
  if (options->pin > 0 && text.ranks == 0) return "--pin needs --ranks; pin a single rank when you start it, for example with taskset";
  if (text.ranks == 0 && options->rank < 0 && text.nranks == 0) {
    std::optional<LaunchedRank> launched;
    if (const Status status = FindLaunchedRank(environment, &launched); !status.ok()) return status.message();
    if (launched) {
      if (options->root.empty()) options->root = launched->root;
      if (options->root.empty())
        return "rank " + std::to_string(launched->rank) + " of " + std::to_string(launched->ranks) + " of " + launched->launcher +
               ", and where do they meet? --root HOST:PORT, or MASTER_ADDR and MASTER_PORT, name rank 0's machine and a free port there";
      options->rank = launched->rank;
      options->ranks = launched->ranks;
      return "";
    }
  }
  if (text.ranks == 0 && options->rank < 0)
    return "how many ranks? --ranks N starts them all here; --rank R --nranks N --root HOST:PORT runs one of a job";
  if (options->rank >= 0 && (text.nranks == 0 || options->root.empty())) return "--rank needs --nranks N and --root HOST:PORT";
  if (options->rank < 0 && (text.nranks > 0 || !options->root.empty())) return "--nranks and --root go with --rank";
  options->ranks = options->rank >= 0 ? text.nranks : text.ranks;
  if (options->rank >= options->ranks)
    return "--rank " + std::to_string(options->rank) + " is not below --nranks " + std::to_string(options->ranks);
  return "";
}

// Which values are added up. Empty: fine. Otherwise what is wrong, and the way out.
std::string ApplyValues(const Text& text, Options* options) {
  const auto type = std::find_if(std::begin(kTypes), std::end(kTypes), [&](abi::DataType each) { return text.type == TypeName(each); });
  if (type == std::end(kTypes)) return "-d: unknown type '" + text.type + "'; it is float, half or bfloat16";
  options->type = *type;
  if (options->type != abi::DataType::kFloat32 && !(options->collnet && options->random_seed.has_value()))
    return "-d " + text.type + " goes with --collnet and --random SEED: the exact values, and the ring, are of float";
  if (!options->random_seed.has_value()) return "";
  if (options->collective != Collective::kAllReduce) return "--random is for all_reduce: " + text.collective + " adds nothing up";
  return options->check ? "" : "--random compares results and -c 0 does not; leave one of them out";
}

// Empty: fine. Otherwise what is wrong, and the way out.
std::string Apply(const Text& text, const Environment& environment, Options* options) {
  const std::optional<Collective> collective = ParseCollective(text.collective);
  if (!collective) return "unknown collective '" + text.collective + "'; it is all_reduce, sendrecv or alltoall";
  options->collective = *collective;
  if (options->collnet && *collective != Collective::kAllReduce) return "--collnet is for all_reduce: the table has no " + text.collective;
  if (options->collnet && !options->profiler.empty()) return "--profiler is for the net table, not for --collnet";
  if (options->collnet && options->channels > 0) return "--channels is for the net table: with --collnet a rank has one group";
  options->check = text.check == 1;
  if (std::string wrong = ApplyValues(text, options); !wrong.empty()) return wrong;
  options->slot_checks = text.slot_checks == 1;

  const std::string& max_text = text.max_bytes.empty() ? text.min_bytes : text.max_bytes;
  const auto first = ParseSize(text.min_bytes), last = ParseSize(max_text), step = ParseSize(text.step_bytes);
  if (!first) return "-b: '" + text.min_bytes + "' is no size; write 8, 64K, 16M or 1G";
  if (!last) return "-e: '" + max_text + "' is no size; write 8, 64K, 16M or 1G";
  if (!step || *step == 0) return "-i: '" + text.step_bytes + "' is no step; write 4, 64K or 16M";
  if (*last < *first) return "-e " + max_text + " is less than -b " + text.min_bytes;
  if (!(text.factor >= 1)) return "-f must be at least 1";
  const auto sizes = SizesOf(*first, *last, text.factor, *step);
  if (!sizes)
    return "more than " + std::to_string(kSizesMax) + " sizes from " + text.min_bytes + " to " + max_text + "; use -f 2 or a larger -i";
  options->sizes_bytes = *sizes;

  return ApplyRanks(text, environment, options);
}

}  // namespace

std::string Options::Job() const {
  std::string job = std::string(CollectiveName(collective)) + " -n " + std::to_string(iterations) + " -w " +
                    std::to_string(warmup_iterations) + " -m " + std::to_string(aggregate) + " --channels " + std::to_string(channels) +
                    " -c " + std::to_string(check) + " sizes " + std::to_string(sizes_bytes.front()) + ".." +
                    std::to_string(sizes_bytes.back()) + " in " + std::to_string(sizes_bytes.size());
  if (collnet) job += " --collnet";
  return random_seed.has_value() ? job + " -d " + TypeName(type) + " --random " + std::to_string(*random_seed) : job;
}

const char* TypeName(abi::DataType type) {
  return type == abi::DataType::kFloat16 ? "half" : type == abi::DataType::kBfloat16 ? "bfloat16" : "float";
}

std::optional<int64_t> ParseSize(std::string_view text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || !(value >= 0)) return std::nullopt;
  std::string suffix(at, end);
  for (char& letter : suffix) letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  if (suffix.size() > 1 && suffix.back() == 'B') suffix.pop_back();
  if (suffix.size() > 1 && suffix.back() == 'I') suffix.pop_back();
  double scale = 1;
  if (suffix == "K") {
    scale = 1 << 10;
  } else if (suffix == "M") {
    scale = 1 << 20;
  } else if (suffix == "G") {
    scale = 1 << 30;
  } else if (!suffix.empty() && suffix != "B") {
    return std::nullopt;
  }
  const double bytes = value * scale;
  if (!(bytes <= kSizeBytesMax)) return std::nullopt;
  return static_cast<int64_t>(bytes);
}

std::optional<std::vector<int64_t>> SizesOf(int64_t first, int64_t last, double factor, int64_t step) {
  constexpr int64_t kAfterZero = 8;  // a factor leads nowhere from zero
  std::vector<int64_t> sizes;
  for (int64_t size = first; size <= last;) {
    if (sizes.size() == kSizesMax) return std::nullopt;
    sizes.push_back(size);
    if (factor > 1) {
      size = size == 0 ? kAfterZero : std::max(size + 1, static_cast<int64_t>(static_cast<double>(size) * factor + 0.5));
    } else {
      size += step;
    }
  }
  return sizes;
}

bool ParseOptions(int argc, char** argv, const Environment& environment, Options* options, int* exit_code) {
  CLI::App app("Drives an NCCL net plugin through its table, without a GPU: collectives between processes, every element checked.",
               "r2cc-perf");
  app.footer(
      "Under mpirun, srun or torchrun each process is one rank, by the launcher's environment, and needs none of --ranks, --rank, "
      "--nranks.\n"
      "Exit code: 0 all data right, 1 wrong data or a failure, 2 usage.\n"
      "Examples:\n"
      "  r2cc-perf --plugin libnccl-net-r2cc.so --ranks 4 -b 8 -e 64M -f 4\n"
      "  r2cc-perf alltoall --plugin libnccl-net-r2cc.so --rank 1 --nranks 4 --root 10.0.0.1:7500 -b 64M --seconds 60 --json\n"
      "  srun r2cc-perf --plugin libnccl-net-r2cc.so --root node1:7500 -b 64M\n"
      "  R2CC_TRANSPORT=verbs R2CC_RAILS=eth1,eth2 r2cc-perf --plugin libnccl-net-r2cc.so --rank 0 --nranks 2 --root node1:7500\n");
  app.set_version_flag("--version", VersionText("r2cc-perf", {{"net table", 8, 8}, {"net table", 11, 11}}));
  AddHelpJson(&app);
  Text text;
  AddFlags(&app, &text, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      *exit_code = app.exit(error);
    } else {
      fprintf(stderr, "r2cc-perf: %s (r2cc-perf --help lists the flags)\n", error.what());
      *exit_code = kUsageExit;
    }
    return false;
  }
  const std::string wrong = Apply(text, environment, options);
  if (wrong.empty()) return true;
  fprintf(stderr, "r2cc-perf: %s\n", wrong.c_str());
  *exit_code = kUsageExit;
  return false;
}

}  // namespace r2cc::perf
