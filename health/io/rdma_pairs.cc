#include "health/io/rdma_pairs.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace r2cc::health {
namespace {

using verbs::Completion;
using verbs::CompletionChannelId;
using verbs::Gid;
using verbs::GidEntry;
using verbs::GidType;
using verbs::LinkLayer;
using verbs::PortInfo;
using verbs::PortState;
using verbs::QueuePairInfo;
using verbs::ReadyToReceive;
using verbs::ReadyToSend;
using verbs::SendKind;
using verbs::SendRequest;
using verbs::Status;
using verbs::Verbs;

// A silent peer fails a write after timeout * (retry_cnt + 1): 134 ms * 7, about a second. Shorter ones fail writes that are only late, as
// behind an ARP request or in a guest; longer ones keep the verdict waiting. It is what the plugin's queue pairs have.
constexpr uint8_t kTimeout = 15;
// Not 7: soft-RoCE of Linux 6.1 never counts that down.
constexpr uint8_t kRetryCount = 6;

// IPv4 as ::ffff:a.b.c.d.
std::optional<Gid> GidOf(const std::string& address) {
  Gid gid{};
  if (inet_pton(AF_INET6, address.c_str(), gid.data()) == 1) return gid;
  gid[10] = gid[11] = 0xff;
  if (inet_pton(AF_INET, address.c_str(), gid.data() + 12) == 1) return gid;
  return std::nullopt;
}

const GidEntry* Choose(const std::vector<GidEntry>& entries, LinkLayer link_layer, const std::string& address) {
  const std::optional<Gid> wanted = GidOf(address);
  for (const GidEntry& entry : entries)
    if (link_layer == LinkLayer::kInfiniBand ? entry.type == GidType::kInfiniBand : entry.type == GidType::kRoceV2 && entry.gid == wanted)
      return &entry;
  return nullptr;
}

}  // namespace

RdmaPairs::~RdmaPairs() {
  *alive_ = false;
  while (!pairs_.empty()) Drop(pairs_.begin()->first);
}

int RdmaPairs::OpenDevice(Verbs* verbs, const std::string& name, Devices* devices) {
  if (devices->contains(name)) return 0;
  Open open;
  // Its events are the RdmaWatch's to read, from a context of its own.
  int async_fd = -1;
  if (const int error = verbs->Open(name, &open.context, &async_fd); error != 0) return error;
  if (const int error = verbs->AllocateDomain(open.context, &open.domain); error != 0) {
    verbs->Close(open.context);
    return error;
  }
  devices->emplace(name, open);
  return 0;
}

// The last one closes it: a driver may wait for that before it lets a device go.
void RdmaPairs::Unuse(Verbs* verbs, const std::string& name, Devices* devices) {
  const auto open = devices->find(name);
  if (open == devices->end() || open->second.pairs > 0) return;
  verbs->FreeDomain(open->second.domain);
  verbs->Close(open->second.context);
  devices->erase(open);
}

int RdmaPairs::MakePair(Verbs* verbs, const Open& open, const RdmaPlace& place, uint16_t pkey_index, Pair* pair, RdmaEnd* end) {
  PortInfo port;
  if (const int error = verbs->QueryPort(open.context, place.port, &port); error != 0) return error;
  if (port.state != PortState::kActive) return ENETDOWN;
  // Read again each time: an index is not for ever.
  std::vector<GidEntry> gids;
  if (const int error = verbs->QueryGids(open.context, place.port, &gids); error != 0) return error;
  const GidEntry* const gid = Choose(gids, port.link_layer, place.address);
  if (gid == nullptr) return EADDRNOTAVAIL;
  if (const int error = verbs->CreateCompletionQueue(open.context, kRdmaWritesMost + 1, CompletionChannelId{}, &pair->completions);
      error != 0)
    return error;
  QueuePairInfo info;
  int error = verbs->CreateQueuePair(
      open.domain,
      {.send_completions = pair->completions, .receive_completions = pair->completions, .sends = kRdmaWritesMost, .receives = 1}, &info);
  if (error != 0) {
    verbs->DestroyCompletionQueue(pair->completions);
    return error;
  }
  pair->queue_pair = info.id;
  // The answer needs the right to write. No memory is registered in this domain: there is nothing that could be written.
  error = verbs->Init(info.id, place.port, pkey_index, verbs::kLocalWrite | verbs::kRemoteWrite);
  if (error != 0) {
    verbs->DestroyQueuePair(info.id);
    verbs->DestroyCompletionQueue(pair->completions);
    return error;
  }
  pair->path.port = place.port;
  pair->path.gid_index = gid->index;
  pair->path.global = port.link_layer != LinkLayer::kInfiniBand;
  pair->mtu_bytes = port.mtu_bytes;
  *end = {.number = info.number, .psn = pair->psn, .meets = 0, .lid = port.lid, .mtu_bytes = port.mtu_bytes, .gid = gid->gid};
  return 0;
}

