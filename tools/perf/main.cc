// r2cc-perf: drives any NCCL net plugin without a GPU, with the columns of nccl-tests.
#include <cstdio>
#include <cstdlib>

#include "tools/perf/bootstrap.h"
#include "tools/perf/launcher.h"
#include "tools/perf/options.h"
#include "tools/perf/rank.h"

int main(int argc, char** argv) {
  r2cc::perf::Options options;
  int exit_code = 0;
  if (!r2cc::perf::ParseOptions(
          argc, argv, [](const char* name) { return std::getenv(name); }, &options, &exit_code))
    return exit_code;
  if (options.rank < 0) return r2cc::perf::LaunchLocalRanks(options);
  int listen_fd = -1;
  if (options.rank == 0) {
    int port = 0;
    const r2cc::perf::Status status = r2cc::perf::ListenTcp(options.root, &listen_fd, &port);
    if (!status.ok()) {
      fprintf(stderr, "r2cc-perf: %s\n", status.message().c_str());
      return 1;
    }
  }
  return r2cc::perf::RunRank(options, options.rank, listen_fd);
}
