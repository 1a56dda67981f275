// The embedded store of another node's daemon, over gRPC.
#ifndef R2CC_DAEMON_RPC_GRPC_STORE_H_
#define R2CC_DAEMON_RPC_GRPC_STORE_H_

#include <functional>
#include <memory>
#include <string>

#include "base/executor.h"
#include "daemon/io/store.h"
#include "daemon/rpc/call_count.h"
#include "daemon/rpc/channel.h"
#include "daemon/rpc/put_queue.h"
#include "daemon/rpc/reconnect.h"
#include "proto/store.grpc.pb.h"

namespace r2cc::daemon {

class GrpcStore final : public Store {
 public:
  // `executor` (the core's) outlives the store.
  GrpcStore(Executor* executor, const PeerSpec& server, const Credentials& credentials);
  // Waits until every call has ended.
  ~GrpcStore() override;

  void Start(const std::string& prefix, Callbacks callbacks) override;
  void Put(const std::string& key, const std::string& value, int64_t lease_ms) override;
  void Stop() override;

 private:
  class WatchCall;

  void Connect();
  void OnConnected();
  void OnEnd(const std::string& why);
  void SendPut(const std::string& key, const std::string& value, int64_t lease_ms, std::function<void(bool)> done);
  void Tick();
  void SetState(const std::string& state);

  Executor* const executor_;
  const PeerSpec server_;
  PeerStubs<v1::Store> stubs_;
  const std::shared_ptr<CallCount> calls_;
  std::string prefix_;
  Callbacks callbacks_;
  PutQueue puts_;
  std::shared_ptr<WatchCall> watch_;
  std::string state_;
  bool connected_ = false;  // the present watch was connected
  ExponentialBackOff backoff_ = ReconnectBackOff();
  TimerId reconnect_timer_ = 0;
  TimerId tick_timer_ = 0;
  // False after Stop; core thread only, shared with tasks that are still posted then.
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_RPC_GRPC_STORE_H_
