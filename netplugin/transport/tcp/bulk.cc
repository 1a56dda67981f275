#include "netplugin/transport/tcp/bulk.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/core/hash.h"
#include "netplugin/flow/tuning.h"

namespace r2cc::net {
namespace {

// A small message comes with its header in one call. Behind a large chunk only the next header is read ahead: its payload is better read
// to where it belongs.
constexpr size_t kAheadBytes = tuning::kSmallBytesMost + kBulkHeaderBytes;

// One part is the rule while nothing comes, and recv() is the cheaper call.
ssize_t Receive(int fd, std::span<iovec> parts) {
  if (parts.size() == 1) return recv(fd, parts[0].iov_base, parts[0].iov_len, MSG_DONTWAIT);
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  return recvmsg(fd, &message, MSG_DONTWAIT);
}

// The same for sending; a small message and its header are cheaper copied together. `alone`: the kernel puts nothing else in the packet.
ssize_t Send(int fd, std::span<iovec> parts, bool alone) {
  size_t bytes = 0;
  for (const iovec& part : parts) bytes += part.iov_len;
  if (bytes <= tuning::kCopiedBytes && !alone) {
    uint8_t copy[tuning::kCopiedBytes];
    size_t at = 0;
    for (const iovec& part : parts) {
      std::memcpy(copy + at, part.iov_base, part.iov_len);
      at += part.iov_len;
    }
    return send(fd, copy, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  return sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT | (alone ? MSG_EOR : 0));
}

// Leaves the first `bytes` of them; returns how many parts that are.
size_t Truncate(std::span<iovec> parts, size_t bytes) {
  for (size_t i = 0; i < parts.size(); ++i) {
    if (bytes <= parts[i].iov_len) {
      parts[i].iov_len = bytes;
      return i + 1;
    }
    bytes -= parts[i].iov_len;
  }
  return parts.size();
}

bool WouldBlock(ssize_t result) { return result < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR); }

}  // namespace

std::vector<std::byte> ProofPattern(uint64_t session, LinkId link, Incarnation incarnation, uint8_t socket) {
  std::vector<std::byte> pattern(kProofBytes);
  uint64_t state = session ^ uint64_t { link } << 48 ^ uint64_t { incarnation } << 8 ^ socket ^ 0x9e3779b97f4a7c15ULL;
  for (size_t i = 0; i < pattern.size(); i += sizeof(state)) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    std::memcpy(pattern.data() + i, &state, sizeof(state));
  }
  return pattern;
}

// ---- sender ----

void BulkSender::Append(BulkType type, const Chunk& chunk) {
  BulkHeader header{.type = type, .chunk = chunk, .checksummed = checksum_ || type == BulkType::kProof};
  if (header.checksummed) header.payload_crc = Crc32c(chunk.data, chunk.bytes);
  Piece& piece = pieces_.emplace_back();
  piece.type = type;
  piece.chunk = chunk;
  Encode(header, tag_, piece.header);
}

void BulkSender::SendProof(std::vector<std::byte> pattern, std::vector<size_t> offsets) {
  proof_ = std::move(pattern);
  proof_offsets_ = std::move(offsets);
  Chunk chunk;
  chunk.data = proof_.data();
  chunk.bytes = static_cast<uint32_t>(proof_.size());
  Append(BulkType::kProof, chunk);
}

bool BulkSender::Load(FunctionRef<bool(Chunk*)> pull, int most) {
  if (busy()) return true;
  pieces_.clear();
  first_ = done_ = 0;
  for (Chunk chunk; most > 0 && pull(&chunk); --most) Append(BulkType::kChunk, chunk);
  return busy();
}

