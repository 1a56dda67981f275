// Callers connect to a listening port: any bytes in any pieces, from several at once, some of which never send anything. Only a
// sound greeting reaches the process, everybody else is counted, and after the listener's patience nobody is left waiting.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "netplugin/flow/tuning.h"
#include "netplugin/transport/tcp/listener.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/packets.h"

namespace {

using namespace r2cc;       // NOLINT
using namespace r2cc::net;  // NOLINT

constexpr size_t kCallers = 4;

// A listening socket with a name that the kernel chose.
UniqueFd ListenUnix(sockaddr_un* address, socklen_t* length) {
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  *address = {};
  address->sun_family = AF_UNIX;
  R2CC_CHECK(bind(fd.get(), reinterpret_cast<const sockaddr*>(address), sizeof(sa_family_t)) == 0 && listen(fd.get(), 16) == 0);
  *length = sizeof(*address);
  R2CC_CHECK(getsockname(fd.get(), reinterpret_cast<sockaddr*>(address), length) == 0);
  return fd;
}

Bytes Greeting(fuzz::Input* input) {
  if (input->Below(4) == 0) return fuzz::WithBody(Hello{}, input->TakeBytes(input->Take<uint8_t>()));
  Hello hello;
  hello.kind = static_cast<ConnectionKind>(input->Below(2));
  hello.nonce = input->Below(3);
  hello.session = input->Take<uint8_t>();
  hello.link = static_cast<LinkId>(input->TakeNumber());
  hello.links = static_cast<uint16_t>(input->TakeNumber());
  return Encode(hello);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  FakeClock clock;
  Poller poller;
  uint64_t accepted = 0, asked = 0;
  DescriptorWatch descriptors(&clock, [](LogLevel, const std::string&) { R2CC_CHECK(false); });
  const auto greet = [&](const Hello& hello, std::unique_ptr<Connection>* connection) {
    R2CC_CHECK(connection->get() != nullptr && hello.link < kLinksMax && hello.links <= kLinksMax);
    ++asked;
    HelloReply reply;
    reply.accepted = hello.nonce == 1;
    reply.reason = "a stranger";
    if (reply.accepted) {
      ++accepted;
      connection->reset();
    }
    return reply;
  };
  TcpListener listener(&poller, &clock, TcpListener::WaitingMax(0), greet, &descriptors);
  sockaddr_un address;
  socklen_t length;
  listener.AddListener(ListenUnix(&address, &length));

  std::array<UniqueFd, kCallers> callers;
  uint64_t connected = 0;
  for (int step = 0; step < 64 && !input.empty(); ++step) {
    UniqueFd& caller = callers[input.Below(kCallers)];
    switch (input.Below(6)) {
      case 0: caller = UniqueFd(); break;
      case 1:
        caller = UniqueFd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        if (connect(caller.get(), reinterpret_cast<const sockaddr*>(&address), length) == 0) ++connected;
        break;
      case 2: {
        const std::span<const uint8_t> bytes = input.TakeBytes(input.Take<uint8_t>());
        if (caller && !bytes.empty()) send(caller.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
        break;
      }
      case 3: {
        const Bytes greeting = Greeting(&input);
        if (caller) send(caller.get(), greeting.data(), greeting.size() - input.Below(2), MSG_NOSIGNAL);
        break;
      }
      case 4: clock.Advance(static_cast<Nanos>(input.Below(16)) * kNanosPerSecond / 2); break;
      default: listener.Tick(clock.Now()); break;
    }
    poller.Wait(0);
  }
  while (!poller.Wait(0)) {
  }
  poller.Wait(0);  // what was accepted in the round before
  clock.Advance(tuning::kSpeaksWithin);
  listener.Tick(clock.Now());
  R2CC_CHECK(asked >= accepted && listener.refused() + accepted == connected);
  return 0;
}
