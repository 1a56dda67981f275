#include "tests/rigs/hardware/hardware.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <system_error>

namespace r2cc::rig {
namespace {

constexpr size_t kCablesMost = 4;  // rails of the contract's tests
constexpr char kWanted[] = "' is not DEVICE+DEVICE, the two ends of a cable, as in R2CC_HW=\"mlx5_0+mlx5_2 mlx5_1+mlx5_3\"";

std::string LineOf(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::filesystem::path FolderOf(const std::string& device, const std::string& sysfs) {
  return std::filesystem::path(sysfs) / "class/infiniband" / device;
}

// What its entries of the table of GIDs stand behind.
std::string InterfaceOf(const std::filesystem::path& folder) {
  std::error_code error;
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "ports/1/gid_attrs/ndevs", error))
    if (const std::string name = LineOf(entry.path()); !name.empty()) names.insert(name);
  return names.empty() ? "" : *names.begin();
}

bool FindEnd(const std::string& device, const std::string& sysfs, HardwareEnd* end, std::string* error) {
  const std::filesystem::path folder = FolderOf(device, sysfs);
  std::error_code ignored;
  if (!std::filesystem::exists(folder, ignored)) {
    *error = "R2CC_HW: this machine has no RDMA device '" + device + "'; it has:";
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder.parent_path(), ignored)) names.insert(entry.path().filename());
    for (const std::string& name : names) *error += " " + name;
    if (names.empty()) *error += " none";
    return false;
  }
  end->device = device;
  end->interface = InterfaceOf(folder);
  if (end->interface.empty()) *error = "R2CC_HW: no network interface is behind port 1 of " + device + ": set its interface up";
  return !end->interface.empty();
}

}  // namespace

bool FindHardware(const char* text, const std::string& sysfs, std::vector<HardwareCable>* cables, std::string* error) {
  cables->clear();
  std::istringstream words(text != nullptr ? text : "");
  std::set<std::string> devices;
  for (std::string word; words >> word;) {
    const size_t plus = word.find('+');
    const std::string names[2] = {word.substr(0, plus), plus == std::string::npos ? "" : word.substr(plus + 1)};
    const auto good = [](const std::string& name) { return !name.empty() && name.find_first_of("+/.") == std::string::npos; };
    if (!good(names[0]) || !good(names[1])) return *error = "R2CC_HW: '" + word + kWanted, false;
    HardwareCable cable;
    for (int i = 0; i < 2; ++i) {
      if (!devices.insert(names[i]).second) return *error = "R2CC_HW: " + names[i] + " stands there twice: it has one cable", false;
      if (!FindEnd(names[i], sysfs, &cable.ends[i], error)) return false;
    }
    if (cables->size() == kCablesMost) return *error = "R2CC_HW: more than " + std::to_string(kCablesMost) + " cables", false;
    cables->push_back(cable);
  }
  return true;
}

std::string Describe(const HardwareEnd& end, const std::string& sysfs) {
  const std::filesystem::path folder = FolderOf(end.device, sysfs);
  std::error_code error;
  const auto driver = std::filesystem::read_symlink(folder / "device/driver", error).filename().string();
  const auto known = [](const std::string& value) { return value.empty() ? "unknown" : value; };
  return end.device + " on " + end.interface + ": driver " + (driver.empty() ? "of no bus (soft-RoCE has none)" : driver) + ", firmware " +
         known(LineOf(folder / "fw_ver")) + ", " + known(LineOf(folder / "ports/1/link_layer")) + ", rate " +
         known(LineOf(folder / "ports/1/rate"));
}

}  // namespace r2cc::rig
