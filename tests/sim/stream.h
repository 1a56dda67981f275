// What travels over a simulated connection: packets of the production codec, and bulk chunks. The counterparts of
// netplugin/transport/tcp's sockets.
#ifndef R2CC_TESTS_SIM_STREAM_H_
#define R2CC_TESTS_SIM_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "netplugin/link/frame.h"
#include "tests/sim/network.h"
#include "tests/sim/tap.h"

namespace r2cc::sim {

class FrameStream {
 public:
  explicit FrameStream(std::shared_ptr<Socket> socket) : socket_(std::move(socket)) {}

  Socket& socket() { return *socket_; }
  const std::shared_ptr<Socket>& shared() const { return socket_; }
  std::shared_ptr<Socket> Release() { return std::move(socket_); }

  void Send(const net::Bytes& packet);
  void Flush();
  bool flushed() const { return out_.empty(); }

  enum class State { kOpen, kClosed, kGarbled };
  // Calls `on_packet` for each whole packet until it answers false.
  State Read(const std::function<bool(std::span<const uint8_t>)>& on_packet);
  // Reads one packet and nothing behind it: what follows a greeting belongs to somebody else.
  State ReadOne(net::Bytes* packet, bool* whole);

 private:
  std::shared_ptr<Socket> socket_;
  std::vector<uint8_t> out_;
  std::vector<uint8_t> in_;
};

constexpr uint32_t kSimProofBytes = 2048;
std::vector<std::byte> SimProof(uint64_t session, net::LinkId link, net::Incarnation incarnation, uint8_t socket);

// Behind each header, where the sender places: by which key, and where.
struct SimKey {
  uint64_t number = 0;  // 0: there is none
  uint64_t address = 0;
};
constexpr size_t HeaderBytes(bool keys) { return net::kBulkHeaderBytes + (keys ? sizeof(SimKey) : 0); }

class BulkOut {
 public:
  BulkOut(std::shared_ptr<Socket> socket, uint32_t tag, int host, Tap* tap, bool keys)
      : socket_(std::move(socket)), tag_(tag), host_(host), tap_(tap), header_bytes_(HeaderBytes(keys)) {}

  Socket& socket() { return *socket_; }
  void SendProof(std::vector<std::byte> pattern);
  enum class Result { kIdle, kBlocked, kMore };
  Result Pump(const std::function<bool(net::Chunk*, SimKey*)>& pull);
  bool busy() const { return busy_; }
  // The chunk that is half-way into the socket: its buffer is still in use.
  const net::Chunk* half_sent() const { return busy_ && proof_.empty() ? &chunk_ : nullptr; }
  // It goes on from a copy of its buffer.
  void Retarget(const std::byte* copy) {
    if (half_sent() == nullptr) return;
    chunk_.data = copy;
    chunk_.memory = nullptr;
  }

 private:
  void Start(net::BulkType type, const SimKey& key);

  std::shared_ptr<Socket> socket_;
  const uint32_t tag_;
  const int host_;
  Tap* const tap_;
  const size_t header_bytes_;
  bool busy_ = false;
  net::Chunk chunk_;
  std::vector<std::byte> proof_;
  uint8_t header_[HeaderBytes(true)];
  size_t done_ = 0;
};

class BulkIn {
 public:
  struct Sink {
    std::function<bool(const net::Chunk&, const SimKey& key, std::byte** destination)> begin;
    std::function<void(const net::Chunk&)> finish;
    std::function<void(bool ok)> proof;
  };
  BulkIn(std::shared_ptr<Socket> socket, uint32_t tag, int host, Tap* tap, bool keys, std::vector<std::byte> pattern)
      : socket_(std::move(socket)), tag_(tag), host_(host), tap_(tap), header_bytes_(HeaderBytes(keys)), pattern_(std::move(pattern)) {}

  Socket& socket() { return *socket_; }
  enum class Result { kEmpty, kMore, kBroken, kGarbled };
  // At most about `turn_bytes`.
  Result Read(const Sink& sink, size_t turn_bytes);
  void Forget(net::FlowId flow);

  // A worker's call, without anybody's lock: bytes of the chunk at hand go to their place. What came of it is told by the next Read(). True
  // if there were any.
  bool Fetch(size_t most);
  // The chunk that is half-way into its buffer; null: none.
  const net::Chunk* half_read() const { return in_chunk_ && destination_ != nullptr ? &current_.chunk : nullptr; }

 private:
  bool StartChunk(const Sink& sink);
  bool EndChunk(const Sink& sink);

  std::shared_ptr<Socket> socket_;
  const uint32_t tag_;
  const int host_;
  Tap* const tap_;
  const size_t header_bytes_;
  const std::vector<std::byte> pattern_;
  uint8_t header_[HeaderBytes(true)];
  size_t header_done_ = 0;
  net::BulkHeader current_;
  bool in_chunk_ = false;
  std::byte* destination_ = nullptr;
  uint32_t payload_done_ = 0;
  uint32_t fetched_ = 0;  // behind payload_done_, and not told
  std::vector<std::byte> scratch_;
};

}  // namespace r2cc::sim

#endif  // R2CC_TESTS_SIM_STREAM_H_
