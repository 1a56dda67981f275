#include "tests/sim/checkers.h"

#include <algorithm>
#include <cstring>

#include "tests/sim/charge.h"

namespace r2cc::sim {
namespace {

constexpr size_t kGuardBytes = 64;
constexpr std::byte kPosted{0x5a};     // a receive buffer before anything arrives
constexpr std::byte kGivenBack{0xee};  // a receive buffer that is NCCL's again
constexpr std::byte kReused{0xdd};     // a send buffer that is NCCL's again

uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// The bytes of one message: they tell flow, message and place.
void Fill(int flow, net::MessageId message, uint64_t bytes, std::vector<std::byte>* out) {
  const uint64_t base = Mix((static_cast<uint64_t>(flow) << 32) ^ message);
  for (uint64_t offset = 0; offset < bytes; offset += 8) {
    const uint64_t word = base + offset * 0x9e3779b97f4a7c15ULL;
    const uint64_t mixed = word ^ (word >> 29);
    std::memcpy(out->data() + offset, &mixed, std::min<uint64_t>(8, bytes - offset));
  }
}

bool AllAre(const std::byte* begin, const std::byte* end, std::byte value) {
  return std::all_of(begin, end, [value](std::byte b) { return b == value; });
}

}  // namespace

void Checker::Violation(const std::string& checker, const std::string& what) {
  if (violations_.size() >= 20) return;
  violations_.push_back("[" + checker + "] at " + std::to_string((timeline_->now() - kNanosPerSecond) / 1000) + " us: " + what);
}

std::string Checker::Describe(int flow, net::MessageId message) const {
  const Flow& f = flows_[AsIndex(flow)];
  return "flow " + std::to_string(flow) + " (" + std::to_string(f.sender) + " -> " + std::to_string(f.receiver) + ") message " +
         std::to_string(message) + " of " + std::to_string(f.messages[message].bytes) + " bytes";
}

// ---- the job's side ----

int Checker::AddFlow(int sender, int receiver, const std::vector<std::pair<uint64_t, uint64_t>>& messages) {
  Flow flow{.sender = sender, .receiver = receiver, .messages = {}};
  for (const auto& [bytes, capacity] : messages) {
    Message& message = flow.messages.emplace_back();
    message.bytes = bytes;
    message.capacity = capacity;
  }
  flows_.push_back(std::move(flow));
  return static_cast<int>(flows_.size()) - 1;
}

std::byte* Checker::PostSend(int flow, net::MessageId id) {
  const Charge charge(Account::kSimulation);
  Message& message = At(flow, id);
  message.out.resize(message.bytes + kGuardBytes);
  Fill(flow, id, message.bytes, &message.out);
  message.send_posted = true;
  std::byte* begin = message.out.data();
  regions_[begin] = {begin + message.out.size(), begin + message.bytes, true, true, flow, id, Describe(flow, id)};
  return begin;
}

std::byte* Checker::PostReceive(int flow, net::MessageId id) {
  const Charge charge(Account::kSimulation);
  Message& message = At(flow, id);
  message.in.assign(message.capacity + kGuardBytes, kPosted);
  message.receive_posted = true;
  std::byte* begin = message.in.data();
  regions_[begin] = {begin + message.in.size(), begin + message.capacity, false, true, flow, id, Describe(flow, id)};
  return begin;
}

void Checker::SendDone(int flow, net::MessageId id, bool copied) {
  Message& message = At(flow, id);
  message.send_done = true;
  if (!copied && id >= flows_[AsIndex(flow)].arrived_through)
    Violation("end-to-end ack", "sending was reported done before all had arrived: " + Describe(flow, id));
  Release(message.out.data());
  std::fill(message.out.begin(), message.out.end(), kReused);
}

void Checker::AckedThrough(int flow, net::MessageId through) {
  if (through > flows_[AsIndex(flow)].arrived_through)
    Violation("ack before placement", "flow " + std::to_string(flow) + " is acknowledged through " + std::to_string(through) +
                                          ", arrived through " + std::to_string(flows_[AsIndex(flow)].arrived_through));
}

void Checker::ReceiveDone(int flow, net::MessageId id, uint64_t bytes) {
  Message& message = At(flow, id);
  message.receive_done = true;
  if (id >= flows_[AsIndex(flow)].arrived_through)
    Violation("early done", "receiving was reported done before all had arrived: " + Describe(flow, id));
  if (bytes != message.bytes) Violation("wrong size", Describe(flow, id) + " was reported with " + std::to_string(bytes) + " bytes");
  std::vector<std::byte> expected(message.bytes);
  Fill(flow, id, message.bytes, &expected);
  const auto [wrong, right] = std::mismatch(expected.begin(), expected.end(), message.in.begin());
  if (wrong != expected.end())
    Violation("wrong bytes", Describe(flow, id) + " from byte " + std::to_string(wrong - expected.begin()) + " on: " +
                                 std::to_string(static_cast<int>(*right)) + " instead of " + std::to_string(static_cast<int>(*wrong)));
  if (!AllAre(message.in.data() + message.bytes, message.in.data() + message.in.size(), kPosted))
    Violation("beyond the message", Describe(flow, id) + ": bytes behind it were written");
  Release(message.in.data());
  std::fill(message.in.begin(), message.in.end(), kGivenBack);
}

void Checker::ClosedSend(int flow) {
  Flow& f = flows_[AsIndex(flow)];
  f.send_closed = true;
  for (Message& message : f.messages) {
    if (!message.send_posted || message.send_done) continue;
    Release(message.out.data());
    std::fill(message.out.begin(), message.out.end(), kReused);
  }
}

void Checker::ClosedReceive(int flow) {
  Flow& f = flows_[AsIndex(flow)];
  f.receive_closed = true;
  for (Message& message : f.messages) {
    if (!message.receive_posted || message.receive_done) continue;
    Release(message.in.data());
    std::fill(message.in.begin(), message.in.end(), kGivenBack);
  }
}

void Checker::CheckAtEnd() {
  for (size_t flow = 0; flow < flows_.size(); ++flow)
    for (net::MessageId id = 0; id < flows_[flow].messages.size(); ++id) {
      const Message& message = flows_[flow].messages[id];
      const bool given_back = message.receive_posted && (message.receive_done || flows_[flow].receive_closed);
      if (given_back && !AllAre(message.in.data(), message.in.data() + message.in.size(), kGivenBack))
        Violation("late write", Describe(static_cast<int>(flow), id) + ": its buffer was written after it was given back");
      const bool sent_back = message.send_posted && (message.send_done || flows_[flow].send_closed);
      if (sent_back && !AllAre(message.out.data(), message.out.data() + message.out.size(), kReused))
        Violation("late write", Describe(static_cast<int>(flow), id) + ": its send buffer was written");
    }
}

// ---- buffers ----

Checker::Region* Checker::Find(const std::byte* at) {
  auto it = regions_.upper_bound(at);
  if (it == regions_.begin()) return nullptr;
  --it;
  return at < it->second.end ? &it->second : nullptr;
}

void Checker::Release(const std::byte* begin) { regions_.at(begin).live = false; }

void Checker::Reads(const std::byte* from, size_t bytes) {
  const Region* region = Find(from);
  if (region == nullptr) return;  // a copy of the session's own
  if (!region->out || !region->live)
    Violation("early release", "a buffer was read after it was given back: " + region->name);
  else if (from + bytes > region->usable_end)
    Violation("early release", "read beyond the end of " + region->name);
}

void Checker::DeviceReads(const std::byte* from) {
  const Region* region = Find(from);
  if (region == nullptr || !region->out || region->live || region->message < flows_[AsIndex(region->flow)].arrived_through) return;
  Violation("early release", "a device read a buffer that was given back before all had arrived: " + region->name);
}

void Checker::Writes(const std::byte* to, size_t bytes) {
  const Region* region = Find(to);
  if (region == nullptr) return;  // the session's own memory
  if (region->out)
    Violation("late write", "a send buffer was written: " + region->name);
  else if (!region->live)
    Violation("late write", "written after it was given back: " + region->name);
  else if (to + bytes > region->usable_end)
    Violation("late write", "written beyond the end of " + region->name);
}

// ---- chunks ----

bool Checker::Ended(const Name& epoch) const {
  const auto& [receiver, sender, link, incarnation] = epoch;
  const auto it = ended_.find({receiver, sender, link});
  return it != ended_.end() && it->second >= incarnation;
}

Checker::ChunkRecord* Checker::ChunkOf(const Carrying& who, const net::Chunk& chunk, int* flow) {
  const Charge charge(Account::kSimulation);
  const auto it = by_id_.find({who.sender, who.receiver, chunk.flow});
  if (it == by_id_.end()) return nullptr;
  *flow = it->second;
  Flow& f = flows_[AsIndex(*flow)];
  if (chunk.message >= f.messages.size()) return nullptr;
  Message& message = f.messages[chunk.message];
  if (message.chunks.empty()) {
    message.chunk_bytes = chunk.chunk_bytes;
    message.chunks.resize(net::ChunkCount(message.bytes, chunk.chunk_bytes));
  }
  if (chunk.index >= message.chunks.size() || chunk.chunk_bytes != message.chunk_bytes || chunk.message_bytes != message.bytes)
    return nullptr;
  return &message.chunks[chunk.index];
}

void Checker::ChunkSent(const Carrying& who, const net::Chunk& chunk) {
  const Charge charge(Account::kSimulation);
  if (Ignores(who, chunk)) return;
  int flow = 0;
  ChunkRecord* record = ChunkOf(who, chunk, &flow);
  if (record == nullptr) return Violation("stripe", "a chunk of no message that was posted left");
  const Message& message = At(flow, chunk.message);
  if (chunk.offset() % net::kChunkAlignment != 0 ||
      (chunk.offset() + chunk.bytes != message.bytes && chunk.bytes % net::kChunkAlignment != 0))
    Violation("stripe", "a chunk of " + Describe(flow, chunk.message) + " is not cut at 128 bytes");
  // Small messages of one chunk may leave before they are granted.
  const bool small = message.chunks.size() == 1 && message.bytes <= net::kEagerBytesMax;
  if (!message.receive_posted && !small) Violation("granted only", Describe(flow, chunk.message) + " left before its buffer was posted");
  if (record->sent > 0 && record->sent_on != NameOf(who) && !Ended(record->sent_on))
    Violation("fence before replay", "chunk " + std::to_string(chunk.index) + " of " + Describe(flow, chunk.message) +
                                         " left again while the link that it was in flight on may still deliver it");
  if (++record->sent == 2) Reached(Situation::kReplayed);
  if (record->sent == 3) Reached(Situation::kReplayedTwice);
  for (const ChunkRecord& other : message.chunks)
    if (other.sent > 0 && &other != record && std::get<2>(other.sent_on) != who.link) {
      Reached(Situation::kSpread);
      break;
    }
  record->sent_on = NameOf(who);
  carried_.insert(NameOf(who));
}

void Checker::ChunkBegun(const Carrying& who, const net::Chunk& header, const std::byte* destination) {
  if (destination == nullptr || Ignores(who, header)) return;
  int flow = 0;
  ChunkRecord* record = ChunkOf(who, header, &flow);
  if (record == nullptr) return Violation("stripe", "a chunk of no message is taken");
  if (Ended(NameOf(who))) Violation("stale incarnation", "a chunk came through an incarnation that had ended");
  if (record->finished) Violation("exactly once", "a chunk of " + Describe(flow, header.message) + " is written a second time");
  if (record->claimed)
    Violation("exactly once", "two links write the same chunk of " + Describe(flow, header.message) + " at the same time");
  record->claimed = true;
  record->claim = NameOf(who);
  if (Find(destination) == nullptr) Reached(Situation::kStaged);
}

void Checker::ChunkFinished(const Carrying& who, const net::Chunk& header) {
  int flow = 0;
  ChunkRecord* record = ChunkOf(who, header, &flow);
  if (record == nullptr) return;
  if (record->finished) return;
  record->finished = true;
  record->claimed = false;
  ++At(flow, header.message).finished;
  Flow& f = flows_[AsIndex(flow)];
  while (f.arrived_through < f.messages.size()) {
    const Message& message = f.messages[f.arrived_through];
    if (message.chunks.empty() || message.finished < message.chunks.size()) break;
    ++f.arrived_through;
  }
}

void Checker::ChunkRefused(const Carrying& who, const net::Chunk& header) {
  int flow = 0;
  if (ChunkOf(who, header, &flow) != nullptr)
    Violation("refused", "an honest sender's chunk of " + Describe(flow, header.message) + " was refused");
}

// What was placed by a device that had been fenced: no matter which buffer, and whether it harmed.
void Checker::Placing(const Carrying& who, const std::byte* to, size_t bytes) {
  if (Find(to) == nullptr) return;
  if (Ended(NameOf(who)))
    Violation("late write", "link " + std::to_string(who.link) + "/" + std::to_string(who.incarnation) + " from " +
                                std::to_string(who.sender) + " to " + std::to_string(who.receiver) + " writes after it has ended");
  Writes(to, bytes);
}

bool Checker::ChunkPlaced(const Carrying& who, const net::Chunk& header) {
  int flow = 0;
  // Of a message that came as one chunk nobody says how it would have been cut.
  net::Chunk chunk = header;
  const auto it = by_id_.find({who.sender, who.receiver, header.flow});
  if (it != by_id_.end() && header.bytes == header.message_bytes && header.message < flows_[AsIndex(it->second)].messages.size())
    chunk.chunk_bytes = At(it->second, header.message).chunk_bytes;
  const ChunkRecord* const record = ChunkOf(who, chunk, &flow);
  if (record == nullptr) {
    Violation("stripe", "a chunk of no message is said to be placed");
  } else if (Ended(NameOf(who))) {
    Violation("stale incarnation", "a chunk came through an incarnation that had ended");
  } else if (record->finished) {
    Violation("exactly once", "a chunk of " + Describe(flow, header.message) + " is said to be placed a second time");
  } else {
    ChunkFinished(who, chunk);
  }
  return violations_.empty();
}

void Checker::Garbled(const Carrying& who) {
  Violation("refused", "link " + std::to_string(who.link) + "/" + std::to_string(who.incarnation) + " from " + std::to_string(who.sender) +
                           " to " + std::to_string(who.receiver) + " was ended for what an honest peer said");
}

void Checker::Keyed(const Carrying& who, const net::Chunk& header, bool right, bool again) {
  int flow = 0;
  if (ChunkOf(who, header, &flow) == nullptr) return;
  if (!right)
    Violation("key", "a chunk of " + Describe(flow, header.message) + " came by link " + std::to_string(who.link) + "/" +
                         std::to_string(who.incarnation) + " without the key that is registered there");
  if (right && again) Reached(Situation::kKeyAgain);
}

void Checker::CarrierEnded(const Carrying& who) {
  const Charge charge(Account::kSimulation);
  net::Incarnation& ended = ended_[{who.receiver, who.sender, who.link}];
  ended = std::max(ended, who.incarnation);
  for (Flow& flow : flows_) {
    if (flow.sender != who.sender || flow.receiver != who.receiver) continue;
    for (net::MessageId id = flow.arrived_through; id < flow.messages.size(); ++id)
      for (ChunkRecord& chunk : flow.messages[id].chunks)
        if (chunk.claimed && chunk.claim == NameOf(who)) {
          chunk.claimed = false;
          Reached(Situation::kHalfRead);
        }
  }
}

void Checker::Fenced(const Carrying& who) {
  if (carried_.contains(NameOf(who)) && !Ended(NameOf(who)))
    Violation("fence at both ends", "link " + std::to_string(who.link) + "/" + std::to_string(who.incarnation) + " from " +
                                        std::to_string(who.sender) + " to " + std::to_string(who.receiver) +
                                        " counts as fenced, and its receiver has not ended it");
}

}  // namespace r2cc::sim
