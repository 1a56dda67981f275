// Runs one incarnation of a link at the acceptor's end: a control socket and some bulk sockets.
#ifndef R2CC_NETPLUGIN_TRANSPORT_TCP_RECV_LINK_H_
#define R2CC_NETPLUGIN_TRANSPORT_TCP_RECV_LINK_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "netplugin/flow/flow_map.h"
#include "netplugin/transport/links.h"
#include "netplugin/transport/tcp/bulk.h"
#include "netplugin/transport/tcp/control_socket.h"
#include "netplugin/transport/tcp/io_task.h"
#include "netplugin/transport/tcp/quick_ack_policy.h"

namespace r2cc::net {

class TcpPort;

class TcpRecvLink final : public RecvLink {
 public:
  TcpRecvLink(TcpPort* port, const LinkName& name, RecvOwner* owner, Counter* carried);
  ~TcpRecvLink() override;

  ControlChannel* control() override { return &control_; }
  bool Close() override;

  bool Attach(const Hello& hello, const HelloReply& reply, std::unique_ptr<Connection>* greeted, bool* control,
              std::string* reason) override;
  bool Poll(FlowId wanted) override;
  void ReadMore() override;
  bool Forget(FlowId flow) override;

  // Sockets that NCCL's threads poll all the time need not be in the poller. Reads what has come on those with every poll.
  void ReadUnwatched();
  // No thread polls any more: puts those sockets into the poller again.
  void WatchAll();

 private:
  class Task;
  struct Bulk {
    std::unique_ptr<BulkReceiver> receiver;
    Poller::Token token = 0;  // 0: a worker waits for data, or NCCL's threads poll all the time
    int found = 0;            // polls by them that found something, since the poller had it
    bool more = false;
    bool proved = false;  // its data check came
    QuickAckPolicy quick_ack;
    SocketOwnership ownership;

    bool ours() const { return receiver != nullptr && !ownership.by_worker(); }
    bool unwatched() const { return ours() && token == 0; }
  };
  // The data check came on each of its sockets.
  bool whole() const {
    return !bulk_.empty() && std::all_of(bulk_.begin(), bulk_.end(), [](const Bulk& bulk) { return bulk.proved; });
  }
  void Trouble(plan::EvidenceCause cause) { owner_->Trouble(name_, cause); }
  // True if anything was read.
  bool Read(size_t index);
  // Calls `read` with the link's sink, and handles the result. True if anything was read.
  bool Reading(size_t index, FunctionRef<BulkReceiver::Result(const BulkReceiver::Sink&, uint64_t* received_bytes)> read);
  void Watch(size_t index);
  // Gives all sockets but the first to workers, for as long as they live.
  void GiveToWorkers();
  // A poll found something there.
  void Found(Bulk* bulk);

  TcpPort* const port_;
  const LinkName name_;
  RecvOwner* const owner_;
  Counter* const carried_;
  ControlSocket control_;
  std::vector<Bulk> bulk_;
  FlowMap<size_t> last_socket_;  // the socket that brought a flow's last chunk
  bool proved_ = true;
  bool closed_ = false;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_TCP_RECV_LINK_H_
