// A sender's bulk sockets, as the transport has them: what is posted, and which of them takes the next chunk.
#include <algorithm>
#include <utility>

#include "tests/sim/send_end.h"

namespace r2cc::sim {
namespace {

using net::LinkId;
using plan::EvidenceCause;

constexpr int kTurnChunks = 8;

}  // namespace

void SendEnd::Post(net::FlowId flow, const void* data, uint64_t bytes) {
  if (SendAtOnce(flow, data, bytes)) return;
  const net::MessageId message = session_.Post(flow, data, bytes, io_->now());
  session_.Release(flow, message);
}

bool SendEnd::SendAtOnce(net::FlowId flow, const void* data, uint64_t bytes) {
  const LinkId home = session_.home(flow);
  if (home >= links_.size() || links_[home].bulk.empty()) return false;
  Bulk& bulk = links_[home].bulk.front();
  if (bulk.out == nullptr || bulk.out->busy()) return false;
  bool posted = false;
  net::MessageId message = 0;
  const auto pull = [&](net::Chunk* chunk) {
    posted = session_.PostEagerly(flow, data, bytes, links_[home].incarnation, chunk);
    if (!posted) return false;
    message = chunk->message;
    Carried(home, *chunk);
    return true;
  };
  const BulkOut::Result result = bulk.out->Pump(pull);
  if (!posted) return false;
  bulk.blocked = result == BulkOut::Result::kBlocked;
  bulk.out->Rebase(session_.Release(flow, message));
  return true;
}

void SendEnd::Carried(LinkId link, const net::Chunk& chunk) {
  const net::Incarnation incarnation = links_[link].incarnation;
  if (io_->logs())
    io_->Log("sender to " + std::to_string(peer_) + ": link " + std::to_string(link) + "/" + std::to_string(incarnation) + " <- chunk " +
             std::to_string(chunk.index) + " of flow " + std::to_string(chunk.flow) + " message " + std::to_string(chunk.message));
  io_->tap->ChunkSent({peer_, io_->host, link, incarnation}, chunk);
}

bool SendEnd::PumpAll() {
  std::vector<std::pair<LinkId, size_t>> ready;
  for (LinkId link = 0; link < links_.size(); ++link)
    for (size_t i = 0; i < links_[link].bulk.size(); ++i)
      if (links_[link].bulk[i].out != nullptr && !links_[link].bulk[i].blocked) ready.emplace_back(link, i);
  for (int chunks = 0; chunks < kTurnChunks;) {
    if (ready.empty()) return false;
    const auto next = std::min_element(ready.begin(), ready.end(),
                                       [this](const auto& a, const auto& b) { return session_.Load(a.first) < session_.Load(b.first); });
    if (PumpBulk(next->first, next->second))
      ++chunks;
    else
      ready.erase(next);
  }
  return true;
}

void SendEnd::BulkReady(LinkId link, size_t index) {
  Bulk& bulk = links_[link].bulk[index];
  if (bulk.socket->broken() || bulk.socket->ended()) return Trouble(link, EvidenceCause::kSocketError);
  if (bulk.socket->Room() > 0) bulk.blocked = false;
}

bool SendEnd::PumpBulk(LinkId link, size_t index) {
  LinkSockets& sockets = links_[link];
  Bulk& bulk = sockets.bulk[index];
  if (const net::Chunk* half_sent = bulk.out->half_sent(); half_sent != nullptr && !session_.Expects(*half_sent)) {
    // Acknowledged before it was sent, or given up: what is behind the chunk is gone.
    Trouble(link, EvidenceCause::kGarbled);
    bulk.blocked = true;
    return false;
  }
  const auto pull = [&](net::Chunk* chunk) {
    if (!session_.Pull(link, sockets.incarnation, chunk)) return false;
    Carried(link, *chunk);
    return true;
  };
  switch (bulk.out->Pump(pull)) {
    case BulkOut::Result::kIdle: return false;
    case BulkOut::Result::kMore: return true;
    case BulkOut::Result::kBlocked: bulk.blocked = true; return false;
  }
  return false;
}

}  // namespace r2cc::sim
