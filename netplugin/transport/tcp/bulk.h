// Moves payload between NCCL's buffers and a link's bulk sockets, without a copy between. No call blocks. A socket has one owner at a time:
// the holder of its peer's lock, or a worker while it makes a call (see io_task.h).
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

  // The data check begins with small packets of growing sizes, so that its acknowledgements show which sizes pass. `offsets`: the ends of
  // such packets in the stream of header and pattern, ascending.
  void SendProof(std::vector<std::byte> pattern, std::vector<size_t> offsets = {});

  enum class Result {
    kIdle,     // nothing to send
    kBlocked,  // the kernel has the chunk, and there is room for another
    kMore,     // the chunk is with the kernel, there is room for another
    kBroken,
  };
  // Pulls up to `most` new chunks, unless something is left of the last ones. Chunks that leave together save calls and short segments.
  // False: there is nothing to write.
  bool Load(FunctionRef<bool(Chunk*)> pull, int most);
  // Nothing may be left of the last chunks: this one is next.
  void Load(const Chunk& chunk) {
    pieces_.clear();
    first_ = done_ = 0;
    Append(BulkType::kChunk, chunk);
  }
  // Writes what was loaded. Adds the payload bytes of whole chunks to `*sent_bytes`.
  Result Write(uint64_t* sent_bytes);
  // Loads, then writes.
  Result Pump(FunctionRef<bool(Chunk*)> pull, int most, uint64_t* sent_bytes) {
    return Load(pull, most) ? Write(sent_bytes) : Result::kIdle;
  }
  static constexpr int kTogetherMost = 8;
  // Some chunk is loaded that the kernel does not have completely.
  bool busy() const { return first_ < pieces_.size(); }

  // True if `is_so` is true for some chunk that the kernel does not have completely, so that its buffer is still in use.
  bool AnyUnsent(FunctionRef<bool(const Chunk&)> is_so) const;
  // Visits the chunks that the kernel does not have completely.
  void ForEachUnsent(FunctionRef<void(const Chunk&)> visit) const;
  // The message continues from a copy of its buffer.
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
  size_t first_ = 0;  // the kernel has the pieces before it
  size_t done_ = 0;   // bytes of that piece that the kernel has, too
  std::vector<std::byte> proof_;
  std::vector<size_t> proof_offsets_;  // of the packets that still have to be sent alone
};

class BulkReceiver {
 public:
  // The receiver's calls into its link.
  struct Sink {
    // Where a chunk goes; null destination: drop the bytes. False: end the link.
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
    // Payload goes straight to its buffer. If a job that ends has unmapped its buffers without closing its flows, only the kernel's copy is
    // safe.
    kInPlace,
    // Payload may be read ahead with its header, and copied later, which only the job's own thread may do.
    kAhead,
  };
  // Reads what has arrived, one turn's worth. Adds the payload of chunks to `*received_bytes`.
  Result Read(const Sink& sink, Look look, uint64_t* received_bytes) {
    return Fetch(look) ? ReadOn(sink, look, received_bytes) : Result::kEmpty;
  }
  // The same in steps. The first call, which makes no call to the sink: false if nothing has arrived.
  bool Fetch(Look look);
  // Handles the result of that call.
  Result Take(const Sink& sink, uint64_t* received_bytes);
  // Handles the results of further calls, as long as they read something.
  Result ReadOn(const Sink& sink, Look look, uint64_t* received_bytes);

  // The buffers of `flow` are given back: the rest of a half-read chunk is dropped.
  void Forget(FlowId flow);

 private:
  bool StartChunk(const Sink& sink);
  bool EndChunk(const Sink& sink);
  // Counts payload of the current chunk. A data check is not counted, as at its sender: it is not the job's data.
  void Count(size_t payload, uint64_t* received_bytes) const;
  // Consumes what was read ahead. False if it breaks the protocol.
  bool Consume(const Sink& sink, uint64_t* received_bytes);
  // Where the next bytes of the payload go: the buffer, or memory that is not read.
  std::span<std::byte> Next();

  // The state of the last Fetch().
  struct Fetched {
    size_t payload_room = 0, wanted = 0;
    ssize_t bytes = 0;
    bool would_block = false;
  };

  UniqueFd fd_;
  const uint32_t tag_;
  const std::vector<std::byte> proof_pattern_;
  // What was read ahead: a header, and a small message with it.
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
