#include "tests/sim/stream.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/core/hash.h"
#include "netplugin/flow/mutant.h"

namespace r2cc::sim {

// ---- packets ----

void FrameStream::Send(const net::Bytes& packet) {
  out_.insert(out_.end(), packet.begin(), packet.end());
  Flush();
}

void FrameStream::Flush() {
  if (out_.empty()) return;
  const size_t taken = socket_->Write(out_.data(), out_.size());
  out_.erase(out_.begin(), out_.begin() + static_cast<ptrdiff_t>(taken));
}

FrameStream::State FrameStream::Read(const std::function<bool(std::span<const uint8_t>)>& on_packet) {
  const size_t had = in_.size();
  in_.resize(had + socket_->Readable());
  socket_->Read(in_.data() + had, in_.size() - had);
  size_t used = 0;
  bool go_on = true;
  while (go_on && used < in_.size()) {
    const std::span<const uint8_t> rest(in_.data() + used, in_.size() - used);
    const size_t length = net::PacketLength(rest);
    if (length > net::kPacketBytesMax) return State::kGarbled;
    if (length == 0 || length > rest.size()) break;
    used += length;
    go_on = on_packet(rest.first(length));
  }
  if (!go_on) return State::kOpen;
  in_.erase(in_.begin(), in_.begin() + static_cast<ptrdiff_t>(used));
  return socket_->broken() || socket_->ended() ? State::kClosed : State::kOpen;
}

FrameStream::State FrameStream::ReadOne(net::Bytes* packet, bool* whole) {
  *whole = false;
  for (;;) {
    size_t want = net::kPacketHeaderBytes;
    if (in_.size() >= net::kPacketHeaderBytes) {
      want = net::PacketLength(in_);
      if (want > net::kPacketBytesMax || want == 0) return State::kGarbled;
      if (in_.size() == want) {
        *packet = std::move(in_);
        in_.clear();
        *whole = true;
        return State::kOpen;
      }
    }
    const size_t had = in_.size();
    in_.resize(want);
    const size_t n = socket_->Read(in_.data() + had, want - had);
    in_.resize(had + n);
    if (n == 0) return socket_->broken() || socket_->ended() ? State::kClosed : State::kOpen;
  }
}

// ---- bulk ----

std::vector<std::byte> SimProof(uint64_t session, net::LinkId link, net::Incarnation incarnation, uint8_t socket) {
  std::vector<std::byte> pattern(kSimProofBytes);
  uint64_t state = session ^ uint64_t { link } << 48 ^ uint64_t { incarnation } << 8 ^ socket ^ 0x9e3779b97f4a7c15ULL;
  for (size_t i = 0; i < pattern.size(); i += sizeof(state)) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    std::memcpy(pattern.data() + i, &state, sizeof(state));
  }
  return pattern;
}

void BulkOut::Start(net::BulkType type, const SimKey& key) {
  net::BulkHeader header{.type = type, .chunk = chunk_, .checksummed = type == net::BulkType::kProof};
  if (header.checksummed) header.payload_crc = Crc32c(chunk_.data, chunk_.bytes);
  uint8_t encoded[net::kBulkHeaderBytes];
  net::Encode(header, tag_, encoded);
  std::memcpy(header_, encoded, sizeof(encoded));
  std::memcpy(header_ + sizeof(encoded), &key, sizeof(key));
  done_ = 0;
  busy_ = true;
}

void BulkOut::SendProof(std::vector<std::byte> pattern) {
  proof_ = std::move(pattern);
  chunk_ = net::Chunk{};
  chunk_.data = proof_.data();
  chunk_.bytes = static_cast<uint32_t>(proof_.size());
  Start(net::BulkType::kProof, {});
}

BulkOut::Result BulkOut::Pump(const std::function<bool(net::Chunk*, SimKey*)>& pull) {
  if (!busy_) {
    if (socket_->Room() == 0) return Result::kBlocked;
    SimKey key;
    if (!pull(&chunk_, &key)) return Result::kIdle;
    Start(net::BulkType::kChunk, key);
  }
  while (done_ < header_bytes_) {
    const size_t n = socket_->Write(header_ + done_, header_bytes_ - done_);
    if (n == 0) return Result::kBlocked;
    done_ += n;
  }
  while (done_ < header_bytes_ + chunk_.bytes) {
    const size_t payload_done = done_ - header_bytes_;
    const size_t bytes = std::min<size_t>(socket_->Room(), chunk_.bytes - payload_done);
    if (bytes == 0) return Result::kBlocked;
    if (proof_.empty()) tap_->Reads(host_, chunk_.data + payload_done, bytes);
    done_ += socket_->Write(reinterpret_cast<const uint8_t*>(chunk_.data) + payload_done, bytes);
  }
  proof_.clear();
  busy_ = false;
  return Result::kMore;
}

