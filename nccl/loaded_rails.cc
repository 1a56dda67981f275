#include "nccl/loaded_rails.h"

#include <dlfcn.h>
#include <link.h>

#include <string>
#include <vector>

namespace r2cc::nccl {
namespace {

int AddName(dl_phdr_info* info, size_t, void* names) {
  if (info->dlpi_name != nullptr && *info->dlpi_name != '\0') static_cast<std::vector<std::string>*>(names)->emplace_back(info->dlpi_name);
  return 0;
}

}  // namespace

bool LoadedRails::Find() {
  const std::lock_guard lock(mutex_);
  if (plugin_ != nullptr && tuner_ != nullptr) return true;
  // Whatever the files are called.
  std::vector<std::string> names;
  dl_iterate_phdr(AddName, &names);
  for (const std::string& name : names) {
    if (name.find("nccl") == std::string::npos && name.find("r2cc") == std::string::npos) continue;
    void* const library = dlopen(name.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr) continue;
    if (plugin_ == nullptr) plugin_ = static_cast<const abi::SeatTableV1*>(dlsym(library, "r2cc_seat_v1"));
    if (tuner_ == nullptr) tuner_ = static_cast<const abi::SeatTunerTableV1*>(dlsym(library, "r2cc_seat_tuner_v1"));
    if (dlsym(library, "r2cc_seat_v1") == nullptr && dlsym(library, "r2cc_seat_tuner_v1") == nullptr) dlclose(library);
  }
  return plugin_ != nullptr && tuner_ != nullptr;
}

Rails::State LoadedRails::Look() {
  if (!Find()) return {};
  const int kept = plugin_->kept_permille();
  const int rails = plugin_->rails();
  if (kept < 0 || rails < 1) return {};
  return {true, plugin_->node_key(), static_cast<uint32_t>(kept), static_cast<uint32_t>(rails)};
}

void LoadedRails::WatchForSeat(size_t ranks) {
  if (!Find()) return;
  tuner_->watch(ranks);
  plugin_->watch();
}

bool LoadedRails::MarkSeat() {
  if (!Find()) return false;
  // Before NCCL 2.28 the plugin cannot tell communicators apart: their flows stay on their own rails, and the seat is a little slower.
  plugin_->mark();
  return tuner_->mark() != 0;
}

}  // namespace r2cc::nccl
