#include "netplugin/transport/rail_transports.h"

#include <utility>

namespace r2cc::net {
namespace {

constexpr char kAskedFor[] = ", and R2CC_TRANSPORT=verbs asks for one on each rail: name others in R2CC_RAILS, or set it to auto";

}  // namespace

bool RailTransports::Make(const MakeTransport& make, const TransportParts& parts, std::string* error) {
  auto made = make(parts, error);
  if (made != nullptr) {
    others_.push_back(std::move(made));
    return true;
  }
  if (option_ == TransportOption::kVerbs) {
    *error += kAskedFor;
    return false;
  }
  return true;
}

std::vector<Transport*> RailTransports::all() const {
  std::vector<Transport*> all = {oob_.get()};
  for (const auto& other : others_) all.push_back(other.get());
  return all;
}

std::vector<Transport*> RailTransports::on_rails() const {
  std::vector<Transport*> all;
  if (option_ != TransportOption::kVerbs) all.push_back(oob_.get());
  for (const auto& other : others_) all.push_back(other.get());
  return all;
}

bool RailTransports::Listen(const Rail& rail, const LogFn& log, std::vector<RailEndpoint>* endpoints, std::string* error) {
  std::vector<RailEndpoint> opened;
  for (Transport* const transport : on_rails()) {
    // A port without an interface has no address for TCP, and nothing but its device.
    const bool port = !rail.device.empty();
    if (port && transport == oob_.get()) continue;
    const bool needed = option_ == TransportOption::kVerbs || transport == oob_.get() || port;
    if (!needed && !transport->Has(rail)) continue;
    RailEndpoint endpoint{transport->kind(), {}};
    if (transport->Listen(rail, &endpoint.bytes, error)) {
      opened.push_back(std::move(endpoint));
    } else if (needed) {
      if (option_ == TransportOption::kVerbs) *error += kAskedFor;
      return false;
    } else {
      log(LogLevel::kWarn, *error + "; rail " + rail.name + " uses TCP");
    }
  }
  *endpoints = std::move(opened);
  return true;
}

bool RailTransports::ListenAgain(const Rail& rail, const LogFn& log, std::vector<RailEndpoint>* endpoints) {
  bool changed = false;
  for (RailEndpoint& endpoint : *endpoints) {
    Endpoint now;
    std::string error;
    Transport* const transport = OnRails(endpoint.transport);
    if (transport == nullptr) continue;
    if (!transport->Listen(rail, &now, &error)) {
      log(LogLevel::kWarn, error);
      // A socket may still be bound; a device that cannot be had reaches nobody.
      if (transport == oob_.get()) continue;
      now.clear();
    }
    changed |= now != endpoint.bytes;
    endpoint.bytes = std::move(now);
  }
  return changed;
}

bool RailTransports::ListenAgain(TransportKind kind, const Rail& rail, const LogFn& log, std::vector<RailEndpoint>* endpoints) {
  Transport* const transport = OnRails(kind);
  for (RailEndpoint& endpoint : *endpoints) {
    if (endpoint.transport != kind || transport == nullptr) continue;
    Endpoint now;
    std::string error;
    // It is tried again when something has changed.
    if (!transport->Listen(rail, &now, &error)) log(LogLevel::kDebug, error);
    // Where it was is still the best guess.
    if (now.empty() || now == endpoint.bytes) return false;
    endpoint.bytes = std::move(now);
    return true;
  }
  return false;
}

Transport* RailTransports::OnRails(TransportKind kind) const {
  for (Transport* const transport : on_rails())
    if (transport->kind() == kind) return transport;
  return nullptr;
}

std::string RailTransports::NameOf(const Rail& rail) const {
  std::string text = rail.name;
  for (const auto& other : others_)
    if (const std::string name = other->NameOf(static_cast<uint16_t>(rail.index)); !name.empty())
      text += name == rail.name ? " (RDMA)" : " (RDMA, " + name + ")";
  return text;
}

std::string RailTransports::Describe(const std::vector<Rail>& rails) const {
  std::string line = "R2CC: rails";
  for (const Rail& rail : rails) line += (rail.index == 0 ? " " : ", ") + NameOf(rail) + (rail.up && rail.port_active ? "" : " (down)");
  return line;
}

void RailTransports::UseTrafficClass(int named, const LogFn& log) const {
  for (const auto& other : others_)
    if (const std::string line = other->UseTrafficClass(named); !line.empty()) log(LogLevel::kWarn, line);
}

void RailTransports::StartThreads(int processors) {
  for (Transport* const transport : all()) transport->StartThreads(processors);
}

void RailTransports::Tick(Nanos now) {
  for (Transport* const transport : all()) transport->Tick(now);
}

void RailTransports::StopListening() {
  for (Transport* const transport : all()) transport->StopListening();
}

void RailTransports::StopThreads() {
  for (Transport* const transport : all()) transport->StopThreads();
}

uint64_t RailTransports::refused() const {
  uint64_t refused = 0;
  for (const Transport* const transport : all()) refused += transport->refused();
  return refused;
}

}  // namespace r2cc::net
