// For LD_PRELOAD in a job's process: reports through the plugin's table what libr2cc-nccl.so would, once the plugin runs: two switches of
// one communicator, one of another.
#include <dlfcn.h>
#include <link.h>
#include <poll.h>

#include <cstring>
#include <string>
#include <thread>

#include "netplugin/abi/seat_v2.h"

namespace {

int IsPlugin(dl_phdr_info* info, size_t, void* path) {
  if (std::strstr(info->dlpi_name, "libnccl-net-r2cc") == nullptr) return 0;
  *static_cast<std::string*>(path) = info->dlpi_name;
  return 1;
}

const r2cc::abi::SeatTableV2* FindTable() {
  std::string path;
  if (dl_iterate_phdr(IsPlugin, &path) == 0) return nullptr;
  void* const library = dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  return library == nullptr ? nullptr : static_cast<const r2cc::abi::SeatTableV2*>(dlsym(library, "r2cc_seat_v2"));
}

[[gnu::constructor]] void Begin() {
  std::thread([] {
    const r2cc::abi::SeatTableV2* table = nullptr;
    while ((table = FindTable()) == nullptr || table->rails() == 0 || table->kept_permille() < 0) poll(nullptr, 0, 10);
    using r2cc::abi::SeatReport;
    using r2cc::abi::SeatWay;
    const SeatReport reports[] = {
        {.communicator = 3, .way = SeatWay::kTree, .call = 512, .bytes_min = 16 << 20, .expected_permille = 660, .zero = 0},
        {.communicator = 4, .way = SeatWay::kCollNet, .call = 768, .bytes_min = 64 << 20, .expected_permille = 880, .zero = 0},
        {.communicator = 3, .way = SeatWay::kUsual, .call = 51200, .bytes_min = 0, .expected_permille = 1000, .zero = 0}};
    for (const SeatReport& report : reports) table->report(&report);
  }).detach();
}

}  // namespace