BulkSender::Result BulkSender::Write(uint64_t* sent_bytes) {
  while (busy()) {
    iovec parts[2 * kTogetherMost];
    size_t count = 0, skip = done_;
    for (size_t i = first_; i < pieces_.size(); ++i, skip = 0) {
      Piece& piece = pieces_[i];
      if (skip < kBulkHeaderBytes) parts[count++] = {piece.header + skip, kBulkHeaderBytes - skip};
      const size_t payload = skip < kBulkHeaderBytes ? 0 : skip - kBulkHeaderBytes;
      if (payload < piece.chunk.bytes) parts[count++] = {const_cast<std::byte*>(piece.chunk.data) + payload, piece.chunk.bytes - payload};
    }
    // A data check is the first thing that a socket sends.
    std::erase_if(proof_offsets_, [this](size_t offset) { return offset <= done_; });
    const bool alone = !proof_offsets_.empty();
    if (alone) count = Truncate(std::span(parts, count), proof_offsets_.front() - done_);
    const ssize_t n = Send(fd_.get(), std::span(parts, count), alone);
    if (WouldBlock(n)) return Result::kBlocked;
    if (n <= 0) return Result::kBroken;
    done_ += static_cast<size_t>(n);
    for (; busy() && done_ >= pieces_[first_].bytes(); ++first_) {
      done_ -= pieces_[first_].bytes();
      if (pieces_[first_].type == BulkType::kChunk) *sent_bytes += pieces_[first_].chunk.bytes;
    }
  }
  proof_.clear();
  proof_offsets_.clear();
  return Result::kMore;
}

bool BulkSender::AnyUnsent(FunctionRef<bool(const Chunk&)> is_so) const {
  for (size_t i = first_; i < pieces_.size(); ++i)
    if (pieces_[i].type == BulkType::kChunk && is_so(pieces_[i].chunk)) return true;
  return false;
}

void BulkSender::ForEachUnsent(FunctionRef<void(const Chunk&)> visit) const {
  for (size_t i = first_; i < pieces_.size(); ++i)
    if (pieces_[i].type == BulkType::kChunk) visit(pieces_[i].chunk);
}

void BulkSender::Retarget(FlowId flow, MessageId message, const std::byte* copy) {
  // A message that has a copy is one chunk.
  for (size_t i = first_; i < pieces_.size(); ++i) {
    Chunk& chunk = pieces_[i].chunk;
    if (pieces_[i].type != BulkType::kChunk || chunk.flow != flow || chunk.message != message) continue;
    chunk.data = copy;
    chunk.memory = nullptr;
  }
}

// ---- receiver ----

BulkReceiver::BulkReceiver(UniqueFd fd, uint32_t tag, std::vector<std::byte> proof_pattern)
    : fd_(std::move(fd)), tag_(tag), proof_pattern_(std::move(proof_pattern)), ahead_(kAheadBytes) {}

bool BulkReceiver::StartChunk(const Sink& sink) {
  uint8_t header[kBulkHeaderBytes];
  std::memcpy(header, ahead_.data() + ahead_begin_, kBulkHeaderBytes);
  ahead_begin_ += kBulkHeaderBytes;
  if (!Decode(header, tag_, &current_)) return false;
  payload_done_ = 0;
  in_chunk_ = true;
  destination_ = nullptr;
  if (current_.type == BulkType::kProof) return current_.chunk.bytes == kProofBytes;
  return sink.begin(current_.chunk, &destination_);
}

bool BulkReceiver::EndChunk(const Sink& sink) {
  in_chunk_ = false;
  if (current_.type == BulkType::kProof) {
    sink.proof(std::memcmp(scratch_.data(), proof_pattern_.data(), kProofBytes) == 0);
    scratch_ = {};
    return true;
  }
  if (destination_ == nullptr) return true;
  if (current_.checksummed && Crc32c(destination_, current_.chunk.bytes) != current_.payload_crc) return false;
  sink.finish(current_.chunk);
  destination_ = nullptr;
  return true;
}

std::span<std::byte> BulkReceiver::Next() {
  const size_t left = current_.chunk.bytes - payload_done_;
  if (destination_ != nullptr) return {destination_ + payload_done_, left};
  scratch_.resize(kProofBytes);
  // What is thrown away needs no more memory for being much.
  const size_t at = current_.type == BulkType::kProof ? payload_done_ : 0;
  return std::span(scratch_).subspan(at, std::min(left, scratch_.size() - at));
}

