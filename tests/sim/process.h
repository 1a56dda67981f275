// One simulated process: its I/O thread's loop, its listeners and its sessions. The counterpart of netplugin/transport's Engine.
//
// A process can be stopped (its kernel goes on), slowed, killed, and ended in order. The job's code runs in `progress`, once a turn.
#ifndef R2CC_TESTS_SIM_PROCESS_H_
#define R2CC_TESTS_SIM_PROCESS_H_

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "tests/sim/recv_end.h"
#include "tests/sim/send_end.h"

namespace r2cc::sim {

class Process : public Network::Host {
 public:
  Process(Network* network, Tap* tap, int host, const ProcessOptions& options);
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  int host() const { return io_.host; }
  Io& io() { return io_; }

  // ---- the job; call only from `progress` ----

  std::function<void()> progress;

  struct SendFlow {
    SendEnd* end = nullptr;
    net::FlowId id = 0;
  };
  struct RecvFlow {
    RecvEnd* end = nullptr;
    net::FlowId id = 0;
  };
  SendFlow Connect(int peer, uint64_t listen_id, int local_rail);
  void Listen(uint64_t listen_id) { listeners_.insert(listen_id); }
  void CloseListen(uint64_t listen_id) { listeners_.erase(listen_id); }
  // False until a flow is there.
  bool Accept(uint64_t listen_id, RecvFlow* flow);

  // ---- what happens to it ----

  void Wake();
  void Stop();
  void Continue();
  bool stopped() const { return stopped_ > 0; }
  // No turn before then: a busy machine.
  void Pause(Nanos duration);
  void Kill(bool child_holds_sockets);
  bool dead() const { return dead_; }
  // The job is over: drain, then end. dead() when it is done.
  void Exit();
  bool exiting() const { return exiting_; }
  // It ended although its peers had not heard everything, after it had tried for the whole of the deadline.
  bool gave_up() const { return gave_up_; }
  Nanos exit_began() const { return exit_began_; }
  void RailState(int rail, bool up);
  void ApplyVerdicts();

  const std::map<int, std::unique_ptr<SendEnd>>& send_ends() const { return send_ends_; }
  const std::map<uint64_t, std::unique_ptr<RecvEnd>>& recv_ends() const { return recv_ends_; }

 private:
  struct Caller {
    std::unique_ptr<FrameStream> stream;
    Io::Token token = 0;
  };

  void Accepted(Port local, std::shared_ptr<Socket> socket) override;
  void Turn();
  void Plan(Nanos when);
  bool Drained();
  void End();
  void CallerSpeaks(uint64_t caller);
  bool Greet(const net::Hello& hello, std::unique_ptr<FrameStream>* stream);

  Io io_;
  std::map<int, std::unique_ptr<SendEnd>> send_ends_;       // by peer
  std::map<uint64_t, std::unique_ptr<RecvEnd>> recv_ends_;  // by session
  std::map<uint64_t, Caller> callers_;
  uint64_t next_caller_ = 1;
  std::set<uint64_t> listeners_;
  std::map<uint64_t, std::deque<RecvFlow>> opened_;
  std::vector<std::function<void()>> calls_;  // for the next turn
  uint64_t generation_ = 0;                   // of the planned turn
  Nanos planned_ = 0;                         // 0: none
  Nanos ticked_ = 0;
  Nanos paused_until_ = 0;
  int stopped_ = 0;
  bool dead_ = false;
  bool exiting_ = false;
  bool gave_up_ = false;
  Nanos exit_began_ = 0;
};

}  // namespace r2cc::sim

#endif  // R2CC_TESTS_SIM_PROCESS_H_
