#include "netplugin/transport/verbs/rail_port.h"

#include <cerrno>
#include <cstring>
#include <map>

namespace r2cc::net::verbs {
namespace {

// `names`: of devices that failed alike.
std::string CannotOpen(int failed, const std::string& names) {
  std::string text =
      "cannot open the RDMA device" + std::string(names.find(',') == std::string::npos ? " " : "s ") + names + ": " + std::strerror(failed);
  // rdma-core looks for the file elsewhere when it may not open it, and says that there is none.
  if (failed == EACCES || failed == EPERM || failed == ENOENT)
    return text + "; allow this user to open /dev/infiniband/uverbs*, or set R2CC_TRANSPORT=tcp";
  return text + "; dmesg may show the cause; R2CC_TRANSPORT=tcp uses no RDMA";
}

}  // namespace

std::vector<PortFacts> ListPorts(Verbs* verbs, std::string* error) {
  std::vector<PortFacts> ports;
  std::vector<DeviceInfo> devices;
  if (const int failed = verbs->Devices(&devices); failed != 0)
    *error = std::string("R2CC: cannot list the RDMA devices: ") + std::strerror(failed);
  std::map<int, std::string> refused;  // names, by errno
  for (const DeviceInfo& device : devices) {
    ContextId context{};
    int async_fd = -1;
    if (const int failed = verbs->Open(device.name, &context, &async_fd); failed != 0) {
      std::string& names = refused[failed];
      names += (names.empty() ? "" : ", ") + device.name;
      continue;
    }
    DeviceLimits limits;
    verbs->QueryDevice(context, &limits);
    for (uint8_t port = 1; port <= limits.ports; ++port) ports.push_back(ReadPortFacts(verbs, context, device, port));
    verbs->Close(context);
  }
  if (!refused.empty()) *error = "R2CC: ";
  for (const auto& [failed, names] : refused) *error += (*error == "R2CC: " ? "" : "; ") + CannotOpen(failed, names);
  return ports;
}

}  // namespace r2cc::net::verbs
