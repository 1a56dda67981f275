#include "netplugin/transport/tcp/bulk.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/core/hash.h"

namespace r2cc::net {
namespace {

// How much one socket moves before the others get their turn.
constexpr uint64_t kTurnBytes = 1 << 20;

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

void BulkSender::Start(BulkType type) {
  BulkHeader header{.type = type, .chunk = chunk_, .checksummed = checksum_ || type == BulkType::kProof};
  if (header.checksummed) header.payload_crc = Crc32c(chunk_.data, chunk_.bytes);
  Encode(header, tag_, header_);
  done_ = 0;
  busy_ = true;
}

void BulkSender::SendProof(std::vector<std::byte> pattern) {
  proof_ = std::move(pattern);
  chunk_ = Chunk{};
  chunk_.data = proof_.data();
  chunk_.bytes = static_cast<uint32_t>(proof_.size());
  Start(BulkType::kProof);
}

BulkSender::Result BulkSender::Pump(const std::function<bool(Chunk*)>& pull, uint64_t* sent_bytes) {
  if (!busy_) {
    if (!pull(&chunk_)) return Result::kIdle;
    Start(BulkType::kChunk);
  }
  while (done_ < kBulkHeaderBytes + chunk_.bytes) {
    iovec parts[2];
    int count = 0;
    if (done_ < kBulkHeaderBytes) parts[count++] = {header_ + done_, kBulkHeaderBytes - done_};
    const size_t payload_done = done_ < kBulkHeaderBytes ? 0 : done_ - kBulkHeaderBytes;
    if (chunk_.bytes > payload_done) parts[count++] = {const_cast<std::byte*>(chunk_.data) + payload_done, chunk_.bytes - payload_done};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = static_cast<size_t>(count);
    const ssize_t n = sendmsg(fd_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (WouldBlock(n)) return Result::kBlocked;
    if (n <= 0) return Result::kBroken;
    done_ += static_cast<size_t>(n);
  }
  if (!proof_.empty())
    proof_.clear();
  else
    *sent_bytes += chunk_.bytes;
  busy_ = false;
  return Result::kMore;
}

// ---- receiver ----

bool BulkReceiver::StartChunk(const Sink& sink) {
  if (!Decode(header_, tag_, &current_)) return false;
  header_done_ = 0;
  payload_done_ = 0;
  in_chunk_ = true;
  destination_ = nullptr;
  if (current_.type == BulkType::kProof) {
    if (current_.chunk.bytes != kProofBytes) return false;
    scratch_.resize(kProofBytes);
    return true;
  }
  if (!sink.begin(current_.chunk, &destination_)) return false;
  if (destination_ == nullptr) scratch_.resize(std::max<size_t>(scratch_.size(), current_.chunk.bytes));
  return true;
}

bool BulkReceiver::EndChunk(const Sink& sink) {
  in_chunk_ = false;
  if (current_.type == BulkType::kProof) {
    sink.proof(std::memcmp(scratch_.data(), proof_pattern_.data(), kProofBytes) == 0);
    return true;
  }
  if (destination_ == nullptr) return true;
  if (current_.checksummed && Crc32c(destination_, current_.chunk.bytes) != current_.payload_crc) return false;
  sink.finish(current_.chunk);
  destination_ = nullptr;
  return true;
}

BulkReceiver::Result BulkReceiver::Read(const Sink& sink, uint64_t* received_bytes) {
  for (uint64_t turn = 0; turn < kTurnBytes;) {
    // The rest of this chunk and, in the same call, the header of the next.
    iovec parts[2];
    int count = 0;
    const size_t payload_left = in_chunk_ ? current_.chunk.bytes - payload_done_ : 0;
    if (payload_left > 0) parts[count++] = {(destination_ != nullptr ? destination_ : scratch_.data()) + payload_done_, payload_left};
    parts[count++] = {header_ + header_done_, kBulkHeaderBytes - header_done_};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = static_cast<size_t>(count);
    const ssize_t n = recvmsg(fd_.get(), &message, MSG_DONTWAIT);
    if (WouldBlock(n)) return Result::kEmpty;
    if (n <= 0) return Result::kBroken;
    turn += static_cast<uint64_t>(n);
    const size_t payload = std::min(static_cast<size_t>(n), payload_left);
    payload_done_ += static_cast<uint32_t>(payload);
    header_done_ += static_cast<size_t>(n) - payload;
    if (payload > 0) *received_bytes += payload;
    if (in_chunk_ && payload_done_ == current_.chunk.bytes && !EndChunk(sink)) return Result::kGarbled;
    if (header_done_ == kBulkHeaderBytes) {
      if (!StartChunk(sink)) return Result::kGarbled;
      // A chunk of no bytes is whole with its header.
      if (current_.chunk.bytes == 0 && !EndChunk(sink)) return Result::kGarbled;
    }
  }
  return Result::kMore;
}

void BulkReceiver::Forget(FlowId flow) {
  if (!in_chunk_ || current_.type != BulkType::kChunk || current_.chunk.flow != flow) return;
  scratch_.resize(std::max<size_t>(scratch_.size(), current_.chunk.bytes));
  destination_ = nullptr;
}

}  // namespace r2cc::net
