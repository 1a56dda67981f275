#include "netplugin/transport/verbs/rail_port.h"

#include <cerrno>
#include <cstring>

namespace r2cc::net::verbs {

std::vector<PortFacts> ListPorts(Verbs* verbs, std::string* error) {
  std::vector<PortFacts> ports;
  std::vector<DeviceInfo> devices;
  if (const int failed = verbs->Devices(&devices); failed != 0)
    *error = std::string("R2CC: cannot list the RDMA devices: ") + std::strerror(failed);
  for (const DeviceInfo& device : devices) {
    ContextId context{};
    int async_fd = -1;
    if (const int failed = verbs->Open(device.name, &context, &async_fd); failed != 0) {
      *error = "R2CC: cannot open the RDMA device " + device.name + ": " + std::strerror(failed);
      // rdma-core looks for the file elsewhere when it may not open it, and says that there is none.
      if (failed == EACCES || failed == EPERM || failed == ENOENT)
        *error += "; allow this user to open /dev/infiniband/uverbs*, or set R2CC_TRANSPORT=tcp";
      else
        *error += "; the kernel's log may say why, and R2CC_TRANSPORT=tcp does without";
      continue;
    }
    DeviceLimits limits;
    verbs->QueryDevice(context, &limits);
    for (uint8_t port = 1; port <= limits.ports; ++port) ports.push_back(ReadPortFacts(verbs, context, device, port));
    verbs->Close(context);
  }
  return ports;
}

}  // namespace r2cc::net::verbs
