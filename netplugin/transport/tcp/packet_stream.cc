#include "netplugin/transport/tcp/packet_stream.h"

#include <sys/socket.h>

#include <cerrno>

#include "netplugin/flow/tuning.h"

namespace r2cc::net {
namespace {

constexpr size_t kReadBytes = 16 * 1024;

bool WouldBlock(ssize_t result) { return result < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR); }

}  // namespace

void PacketStream::Queue(const Bytes& packet) { out_.insert(out_.end(), packet.begin(), packet.end()); }

bool PacketStream::Flush() {
  while (sent_ < out_.size()) {
    const ssize_t n = send(fd_.get(), out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (WouldBlock(n)) return true;
    if (n <= 0) return false;
    sent_ += static_cast<size_t>(n);
  }
  out_.clear();
  sent_ = 0;
  return true;
}

PacketStream::State PacketStream::Read(FunctionRef<bool(std::span<const uint8_t>)> on_packet) {
  more_ = false;
  for (size_t read_bytes = 0; read_bytes < tuning::kControlBytesMost;) {
    uint8_t fresh[kReadBytes];
    const ssize_t n = recv(fd_.get(), fresh, sizeof(fresh), MSG_DONTWAIT);
    if (WouldBlock(n)) return State::kOpen;
    if (n <= 0) return State::kClosed;
    read_bytes += static_cast<size_t>(n);
    // Mostly nothing is left over from before, and all packets are whole.
    const bool whole_before = in_.empty();
    if (!whole_before) in_.insert(in_.end(), fresh, fresh + n);
    std::span<const uint8_t> rest = whole_before ? std::span<const uint8_t>(fresh, static_cast<size_t>(n)) : std::span<const uint8_t>(in_);
    const size_t had = rest.size();
    while (!rest.empty()) {
      const size_t length = PacketLength(rest);
      if (length > kPacketBytesMax) return State::kGarbled;
      if (length == 0 || length > rest.size()) break;
      const std::span<const uint8_t> packet = rest.first(length);
      rest = rest.subspan(length);
      if (!on_packet(packet)) return State::kOpen;
    }
    if (whole_before)
      in_.assign(rest.begin(), rest.end());
    else
      in_.erase(in_.begin(), in_.begin() + static_cast<ptrdiff_t>(had - rest.size()));
    if (static_cast<size_t>(n) < sizeof(fresh)) return State::kOpen;
  }
  more_ = true;
  return State::kOpen;
}

PacketStream::State PacketStream::ReadOne(Bytes* packet, bool* whole) {
  *whole = false;
  for (;;) {
    size_t want = kPacketHeaderBytes;
    if (in_.size() >= kPacketHeaderBytes) {
      want = PacketLength(in_);
      if (want > kGreetingBytesMax) return State::kGarbled;
      if (in_.size() == want) {
        *packet = std::move(in_);
        in_.clear();
        *whole = true;
        return State::kOpen;
      }
    } else if (!in_.empty() && PacketLength(in_) > kPacketBytesMax) {
      return State::kGarbled;
    }
    const size_t had = in_.size();
    in_.resize(want);
    const ssize_t n = recv(fd_.get(), in_.data() + had, want - had, MSG_DONTWAIT);
    in_.resize(had + (n > 0 ? static_cast<size_t>(n) : 0));
    if (WouldBlock(n)) return State::kOpen;
    if (n <= 0) return State::kClosed;
  }
}

}  // namespace r2cc::net
