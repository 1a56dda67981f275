#include "tests/sim/verbs_rails.h"

#include <algorithm>
#include <cerrno>
#include <functional>

#include "netplugin/transport/verbs/fake_control_thread.h"
#include "netplugin/transport/verbs/offer.h"
#include "netplugin/transport/verbs/verbs_transport.h"
#include "tests/sim/tapped_transport.h"

namespace r2cc::sim {
namespace {

constexpr verbs::Status kStatuses[] = {verbs::Status::kLocalQueuePair, verbs::Status::kFlushed, verbs::Status::kRemoteAccess,
                                       verbs::Status::kRetryExceeded, verbs::Status::kFatal};
// What a post says that does not fit, or of which the driver thinks nothing.
constexpr int kPostErrors[] = {ENOMEM, EINVAL};
constexpr verbs::FakeStall kStalls[] = {verbs::FakeStall::kSendsNothing, verbs::FakeStall::kCompletesNothing};
// Into the kernel, and perhaps to the device's firmware.
constexpr verbs::Call kBlockingCalls[] = {verbs::Call::kOpen,
                                          verbs::Call::kQueryDevice,
                                          verbs::Call::kQueryPort,
                                          verbs::Call::kAllocateDomain,
                                          verbs::Call::kRegister,
                                          verbs::Call::kDeregister,
                                          verbs::Call::kCreateCompletionQueue,
                                          verbs::Call::kCreateQueuePair,
                                          verbs::Call::kInit,
                                          verbs::Call::kReadyToReceive,
                                          verbs::Call::kReadyToSend,
                                          verbs::Call::kError,
                                          verbs::Call::kReset,
                                          verbs::Call::kDestroyQueuePair};
// Where FakeFabric writes the host into a GID.
constexpr size_t kHostInGid = 14, kGenerationInGid = 15;

std::string DeviceOf(int rail) { return "mlx5_" + std::to_string(rail); }
int RailOf(const verbs::FakePortName& name) { return name.device.back() - '0'; }
std::string NicOf(const verbs::FakePortName& name) { return HostName(name.host) + "/" + name.device; }
Port PortOf(const verbs::FakePortName& name) { return {name.host, RailOf(name)}; }
verbs::FakePortName NameOf(Port port) { return {port.host, DeviceOf(port.rail), 1}; }

int HostAt(const net::Endpoint& endpoint) {
  verbs::RailAddress address;
  verbs::Offer offer;
  if (verbs::Decode(endpoint, &address)) return address.gid[kHostInGid];
  return verbs::Decode(endpoint, &offer) ? offer.address.gid[kHostInGid] : 0;
}

}  // namespace

void TimelineTime::At(Nanos when, std::function<void()> what) { timeline_->At(std::max(when, timeline_->now()), std::move(what)); }

VerbsRails::VerbsRails(Network* network, const VerbsRailsOptions& options)
    : network_(network), options_(options), time_(network->timeline()), fabric_(&time_, options.fabric) {
  fabric_.options.reuse_keys = options.driver == "mlx5_core";
  fabric_.path = [this](const auto& from, const auto& to) { return PathOf(from, to); };
  fabric_.on_placing = [this](const verbs::FakePortName& port, uint32_t pair, std::byte* to, size_t bytes) {
    const auto it = carriers_.find({port.host, RailOf(port), pair});
    if (it != carriers_.end()) hosts_.at(port.host).io->tap->Placing(it->second, to, bytes);
    if (options_.gpu != nullptr) options_.gpu->Placing(NicOf(port), to, bytes);
  };
  fabric_.on_reading = [this](const verbs::FakePortName& port, const std::byte* from, size_t) {
    if (options_.gpu != nullptr) options_.gpu->Flushed(NicOf(port), from);
    hosts_.at(port.host).io->tap->DeviceReads(port.host, from);
  };
}

verbs::FakePath VerbsRails::PathOf(const verbs::FakePortName& from, const verbs::FakePortName& to) const {
  // The kernel destroys what a process that has ended leaves behind.
  if (network_->Dead(from.host) || network_->Dead(to.host)) return {.bytes_per_s = 0, .delay = 0};
  // What a device sends to itself stays in it.
  if (from == to) return {.bytes_per_s = 10'000'000'000, .delay = 200};
  const Port a = PortOf(from), b = PortOf(to);
  verbs::FakePath path{
      .bytes_per_s = network_->BytesPerS(a, b), .delay = network_->Delay(a, b), .delayed_until = network_->HeldUntil(a, b)};
  if (network_->LosesLarge(a, b)) path.packet_bytes_most = Network::kSmallPacketBytes;
  return path;
}

std::unique_ptr<net::Transport> VerbsRails::Make(Io* io) {
  Host& host = hosts_[io->host];
  host.io = io;
  for (int rail = 0; rail < io->options.rails; ++rail) fabric_.AddDevice(io->host, DeviceOf(rail), options_.driver);
  fabric_.OnWake(io->host, io->wake);
  host.fake = std::make_unique<verbs::FakeVerbs>(&fabric_, io->host);
  host.faulty = std::make_unique<verbs::FaultyVerbs>(host.fake.get());
  verbs::FaultyVerbs* const faulty = host.faulty.get();
  // The queue pair that cannot be ended takes what comes. Of every other host the regions can be deregistered.
  const bool regions_too = io->host % 2 == 1;
  faulty->FailWhile(verbs::Call::kError, &io->closing.fails, EIO);
  faulty->FailWhile(verbs::Call::kDestroyQueuePair, &io->closing.fails, regions_too ? EIO : EINVAL);
  if (regions_too) faulty->FailWhile(verbs::Call::kDeregister, &io->closing.fails, EIO);
  verbs::VerbsTransport::Options options;
  options.verbs = faulty;
  options.clock = &time_;
  options.random = [this] { return static_cast<uint32_t>(time_.Random()); };
  options.log = [io](net::LogLevel, const std::string& line) {
    if (io->logs()) io->Log(line);
  };
  io->kept = [faulty] { return faulty->TakeTime(); };
  options.make_control = [this, faulty, io](const std::string& device) {
    const auto takes = [this, faulty, io, device] {
      Host& of = hosts_.at(io->host);
      const Nanos late = io->closing.late_most, calls = faulty->TakeTime();
      of.late |= late > 0;
      return (of.slow_device.empty() || of.slow_device == device ? calls : 0) + (late == 0 ? 0 : io->random().Between(0, late));
    };
    return std::make_unique<verbs::FakeControlThread>(&time_, takes, [io] { return io->running(); });
  };
  options.device_of = [](const net::Rail& rail, uint8_t* port) {
    *port = 1;
    return DeviceOf(rail.index);
  };
  options.keys_revoked = [this, io](uint16_t rail) {
    KeysRevoked(io, rail);
    io->keys_revoked(net::TransportKind::kVerbs, rail);
  };
  options.rail_changed = [io](uint16_t rail) { io->rail_changed(rail); };
  options.site.adaptive_routing = options_.adaptive_routing;
  options.gpu = options_.gpu;
  // Time passes.
  options.pause = [timeline = network_->timeline()] { timeline->RunNext(); };
  const auto answered = [this](const Carrying& who, uint16_t rail, const net::Endpoint& endpoint) {
    verbs::Offer offer;
    if (!verbs::Decode(endpoint, &offer)) return;
    carriers_[{who.receiver, rail, offer.number}] = who;
    auto& last = answered_[{who.receiver, who.sender, who.link}];
    const Answered now{who.incarnation, offer.number, offer.psn, rail, losses_[{who.receiver, rail}]};
    // One between that was never answered may have had another number, and then the first is free again.
    const bool next = now.incarnation == last.incarnation + 1 && last.rail == now.rail && last.losses == now.losses;
    const bool same = last.number == now.number && (next || last.psn == now.psn);
    if (last.incarnation != now.incarnation && same) hosts_.at(who.receiver).io->tap->SuccessorIsTheSame(who);
    last = now;
  };
  return std::make_unique<TappedTransport>(TransportTap{io, HostAt, answered, shared_from_this()},
                                           std::make_unique<verbs::VerbsTransport>(options));
}

void VerbsRails::KeysRevoked(Io* io, int rail) {
  const Host& host = hosts_.at(io->host);
  // What is placed later than a fence waits proves nothing.
  const bool slow = options_.fabric.placement_late_one_in > 0 && options_.fabric.placement_late_most > kNanosPerMs * 10;
  if (slow || host.late || host.faulty->injected() > 0 || losses_[{io->host, rail}] > 0 || broken_queues_ > 0) return;
  io->tap->KeysRevoked(io->host, rail);
}

// ---- faults ----

void VerbsRails::Carrier(Port port, bool on) {
  int& lost = carrier_lost_[port];
  lost += on ? -1 : 1;
  fabric_.SetCarrier(NameOf(port), lost == 0);
}

void VerbsRails::Reset(Port a, Port b, int ends, bool reported) {
  const verbs::AsyncKind event = reported ? verbs::AsyncKind::kQueuePairFatal : verbs::AsyncKind::kOther;
  if ((ends & 1) != 0) fabric_.BreakQueuePairs(NameOf(a), NameOf(b), event);
  if ((ends & 2) != 0) fabric_.BreakQueuePairs(NameOf(b), NameOf(a), event);
}

void VerbsRails::Device(Port port, bool lost) {
  losses_[port] += lost;
  if (lost) return fabric_.LoseDevice(port.host, DeviceOf(port.rail));
  fabric_.RestoreDevice(port.host, DeviceOf(port.rail));
}

void VerbsRails::LoseAddress(Port port) {
  const auto index = static_cast<uint32_t>(++addresses_[port]);
  fabric_.RemoveGid(NameOf(port), index);
}

// The index is another one, as it is after the interface was made anew.
void VerbsRails::NewAddress(Port port) {
  const auto index = static_cast<uint32_t>(addresses_[port]) + 1;
  verbs::GidEntry entry{
      .index = index, .gid = {}, .type = verbs::GidType::kRoceV2, .interface_index = static_cast<uint32_t>(port.rail) + 1};
  entry.gid = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, static_cast<uint8_t>(port.rail + 1)};
  entry.gid[kHostInGid] = static_cast<uint8_t>(port.host);
  entry.gid[kGenerationInGid] = static_cast<uint8_t>(index);
  fabric_.SetGid(NameOf(port), entry);
}

void VerbsRails::FailCompletion(int host, int degree) {
  hosts_.at(host).faulty->FailCompletion(1 + degree, kStatuses[static_cast<size_t>(degree) % std::size(kStatuses)]);
}

void VerbsRails::FailPost(int host, int degree) {
  const verbs::Call call = degree % 3 == 0 ? verbs::Call::kPostReceive : verbs::Call::kPostSend;
  hosts_.at(host).faulty->FailCall(call, 1 + degree / 3, kPostErrors[static_cast<size_t>(degree) % std::size(kPostErrors)]);
}

void VerbsRails::SlowCalls(int host, Nanos takes) {
  for (const verbs::Call call : {verbs::Call::kError, verbs::Call::kReset, verbs::Call::kDestroyQueuePair, verbs::Call::kReadyToReceive})
    hosts_.at(host).faulty->SlowCall(call, takes);
}

void VerbsRails::SlowDevice(Port port, Nanos takes) {
  Host& host = hosts_.at(port.host);
  host.slow_device = takes == 0 ? std::string() : DeviceOf(port.rail);
  for (const verbs::Call call : kBlockingCalls) host.faulty->SlowCall(call, takes);
}

void VerbsRails::RefuseRegion(int host, int nth) { hosts_.at(host).faulty->FailCall(verbs::Call::kRegister, nth, ENOMEM); }

void VerbsRails::StallPairs(Port a, Port b, int degree) {
  stalls_ = true;
  fabric_.StallQueuePairs(NameOf(a), NameOf(b), kStalls[static_cast<size_t>(degree) % std::size(kStalls)]);
}

void VerbsRails::StallDevice(Port port, int degree, bool stalls) {
  stalls_ = true;
  fabric_.StallDevice(port.host, DeviceOf(port.rail),
                      stalls ? kStalls[static_cast<size_t>(degree) % std::size(kStalls)] : verbs::FakeStall::kNone);
}

std::vector<VerbsRails::Stalled> VerbsRails::StalledPairs() {
  std::vector<Stalled> found;
  if (!stalls_) return found;
  for (const verbs::FakeFabric::Stalled& pair : fabric_.StalledPairs())
    if (!carriers_.contains({pair.from.host, RailOf(pair.from), pair.number}))
      found.push_back({pair.id, PortOf(pair.from), PortOf(pair.to)});
  return found;
}

void VerbsRails::BreakCompletions(Port a, Port b) {
  ++broken_queues_;
  fabric_.BreakCompletionQueue(NameOf(a), NameOf(b));
}

Process::MakeRails MakeVerbsRails(const VerbsRailsOptions& options, std::weak_ptr<VerbsRails>* made) {
  return [options, made, rails = std::make_shared<std::shared_ptr<VerbsRails>>()](Io* io, net::Greet) {
    if (*rails == nullptr) *rails = std::make_shared<VerbsRails>(io->network, options);
    if (made != nullptr) *made = *rails;
    return (*rails)->Make(io);
  };
}

}  // namespace r2cc::sim
