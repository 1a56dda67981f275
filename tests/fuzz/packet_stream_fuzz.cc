// Packets out of a byte stream that arrives in any pieces: what was sent whole comes out whole, in order, and once; what is no packet ends
// the stream; nothing is read beyond a greeting.
#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "netplugin/transport/tcp/packet_stream.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/packets.h"

namespace {

using namespace r2cc;       // NOLINT
using namespace r2cc::net;  // NOLINT

struct Pair {
  Pair() {
    int fds[2];
    R2CC_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) == 0);
    near = UniqueFd(fds[0]);
    far = UniqueFd(fds[1]);
  }
  void Write(std::span<const uint8_t> bytes) {
    if (!bytes.empty()) R2CC_CHECK(send(far.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()));
  }
  UniqueFd near;
  UniqueFd far;
};

// Whole packets, cut anywhere; one bit of a header wrong, or none.
void Sound(fuzz::Input input) {
  Bytes stream;
  std::vector<Bytes> sent;
  const bool damage = input.TakeBool();
  for (size_t packets = input.Below(6); packets > 0; --packets) {
    const auto type = input.Take<uint8_t>();
    sent.push_back(fuzz::FrameWithBody(type, input.TakeBytes(input.Take<uint8_t>())));
    stream.insert(stream.end(), sent.back().begin(), sent.back().end());
  }
  size_t sound = sent.size();
  if (damage && !sent.empty()) {
    // The magic number of one packet: everything before it must still come out.
    const size_t victim = input.Below(sent.size());
    size_t at = 0;
    for (size_t i = 0; i < victim; ++i) at += sent[i].size();
    stream[at + input.Below(4)] ^= static_cast<uint8_t>(1u << input.Below(8));
    sound = victim;
  }
  Pair pair;
  PacketStream reader(std::move(pair.near));
  size_t received = 0;
  PacketStream::State state = PacketStream::State::kOpen;
  for (size_t at = 0; at < stream.size() && state == PacketStream::State::kOpen;) {
    const size_t piece = std::min<size_t>(1 + input.Take<uint8_t>(), stream.size() - at);
    pair.Write(std::span<const uint8_t>(stream).subspan(at, piece));
    at += piece;
    state = reader.Read([&](std::span<const uint8_t> packet) {
      R2CC_CHECK(received < sent.size() && Bytes(packet.begin(), packet.end()) == sent[received]);
      ++received;
      return true;
    });
  }
  R2CC_CHECK(received == sound);
  R2CC_CHECK((state == PacketStream::State::kGarbled) == (sound < sent.size()));
}

// Any bytes in any pieces. Reading on after an end is nobody's right.
void Any(fuzz::Input input) {
  Pair pair;
  PacketStream reader(std::move(pair.near));
  const bool stop_early = input.TakeBool();
  while (!input.empty()) {
    pair.Write(input.TakeBytes(1 + input.Take<uint8_t>()));
    size_t packets = 0;
    const PacketStream::State state = reader.Read([&](std::span<const uint8_t> packet) {
      R2CC_CHECK(PacketLength(packet) == packet.size());
      ++packets;
      return !stop_early;
    });
    if (state != PacketStream::State::kOpen || (stop_early && packets > 0)) return;
  }
}

// A greeting, then bytes that belong to whoever takes the socket over.
void Greeting(fuzz::Input input) {
  const Bytes greeting = fuzz::WithBody(Hello{}, input.TakeBytes(input.Take<uint8_t>()));
  const std::span<const uint8_t> after = input.TakeBytes(input.Below(32));
  Pair pair;
  PacketStream reader(std::move(pair.near));
  Bytes packet;
  bool whole = false;
  for (size_t at = 0; !whole;) {
    R2CC_CHECK(at < greeting.size());
    size_t piece = std::min<size_t>(1 + input.Take<uint8_t>(), greeting.size() - at);
    Bytes bytes(greeting.begin() + static_cast<ptrdiff_t>(at), greeting.begin() + static_cast<ptrdiff_t>(at + piece));
    at += piece;
    if (at == greeting.size()) bytes.insert(bytes.end(), after.begin(), after.end());
    pair.Write(bytes);
    R2CC_CHECK(reader.ReadOne(&packet, &whole) == PacketStream::State::kOpen);
    R2CC_CHECK(whole == (at == greeting.size()));
  }
  R2CC_CHECK(packet == greeting);
  const UniqueFd rest = reader.Release();
  uint8_t left[64];
  const ssize_t n = recv(rest.get(), left, sizeof(left), MSG_DONTWAIT);
  R2CC_CHECK(Bytes(left, left + std::max<ssize_t>(n, 0)) == Bytes(after.begin(), after.end()));
}

void AnyGreeting(fuzz::Input input) {
  Pair pair;
  PacketStream reader(std::move(pair.near));
  while (!input.empty()) {
    pair.Write(input.TakeBytes(1 + input.Take<uint8_t>()));
    Bytes packet;
    bool whole = false;
    if (reader.ReadOne(&packet, &whole) != PacketStream::State::kOpen) return;
    R2CC_CHECK(!whole || PacketLength(packet) == packet.size());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  switch (input.Below(4)) {
    case 0: Sound(input); break;
    case 1: Any(input); break;
    case 2: Greeting(input); break;
    default: AnyGreeting(input); break;
  }
  return 0;
}
