// The bulk sockets of a link: payload goes straight between NCCL's buffers and the socket. Nothing blocks, and a socket has one owner at a
// time: whoever holds its peer's lock, or a worker while it makes a call (see io_task.h).
#ifndef R2CC_NETPLUGIN_TRANSPORT_TCP_BULK_H_
#define R2CC_NETPLUGIN_TRANSPORT_TCP_BULK_H_

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <vector>

#include "base/core/function_ref.h"
#include "netplugin/link/frame.h"
#include "netplugin/transport/tcp/socket.h"

namespace r2cc::net {

constexpr uint32_t kProofBytes = 64 * 1024;
// The data check of one bulk socket: bytes that only this socket of this incarnation sends.
std::vector<std::byte> ProofPattern(uint64_t session, LinkId link, Incarnation incarnation, uint8_t socket);

class BulkSender {
 public:
  BulkSender(UniqueFd fd, uint32_t tag, bool checksum) : fd_(std::move(fd)), tag_(tag), checksum_(checksum) {}

  int fd() const { return fd_.get(); }
  void Reset() { fd_.Reset(); }

  // The data check begins with small packets of growing sizes, so that its acknowledgements tell which sizes pass. `offsets`: where in
  // the stream of header and pattern such a packet ends, ascending.
  void SendProof(std::vector<std::byte> pattern, std::vector<size_t> offsets = {});

  enum class Result {
    kIdle,     // nothing to send
    kBlocked,  // the socket is full: wait for writability
    kMore,     // the chunk is with the kernel, there is room for another
    kBroken,
  };
  // Unless something is left of the last chunks, pulls up to `most` new ones. Chunks that leave together save calls and short segments.
  // False: there is nothing to write.
  bool Load(FunctionRef<bool(Chunk*)> pull, int most);
  // Nothing is left of the last chunks: this one is next.
  void Load(const Chunk& chunk) {
    pieces_.clear();
    first_ = done_ = 0;
    Append(BulkType::kChunk, chunk);
  }
  // Writes it. Counts the payload bytes of whole chunks in `*sent_bytes`.
  Result Write(uint64_t* sent_bytes);
  // Both.
  Result Pump(FunctionRef<bool(Chunk*)> pull, int most, uint64_t* sent_bytes) {
    return Load(pull, most) ? Write(sent_bytes) : Result::kIdle;
  }
  static constexpr int kTogetherMost = 8;
  // Something is here that is not wholly with the kernel.
  bool busy() const { return first_ < pieces_.size(); }

  // True if some chunk that is here and not wholly with the kernel, so that its buffer is still in use, is so.
  bool AnyUnsent(FunctionRef<bool(const Chunk&)> is_so) const;
  // What is here and not wholly with the kernel.
  void ForEachUnsent(FunctionRef<void(const Chunk&)> visit) const;
  // The message goes on from a copy of its buffer.
  void Retarget(FlowId flow, MessageId message, const std::byte* copy);

 private:
  struct Piece {
    BulkType type;
    Chunk chunk;
    uint8_t header[kBulkHeaderBytes];

    size_t bytes() const { return kBulkHeaderBytes + chunk.bytes; }
  };
  void Append(BulkType type, const Chunk& chunk);

  UniqueFd fd_;
  const uint32_t tag_;
  const bool checksum_;
  std::vector<Piece> pieces_;
  size_t first_ = 0;  // the pieces before it are with the kernel
  size_t done_ = 0;   // bytes of it that are, too
  std::vector<std::byte> proof_;
  std::vector<size_t> proof_offsets_;  // of the packets that are still to be sent alone
};

class BulkReceiver {
 public:
  // What the receiver asks of its link.
  struct Sink {
    // Where a chunk goes; null destination: forget the bytes. False: end the link.
    FunctionRef<bool(const Chunk&, std::byte** destination)> begin;
    FunctionRef<void(const Chunk&)> finish;
    FunctionRef<void(bool ok)> proof;
  };
  BulkReceiver(UniqueFd fd, uint32_t tag, std::vector<std::byte> proof_pattern);

  int fd() const { return fd_.get(); }
  void Reset() { fd_.Reset(); }

  enum class Result { kEmpty, kMore, kBroken, kGarbled };
  // How a call reads.
  enum class Look {
    // Payload goes straight to its buffer: the kernel's copy alone is safe when a job that ends has unmapped its buffers without closing
    // its flows.
    kInPlace,
    // With its header payload may be read ahead, and then copied, which the job's own thread may do.
    kAhead,
  };
  // Reads what has arrived, one turn's worth. `*received_bytes` gains the payload of chunks.
  Result Read(const Sink& sink, Look look, uint64_t* received_bytes) {
    return Fetch(look) ? ReadOn(sink, look, received_bytes) : Result::kEmpty;
  }
  // The same in steps. The first call, which asks nobody: false if nothing has arrived.
  bool Fetch(Look look);
  // What came of it, ...
  Result Take(const Sink& sink, uint64_t* received_bytes);
  // ... and of as many more calls as there is something for.
  Result ReadOn(const Sink& sink, Look look, uint64_t* received_bytes);

  // The buffers of `flow` are given back: the rest of a half-read chunk goes nowhere.
  void Forget(FlowId flow);

 private:
  bool StartChunk(const Sink& sink);
  bool EndChunk(const Sink& sink);
  // Of the current chunk; a data check is none of the job's bytes, as its sender counts them.
  void Count(size_t payload, uint64_t* received_bytes) const;
  // Uses up what was read ahead. False if it breaks the protocol.
  bool Consume(const Sink& sink, uint64_t* received_bytes);
  // Where the next bytes of the payload go: the buffer, or memory that nobody reads.
  std::span<std::byte> Next();

  // Of the last Fetch().
  struct Fetched {
    size_t payload_room = 0, wanted = 0;
    ssize_t bytes = 0;
    bool would_block = false;
  };

  UniqueFd fd_;
  const uint32_t tag_;
  const std::vector<std::byte> proof_pattern_;
  // What was read ahead: a header, and with it a small message.
  std::vector<uint8_t> ahead_;
  size_t ahead_begin_ = 0, ahead_end_ = 0;
  BulkHeader current_;
  bool in_chunk_ = false;
  std::byte* destination_ = nullptr;
  uint32_t payload_done_ = 0;
  std::vector<std::byte> scratch_;
  Fetched fetched_;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_TCP_BULK_H_
