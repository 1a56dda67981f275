// A program of four ranks that knows nothing of seats. Its second node loses half of its rails, or keeps SPECIMEN_KEPT permille, and gets
// them back. It prints how many of 40 AllReduces in each of three phases a child or CollNet did, on its first rank, and how many
// communicators are left. With OPENS_NCCL it is not
// linked to NCCL, and opens it for itself alone. SPECIMEN_SPLITS=1: by a communicator that the program has split off.
// SPECIMEN_SKIPS=CALL: its third rank leaves out that AllReduce.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "tests/seat/stub_nccl.h"

using r2cc::nccl::Comm;
using r2cc::nccl::Result;

namespace {

constexpr int kRanks = 4, kPhases = 3, kCalls = 40;
constexpr size_t kElements = 16 << 20;

#ifdef OPENS_NCCL
void* const nccl = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
#define NCCL(name) const auto name = reinterpret_cast<decltype(&::name)>(dlsym(nccl, #name))
#else
#define NCCL(name) const auto name = &::name
#endif

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  void* const rails = dlopen(argv[1], RTLD_NOW);
  if (rails == nullptr) return 3;
  NCCL(ncclGetUniqueId);
  NCCL(ncclCommInitRank);
  NCCL(pncclCommInitRank);
  NCCL(ncclCommSplit);
  NCCL(pncclCommSplit);
  NCCL(stub_redirected);
  NCCL(stub_set_tuner);
  NCCL(stub_alive);
  NCCL(ncclAllReduce);
  NCCL(ncclAllGather);
  NCCL(ncclCommGetAsyncError);
  NCCL(ncclCommDestroy);
  const auto own_node = reinterpret_cast<void (*)(int)>(dlsym(rails, "stub_own_node"));
  const auto keep = reinterpret_cast<void (*)(int)>(dlsym(rails, "stub_keep"));
  stub_set_tuner(reinterpret_cast<int (*)()>(dlsym(rails, "stub_by_collnet")));
  const char* const kept_text = std::getenv("SPECIMEN_KEPT");
  const int kept = kept_text == nullptr ? 500 : std::atoi(kept_text);
  Comm comms[kRanks];
  r2cc::nccl::UniqueId id{};
  if (ncclGetUniqueId(&id) != Result::kSuccess) return 4;
  // A rank that calls NCCL directly.
  const char* const bare_text = std::getenv("SPECIMEN_BARE");
  const int bare = bare_text == nullptr ? -1 : std::atoi(bare_text);
  const char* const skips_text = std::getenv("SPECIMEN_SKIPS");
  const int skipped = skips_text == nullptr ? -1 : std::atoi(skips_text);
  const bool splits = std::getenv("SPECIMEN_SPLITS") != nullptr;
  int wrong[kRanks] = {};
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < kRanks; ++rank)
    ranks.emplace_back([&, rank] {
      own_node(rank);
      if ((rank == bare ? pncclCommInitRank : ncclCommInitRank)(&comms[rank], kRanks, id, rank) != Result::kSuccess) ++wrong[rank];
      if (splits) {
        const Comm whole = comms[rank];
        int config = 0;
        if ((rank == bare ? pncclCommSplit : ncclCommSplit)(whole, 0, rank, &comms[rank], &config) != Result::kSuccess) ++wrong[rank];
        if (ncclCommDestroy(whole) != Result::kSuccess) ++wrong[rank];
      }
      int before = 0;
      for (int phase = 0; phase < kPhases; ++phase) {
        if (rank == 1) keep(phase == 1 ? kept : 1000);
        for (int call = 0; call < kCalls; ++call) {
          const float one = static_cast<float>(rank + call);
          float sum = -1;
          const bool skips = rank == 2 && phase * kCalls + call == skipped;
          if (!skips && (ncclAllReduce(&one, &sum, kElements, 7, 0, comms[rank], nullptr) != Result::kSuccess ||
                         sum != static_cast<float>(6 + kRanks * call)))
            ++wrong[rank];
          if (ncclAllGather(nullptr, nullptr, 0, 7, comms[rank], nullptr) != Result::kSuccess) ++wrong[rank];
          Result error = Result::kInternalError;
          if (ncclCommGetAsyncError(comms[rank], &error) != Result::kSuccess || error != Result::kSuccess) ++wrong[rank];
        }
        const int now = stub_redirected();
        if (rank == 0) std::printf("phase %d: %d of %d redirected\n", phase, now - before, kCalls);
        before = now;
      }
      if (ncclCommDestroy(comms[rank]) != Result::kSuccess) ++wrong[rank];
    });
  for (std::thread& rank : ranks) rank.join();
  std::printf("wrong %d, left %d\n", wrong[0] + wrong[1] + wrong[2] + wrong[3], stub_alive());
  return 0;
}
