// A bulk socket's headers and payloads in any pieces, under a sink that takes, drops or refuses chunks: bytes go where the sink said and
// nowhere else, and only a whole chunk is reported.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <iterator>
#include <memory>
#include <span>
#include <vector>

#include "netplugin/transport/tcp/bulk.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/packets.h"

namespace {

using namespace r2cc;       // NOLINT
using namespace r2cc::net;  // NOLINT

constexpr uint32_t kPlacedBytesMax = 64 * 1024;

// Hands out a buffer of a chunk's size for each chunk that it takes, so that a sanitizer sees a byte too many.
class Sink {
 public:
  explicit Sink(uint8_t policy) : policy_(policy) {}

  // Refers to this object.
  BulkReceiver::Sink Callbacks() { return {.begin = begin_, .finish = finish_, .proof = proof_}; }
  int proofs() const { return proofs_; }
  void Forget(FlowId flow, BulkReceiver* receiver) {
    receiver->Forget(flow);
    if (!open_ || chunk_.flow != flow) return;
    open_ = false;
    buffer_.reset();
  }
  FlowId open_flow() const { return open_ ? chunk_.flow : 0; }

 private:
  bool Begin(const Chunk& chunk, std::byte** destination) {
    R2CC_CHECK(chunk.bytes <= kBulkBytesMax && chunk.message_bytes <= kMessageBytesMax && !open_);
    *destination = nullptr;
    const unsigned choice = (policy_ + begun_++) % 4;
    if (choice == 0 || chunk.bytes > kPlacedBytesMax) return false;
    if (choice == 1) return true;
    buffer_.reset(new std::byte[chunk.bytes]);
    *destination = buffer_.get();
    open_ = true;
    chunk_ = chunk;
    return true;
  }
  void Finish(const Chunk& chunk) {
    R2CC_CHECK(open_ && chunk.flow == chunk_.flow && chunk.message == chunk_.message && chunk.bytes == chunk_.bytes);
    open_ = false;
  }

  const std::function<bool(const Chunk&, std::byte**)> begin_ = [this](const Chunk& chunk, std::byte** to) { return Begin(chunk, to); };
  const std::function<void(const Chunk&)> finish_ = [this](const Chunk& chunk) { Finish(chunk); };
  const std::function<void(bool)> proof_ = [this](bool ok) { proofs_ += ok ? 1 : 0; };
  const uint8_t policy_;
  unsigned begun_ = 0;
  bool open_ = false;
  Chunk chunk_;
  std::unique_ptr<std::byte[]> buffer_;
  int proofs_ = 0;
};

void Append(std::span<const uint8_t> bytes, Bytes* stream) { stream->insert(stream->end(), bytes.begin(), bytes.end()); }

// One header, honest or not, and something like its payload.
void AppendChunk(fuzz::Input* input, Bytes* stream) {
  BulkHeader header;
  header.type = input->Below(8) == 0 ? BulkType::kProof : BulkType::kChunk;
  header.chunk.flow = input->Take<uint8_t>();
  header.chunk.index = static_cast<uint32_t>(input->TakeNumber());
  header.chunk.message = input->TakeNumber();
  header.chunk.message_bytes = input->TakeNumber();
  header.chunk.chunk_bytes = static_cast<uint32_t>(input->TakeNumber());
  header.chunk.bytes = header.type == BulkType::kProof ? kProofBytes : input->Take<uint16_t>() % 600;
  if (input->Below(16) == 0) header.chunk.bytes = static_cast<uint32_t>(input->TakeNumber());
  header.checksummed = input->TakeBool();
  header.chunk.eager = input->TakeBool();
  const uint32_t sent = std::min<uint32_t>(header.chunk.bytes, 600);
  Bytes payload(sent, 0x5a);
  if (header.type == BulkType::kProof) {
    const std::vector<std::byte> pattern = ProofPattern(1, 2, 3, static_cast<uint8_t>(input->Below(2)));
    payload.resize(pattern.size());
    std::memcpy(payload.data(), pattern.data(), pattern.size());
  }
  header.payload_crc = input->Below(4) == 0 ? 0 : Crc32c(payload.data(), payload.size());
  uint8_t bytes[kBulkHeaderBytes];
  Encode(header, fuzz::kNoTag, bytes);
  if (input->Below(4) == 0) {
    bytes[input->Below(kBulkHeaderBytes)] = input->Take<uint8_t>();
    fuzz::SealBulk(bytes);
  }
  Append(bytes, stream);
  Append(payload, stream);
}

void CheckHeader(fuzz::Input input) {
  uint8_t bytes[kBulkHeaderBytes];
  Encode(BulkHeader{}, fuzz::kNoTag, bytes);
  const std::span<const uint8_t> rest = input.TakeBytes(kBulkHeaderBytes);
  std::copy(rest.begin(), rest.end(), bytes);
  if (input.Below(8) != 0) fuzz::SealBulk(bytes);
  BulkHeader header;
  if (!Decode(bytes, fuzz::kNoTag, &header)) return;
  R2CC_CHECK(header.chunk.bytes <= kBulkBytesMax && header.chunk.message_bytes <= kMessageBytesMax && header.chunk.data == nullptr);
  uint8_t again[kBulkHeaderBytes];
  Encode(header, fuzz::kNoTag, again);
  BulkHeader twice;
  R2CC_CHECK(Decode(again, fuzz::kNoTag, &twice) && twice.chunk.message == header.chunk.message && twice.chunk.index == header.chunk.index);
}

void CheckStream(fuzz::Input input) {
  const auto policy = input.Take<uint8_t>();
  Sink sink(policy);
  // Threads that look in different ways take turns at a socket.
  constexpr BulkReceiver::Look kLooks[] = {BulkReceiver::Look::kAhead, BulkReceiver::Look::kInPlace};
  Bytes stream;
  for (size_t chunks = 1 + input.Below(6); chunks > 0; --chunks) AppendChunk(&input, &stream);
  int fds[2];
  R2CC_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) == 0);
  const UniqueFd far(fds[1]);
  BulkReceiver receiver(UniqueFd(fds[0]), fuzz::kNoTag, ProofPattern(1, 2, 3, 0));
  uint64_t received = 0;
  for (size_t at = 0; at < stream.size();) {
    const size_t piece = std::min<size_t>(input.empty() ? 4096 : 1 + input.Take<uint16_t>() % 4096, stream.size() - at);
    const ssize_t n = send(far.get(), stream.data() + at, piece, MSG_NOSIGNAL);
    R2CC_CHECK(n > 0);
    at += static_cast<size_t>(n);
    const BulkReceiver::Result result = receiver.Read(sink.Callbacks(), kLooks[input.Below(std::size(kLooks))], &received);
    if (result == BulkReceiver::Result::kGarbled || result == BulkReceiver::Result::kBroken) return;
    if (input.Below(8) == 0) sink.Forget(sink.open_flow(), &receiver);
  }
  R2CC_CHECK(received <= stream.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  if (input.Below(3) == 0)
    CheckHeader(input);
  else
    CheckStream(input);
  return 0;
}
