#include "netplugin/rails/link_monitor.h"

namespace r2cc::net {

std::unique_ptr<LinkMonitor> LinkMonitor::Create(const std::vector<Rail>& rails, std::string* error) {
  auto socket = NetlinkSocket::Open(error);
  return socket == nullptr ? nullptr : std::unique_ptr<LinkMonitor>(new LinkMonitor(rails, std::move(socket)));
}

void LinkMonitor::Poll(std::vector<RailLinkEvent>* events) {
  std::vector<NetEvent> raw;
  socket_->Receive(&raw);
  for (const NetEvent& event : raw) tracker_.Apply(event, events);
}

}  // namespace r2cc::net