void RdmaPairs::End(Verbs* verbs, const Pair& pair, Devices* devices) {
  // They may fail on a device that is gone: then there is nothing to be ended.
  verbs->DestroyQueuePair(pair.queue_pair);
  verbs->DestroyCompletionQueue(pair.completions);
  --devices->at(pair.device).pairs;
  Unuse(verbs, pair.device, devices);
}

RdmaPairs::Id RdmaPairs::Make(const RdmaPlace& place, uint32_t psn, std::function<void(Id, const std::optional<RdmaEnd>&)> done) {
  const Id id{++last_id_};
  pairs_.emplace(id, std::nullopt);
  blocking_->Post([this, alive = alive_, verbs = verbs_, core = core_, blocking = blocking_, devices = devices_, id, place, psn,
                   marked = class_, done = std::move(done)] {
    Pair pair{.device = place.device, .psn = psn};
    pair.path.traffic_class = marked.traffic_class;
    pair.path.service_level = marked.service_level;
    RdmaEnd end;
    int error = OpenDevice(verbs, place.device, devices.get());
    if (error == 0) error = MakePair(verbs, devices->at(place.device), place, marked.pkey_index, &pair, &end);
    if (error == 0)
      ++devices->at(place.device).pairs;
    else
      Unuse(verbs, place.device, devices.get());
    core->Post([this, alive, verbs, blocking, devices, id, error, pair, end, done] {
      const auto known = *alive ? pairs_.find(id) : pairs_.end();
      if (!*alive || known == pairs_.end()) {
        if (error == 0) blocking->Post([verbs, pair, devices] { End(verbs, pair, devices.get()); });
        return;
      }
      if (error == 0) known->second = pair;
      done(id, error == 0 ? std::optional(end) : std::nullopt);
    });
  });
  return id;
}

void RdmaPairs::Connect(Id id, const RdmaEnd& peer, std::function<void(bool connected)> done) {
  const Pair& pair = *pairs_.at(id);
  ReadyToReceive receive{.path = pair.path, .remote_number = peer.number, .receive_psn = peer.psn};
  receive.path.remote_gid = peer.gid;
  receive.path.remote_lid = peer.lid;
  receive.mtu_bytes = std::min(pair.mtu_bytes, peer.mtu_bytes);
  const ReadyToSend send{.send_psn = pair.psn, .timeout = kTimeout, .retry_cnt = kRetryCount};
  blocking_->Post(
      [this, alive = alive_, verbs = verbs_, core = core_, id, queue_pair = pair.queue_pair, receive, send, done = std::move(done)] {
        int error = verbs->MakeReadyToReceive(queue_pair, receive);
        if (error == 0) error = verbs->MakeReadyToSend(queue_pair, send);
        core->Post([this, alive, id, error, done] {
          if (*alive && pairs_.contains(id)) done(error == 0);
        });
      });
}

bool RdmaPairs::Write(Id id) {
  const std::array requests = {SendRequest{.kind = SendKind::kWrite, .signaled = true}};
  size_t posted = 0;
  return verbs_->PostSend(pairs_.at(id)->queue_pair, requests, &posted) == 0;
}

std::vector<Status> RdmaPairs::Poll(Id id) {
  std::array<Completion, kRdmaWritesMost> completions;
  size_t taken = 0;
  verbs_->Poll(pairs_.at(id)->completions, completions, &taken);
  std::vector<Status> statuses;
  for (size_t i = 0; i < taken; ++i) statuses.push_back(completions[i].status);
  return statuses;
}

void RdmaPairs::Drop(Id id) {
  const auto pair = pairs_.extract(id);
  if (pair.empty() || !pair.mapped().has_value()) return;
  blocking_->Post([verbs = verbs_, pair = *pair.mapped(), devices = devices_] { End(verbs, pair, devices.get()); });
}

}  // namespace r2cc::health