void BulkReceiver::Count(size_t payload, uint64_t* received_bytes) const {
  if (current_.type == BulkType::kChunk) *received_bytes += payload;
}

bool BulkReceiver::Consume(const Sink& sink, uint64_t* received_bytes) {
  for (;;) {
    if (in_chunk_ && payload_done_ < current_.chunk.bytes) {
      if (ahead_begin_ == ahead_end_) return true;
      const std::span<std::byte> to = Next();
      const size_t bytes = std::min(to.size(), ahead_end_ - ahead_begin_);
      std::memcpy(to.data(), ahead_.data() + ahead_begin_, bytes);
      ahead_begin_ += bytes;
      payload_done_ += static_cast<uint32_t>(bytes);
      Count(bytes, received_bytes);
      continue;
    }
    if (in_chunk_ && !EndChunk(sink)) return false;
    if (ahead_end_ - ahead_begin_ < kBulkHeaderBytes) return true;
    if (!StartChunk(sink)) return false;
  }
}

bool BulkReceiver::Fetch(Look look) {
  fetched_ = {};
  // The rest of this chunk, then what follows it.
  iovec parts[2];
  size_t count = 0, ahead_room = look == Look::kAhead ? kAheadBytes : kBulkHeaderBytes;
  if (in_chunk_) {
    const std::span<std::byte> to = Next();
    fetched_.payload_room = to.size();
    parts[count++] = {to.data(), to.size()};
    if (current_.chunk.bytes > tuning::kSmallBytesMost) ahead_room = kBulkHeaderBytes;
    ahead_begin_ = ahead_end_ = 0;
  } else if (ahead_begin_ > 0) {
    std::memmove(ahead_.data(), ahead_.data() + ahead_begin_, ahead_end_ - ahead_begin_);
    ahead_end_ -= ahead_begin_;
    ahead_begin_ = 0;
  }
  // Only behind the last bytes of the chunk.
  if (!in_chunk_ || fetched_.payload_room == current_.chunk.bytes - payload_done_)
    parts[count++] = {ahead_.data() + ahead_end_, ahead_room - ahead_end_};
  for (size_t i = 0; i < count; ++i) fetched_.wanted += parts[i].iov_len;
  fetched_.bytes = Receive(fd_.get(), std::span(parts, count));
  fetched_.would_block = WouldBlock(fetched_.bytes);
  return !fetched_.would_block;
}

BulkReceiver::Result BulkReceiver::Take(const Sink& sink, uint64_t* received_bytes) {
  if (fetched_.would_block) return Result::kEmpty;
  if (fetched_.bytes <= 0) return Result::kBroken;
  const auto got = static_cast<size_t>(fetched_.bytes);
  const size_t payload = std::min(got, fetched_.payload_room);
  payload_done_ += static_cast<uint32_t>(payload);
  ahead_end_ += got - payload;
  Count(payload, received_bytes);
  if (!Consume(sink, received_bytes)) return Result::kGarbled;
  // A short read has emptied the socket.
  return got < fetched_.wanted ? Result::kEmpty : Result::kMore;
}

BulkReceiver::Result BulkReceiver::ReadOn(const Sink& sink, Look look, uint64_t* received_bytes) {
  Result result = Take(sink, received_bytes);
  for (auto turn = static_cast<size_t>(fetched_.bytes); turn < tuning::kTurnBytes && result == Result::kMore;
       turn += static_cast<size_t>(fetched_.bytes)) {
    Fetch(look);
    result = Take(sink, received_bytes);
  }
  return result;
}

void BulkReceiver::Forget(FlowId flow) {
  if (in_chunk_ && current_.type == BulkType::kChunk && current_.chunk.flow == flow) destination_ = nullptr;
}

}  // namespace r2cc::net
