// The simulated network as a transport: netplugin/transport's links.h and oob.h over Network. The peers that use it are those that users
// run.
#ifndef R2CC_TESTS_SIM_SIM_TRANSPORT_H_
#define R2CC_TESTS_SIM_SIM_TRANSPORT_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "netplugin/transport/oob.h"
#include "tests/sim/io.h"
#include "tests/sim/ready_set.h"
#include "tests/sim/sim_probes.h"
#include "tests/sim/stream.h"

namespace r2cc::sim {

// A rail of a host, as peers hear of it. It has another generation after each change of its address.
struct RailAddress {
  Port port;
  uint8_t generation = 0;
};
net::Endpoint EndpointOf(const RailAddress& address);
RailAddress AddressOf(const net::Endpoint& endpoint);
std::string HostName(int host);
std::string RailName(int rail);
// Of a name that ends with its number, as daemons may call its node otherwise.
int HostOf(const std::string& name);

class SimConnection final : public net::Connection {
 public:
  explicit SimConnection(std::unique_ptr<FrameStream> of) : stream(std::move(of)) {}
  ~SimConnection() override {
    if (stream != nullptr) stream->socket().Reset();
  }
  std::unique_ptr<FrameStream> stream;
};

class SimPort;
class SimChannel final : public net::ControlChannel {
 public:
  SimChannel(SimPort* port, net::ControlSink sink) : port_(port), sink_(std::move(sink)) {}

  bool open() const { return stream_ != nullptr; }
  // It has been greeted.
  void Open(std::unique_ptr<FrameStream> stream);
  // Reset: a reset, unsent bytes lost.
  void Close(bool abandon);
  void Queue(const net::Frame& frame) override;
  bool Flush() override {
    if (open()) stream_->Flush();
    return true;
  }
  bool flushed() const override { return !open() || stream_->flushed(); }
  void HalfClose() override {
    if (open()) stream_->socket().HalfClose();
  }
  void Poll() override;
  // Null while it is not open.
  const Socket* socket() const { return stream_ == nullptr ? nullptr : &stream_->socket(); }

 private:
  SimPort* const port_;
  const net::ControlSink sink_;
  std::unique_ptr<FrameStream> stream_;
  ReadySet::Token token_ = 0;
};

class SimRecvLink;
class SimSendLink;

class SimPort final : public net::OobPort {
 public:
  SimPort(Io* io, SimProbes* probes, const net::SessionKey& key) : io(io), probes(probes), key(key), ready(io->wake) {}

  std::unique_ptr<net::SendLink> NewSend(const net::LinkName& name, net::SendOwner* owner, net::Counter* carried) override;
  std::unique_ptr<net::RecvLink> NewRecv(const net::LinkName& name, net::RecvOwner* owner, net::Counter* carried) override;
  std::unique_ptr<net::Oob> NewOob(const net::OobAddress& peer, net::OobOwner* owner) override;
  bool Poll() override;
  bool has_workers() const override { return io->options.workers; }
  // A device of the rail is lost: its links have trouble.
  void LoseDevice(uint16_t rail);

  // ---- for its links ----

  // Nothing that happens to the sockets is told any more.
  template <typename Sockets>
  void Unwatch(Sockets* sockets) {
    for (auto& one : *sockets)
      if (one.token != 0) ready.Unwatch(std::exchange(one.token, 0), one.socket.get());
  }
  Io* const io;
  SimProbes* const probes;
  const net::SessionKey key;
  ReadySet ready;
  std::vector<ReadySet::Token> stuck;  // whose bulk nobody reads for now
  std::vector<SimSendLink*> senders;
  std::vector<SimRecvLink*> receivers;
  // Mutant: chunks whose link ended half-way through them, by link.
  std::map<net::LinkId, net::Chunk> stale;
};

class SimTransport final : public net::OobTransport {
 public:
  // `on_rails`: it carries links too. Else it gives no keys, as TCP does.
  SimTransport(Io* io, net::Greet greet, bool on_rails)
      : io_(io), greet_(std::move(greet)), keys_(on_rails && io->options.keys), ready_(io->wake), probes_(io) {}

  net::TransportKind kind() const override { return net::TransportKind::kTcp; }
  bool ListenOob(const std::string&, uint16_t*, std::string*) override { return true; }
  bool Reaches(const net::OobAddress&) const override { return true; }
  bool Listen(const net::Rail& rail, net::Endpoint* own, std::string* error) override;
  bool Register(const net::Memory& memory, uint16_t rail, net::Endpoint* key, std::string* error) override;
  void Unregister(const net::Memory& memory, uint16_t rail) override;
  std::unique_ptr<net::OobPort> NewOobPort(const net::SessionKey& key, const net::PeerState*) override {
    return std::make_unique<SimPort>(io_, &probes_, key);
  }

  // Somebody has connected.
  void Accepted(std::shared_ptr<Socket> socket);
  void RunReady() { ready_.Run(); }
  void Tick(Nanos now) override;

 private:
  struct Caller {
    std::unique_ptr<FrameStream> stream;
    ReadySet::Token token = 0;
    Nanos since = 0;
  };
  void CallerSpeaks(uint64_t caller);
  std::unique_ptr<FrameStream> Take(uint64_t caller);

  Io* const io_;
  const net::Greet greet_;
  const bool keys_;
  ReadySet ready_;
  SimProbes probes_;
  std::map<uint64_t, Caller> callers_;
  uint64_t next_caller_ = 1;
};

}  // namespace r2cc::sim

#endif  // R2CC_TESTS_SIM_SIM_TRANSPORT_H_