bool BulkIn::StartChunk(const Sink& sink) {
  uint8_t encoded[net::kBulkHeaderBytes];
  std::memcpy(encoded, header_, sizeof(encoded));
  if (!net::Decode(encoded, tag_, &current_)) return false;
  SimKey key;
  if (header_bytes_ > sizeof(encoded)) std::memcpy(&key, header_ + sizeof(encoded), sizeof(key));
  header_done_ = 0;
  payload_done_ = 0;
  in_chunk_ = true;
  destination_ = nullptr;
  if (current_.type == net::BulkType::kProof) {
    if (current_.chunk.bytes != kSimProofBytes) return false;
    scratch_.resize(std::max<size_t>(scratch_.size(), kSimProofBytes));
    return true;
  }
  if (!sink.begin(current_.chunk, key, &destination_)) return false;
  if (destination_ == nullptr) scratch_.resize(std::max<size_t>(scratch_.size(), current_.chunk.bytes));
  return true;
}

bool BulkIn::EndChunk(const Sink& sink) {
  in_chunk_ = false;
  if (current_.type == net::BulkType::kProof) {
    sink.proof(std::memcmp(scratch_.data(), pattern_.data(), kSimProofBytes) == 0);
    return true;
  }
  if (destination_ == nullptr) return true;
  sink.finish(current_.chunk);
  destination_ = nullptr;
  return true;
}

bool BulkIn::Fetch(size_t most) {
  if (!in_chunk_ || destination_ == nullptr || fetched_ > 0) return false;
  const size_t bytes = std::min<size_t>({socket_->Readable(), current_.chunk.bytes - payload_done_, most});
  if (bytes == 0) return false;
  std::byte* const to = destination_ + payload_done_;
  tap_->Writes(host_, to, bytes);
  fetched_ = static_cast<uint32_t>(socket_->Read(reinterpret_cast<uint8_t*>(to), bytes));
  return fetched_ > 0;
}

BulkIn::Result BulkIn::Read(const Sink& sink, size_t turn_bytes) {
  if (const uint32_t fetched = std::exchange(fetched_, 0); fetched > 0 && !net::IsActive(net::Mutant::kWorkerUnreported)) {
    payload_done_ += fetched;
    if (payload_done_ == current_.chunk.bytes && !EndChunk(sink)) return Result::kGarbled;
  }
  for (size_t turn = 0; turn < turn_bytes;) {
    size_t n;
    if (in_chunk_) {
      const size_t want = std::min<size_t>(socket_->Readable(), current_.chunk.bytes - payload_done_);
      std::byte* to = (destination_ != nullptr ? destination_ : scratch_.data()) + payload_done_;
      if (want > 0 && destination_ != nullptr) tap_->Writes(host_, to, want);
      n = socket_->Read(reinterpret_cast<uint8_t*>(to), want);
      payload_done_ += static_cast<uint32_t>(n);
      if (payload_done_ == current_.chunk.bytes && !EndChunk(sink)) return Result::kGarbled;
    } else {
      n = socket_->Read(header_ + header_done_, header_bytes_ - header_done_);
      header_done_ += n;
      if (header_done_ == header_bytes_) {
        if (!StartChunk(sink)) return Result::kGarbled;
        if (current_.chunk.bytes == 0 && !EndChunk(sink)) return Result::kGarbled;
      }
    }
    if (n == 0) return socket_->broken() || socket_->ended() ? Result::kBroken : Result::kEmpty;
    turn += n;
  }
  return Result::kMore;
}

void BulkIn::Forget(net::FlowId flow) {
  if (!in_chunk_ || current_.type != net::BulkType::kChunk || current_.chunk.flow != flow) return;
  scratch_.resize(std::max<size_t>(scratch_.size(), current_.chunk.bytes));
  destination_ = nullptr;
}

}  // namespace r2cc::sim
