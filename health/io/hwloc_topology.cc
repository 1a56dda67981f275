#include "health/io/hwloc_topology.h"

#include <errno.h>
#include <hwloc.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace r2cc::health {
namespace {

using PciAttributes = hwloc_obj_attr_u::hwloc_pcidev_attr_s;

// Classes of the PCI Code and ID Assignment Specification: base class, then subclass.
constexpr int kBaseNetwork = 0x02;
constexpr int kBaseDisplay = 0x03;
constexpr int kBaseAccelerator = 0x12;
constexpr int kDisplay3d = 0x0302;
constexpr int kSerialInfiniband = 0x0c06;
constexpr int kVendorNvidia = 0x10de;
constexpr int kVendorAmd = 0x1002;

bool IsGpu(const PciAttributes& device) {
  const int base = device.class_id >> 8;
  if (device.class_id == kDisplay3d || base == kBaseAccelerator) return true;
  return base == kBaseDisplay && (device.vendor_id == kVendorNvidia || device.vendor_id == kVendorAmd);
}

bool IsNic(const PciAttributes& device) { return device.class_id >> 8 == kBaseNetwork || device.class_id == kSerialInfiniband; }

struct Found {
  PciDevice device;
  hwloc_obj_t object;
};

int NumaNodeOf(hwloc_topology_t topology, hwloc_obj_t object) {
  const hwloc_obj_t local = hwloc_get_non_io_ancestor_obj(topology, object);
  if (local == nullptr || local->nodeset == nullptr || hwloc_bitmap_weight(local->nodeset) != 1) return -1;
  return hwloc_bitmap_first(local->nodeset);
}

bool IsHostBridge(hwloc_obj_t object) {
  return object->type == HWLOC_OBJ_BRIDGE && object->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_HOST;
}

// hwloc's own function counts on depths, which devices and bridges do not have.
hwloc_obj_t CommonAncestor(hwloc_obj_t a, hwloc_obj_t b) {
  for (; a != nullptr; a = a->parent)
    for (hwloc_obj_t other = b; other != nullptr; other = other->parent)
      if (other == a) return a;
  return nullptr;
}

int StepsUp(hwloc_obj_t object, hwloc_obj_t ancestor) {
  int steps = 0;
  for (; object != ancestor; object = object->parent) ++steps;
  return steps;
}

bool OneCard(const PciAttributes& a, const PciAttributes& b) { return a.domain == b.domain && a.bus == b.bus && a.dev == b.dev; }

PcieDistance DistanceOf(const Found& a, const Found& b) {
  if (OneCard(a.object->attr->pcidev, b.object->attr->pcidev)) return PcieDistance::kSameDevice;
  const hwloc_obj_t common = CommonAncestor(a.object, b.object);
  if (common != nullptr && IsHostBridge(common)) return PcieDistance::kSameHostBridge;
  if (common != nullptr && common->type == HWLOC_OBJ_BRIDGE) {
    // Below a switch's upstream port a device is behind one downstream port, and deeper behind another switch.
    const int deepest = std::max(StepsUp(a.object, common), StepsUp(b.object, common));
    return deepest <= 2 ? PcieDistance::kSameSwitch : PcieDistance::kSameSwitches;
  }
  return a.device.numa_node >= 0 && a.device.numa_node == b.device.numa_node ? PcieDistance::kSameNuma : PcieDistance::kSameMachine;
}

std::vector<std::vector<PcieDistance>> Distances(const std::vector<Found>& from, const std::vector<Found>& to) {
  std::vector<std::vector<PcieDistance>> rows;
  for (const Found& a : from) {
    std::vector<PcieDistance>& row = rows.emplace_back();
    for (const Found& b : to) row.push_back(DistanceOf(a, b));
  }
  return rows;
}

std::vector<PciDevice> Devices(const std::vector<Found>& found) {
  std::vector<PciDevice> devices;
  for (const Found& one : found) devices.push_back(one.device);
  return devices;
}

}  // namespace

absl::StatusOr<NodeTopology> HwlocTopology::Read() const {
  const std::string source = xml_file_.empty() ? "this machine" : xml_file_;
  const auto failed = [&source](const char* what) {
    return absl::InternalError(absl::StrCat("hwloc cannot ", what, " the topology of ", source, ": ", strerror(errno)));
  };
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return failed("make");
  const std::unique_ptr<hwloc_topology, void (*)(hwloc_topology_t)> topology(raw, hwloc_topology_destroy);
  if (!xml_file_.empty() && hwloc_topology_set_xml(raw, xml_file_.c_str()) != 0) return failed("read");
  // Nothing is asked for but NUMA nodes and the PCI tree.
  hwloc_topology_set_all_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_NONE);
  hwloc_topology_set_type_filter(raw, HWLOC_OBJ_PACKAGE, HWLOC_TYPE_FILTER_KEEP_ALL);
  hwloc_topology_set_type_filter(raw, HWLOC_OBJ_GROUP, HWLOC_TYPE_FILTER_KEEP_STRUCTURE);
  hwloc_topology_set_type_filter(raw, HWLOC_OBJ_BRIDGE, HWLOC_TYPE_FILTER_KEEP_ALL);
  hwloc_topology_set_type_filter(raw, HWLOC_OBJ_PCI_DEVICE, HWLOC_TYPE_FILTER_KEEP_ALL);
  // Not cut down to what this process may use: a daemon in a small cgroup watches the whole node.
  hwloc_topology_set_flags(raw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
  if (hwloc_topology_load(raw) != 0) return failed("load");

  std::vector<Found> gpus, nics;
  for (hwloc_obj_t object = hwloc_get_next_pcidev(raw, nullptr); object != nullptr; object = hwloc_get_next_pcidev(raw, object)) {
    const PciAttributes& device = object->attr->pcidev;
    if (!IsGpu(device) && !IsNic(device)) continue;
    const Found found = {
        {absl::StrFormat("%04x:%02x:%02x.%x", device.domain, device.bus, device.dev, device.func), NumaNodeOf(raw, object)}, object};
    (IsGpu(device) ? gpus : nics).push_back(found);
  }
  for (auto* list : {&gpus, &nics})
    std::sort(list->begin(), list->end(), [](const Found& a, const Found& b) { return a.device.pci < b.device.pci; });
  return NodeTopology{Devices(gpus), Devices(nics), Distances(gpus, nics), Distances(nics, nics)};
}

}  // namespace r2cc::health
