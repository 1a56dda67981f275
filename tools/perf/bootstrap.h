// Connects the ranks of one job, so that they agree: one TCP connection from every rank to rank 0.
//
// All ranks make the same calls in the same order: Gather (all bytes to rank 0), then Broadcast (rank 0's bytes to all). A rank that fails
// sends the reason to rank 0, which forwards it to the others; a rank that vanishes is noticed by its connection. So one failure ends all
// ranks, each with one line.
#ifndef R2CC_TOOLS_PERF_BOOTSTRAP_H_
#define R2CC_TOOLS_PERF_BOOTSTRAP_H_

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "tools/perf/status.h"

namespace r2cc::perf {

// A listening socket on "HOST:PORT" (port 0: any). *port is the one it got. If HOST is a name that has only loopback addresses here, the
// socket listens on all addresses of this machine, and a line on standard error states that.
Status ListenTcp(const std::string& host_port, int* fd, int* port);

// One thread only.
class Bootstrap {
 public:
  Bootstrap() = default;
  ~Bootstrap();
  Bootstrap(const Bootstrap&) = delete;
  Bootstrap& operator=(const Bootstrap&) = delete;

  // Rank 0: accepts ranks - 1 connections on listen_fd (and closes it). Every rank sends its `job`; a different one is refused. Waits
  // without limit and prints on standard error which ranks are missing.
  Status Accept(int listen_fd, int ranks, std::string_view job);
  // Other ranks: connects to rank 0, and tries again for timeout_s while no process listens there.
  Status Connect(const std::string& host_port, int rank, int ranks, std::string_view job, int timeout_s);

  // Rank 0 gets the bytes of all, by rank; the other ranks get nothing back.
  Status Gather(std::string_view mine, std::vector<std::string>* all);
  // *text is sent by rank 0 and received by the others.
  Status Broadcast(std::string* text);
  // Gathers and broadcasts: every rank gets the bytes of all, by rank. All must have the same length.
  Status AllGather(std::string_view mine, std::vector<std::string>* all);

  // Waits until other_fd is readable (*ready) or timeout_ms passed, and fails as soon as a rank fails.
  Status WaitFor(int other_fd, int timeout_ms, bool* ready);

  // Sends the other ranks the reason why this one ends. Does not wait.
  void Fail(const std::string& why);

 private:
  struct Peer {
    int rank = 0;
    int fd = -1;
    std::string unread;                // bytes of an incomplete frame
    std::deque<std::string> messages;  // whole frames that were not taken yet
  };

  Status Handshake(int fd, std::string_view job);
  Status SendFrame(Peer* peer, uint32_t type, std::string_view text);
  Status ReadFrames(Peer* peer);
  Status TakeMessage(Peer* peer, std::string* text);
  Status PeerLost(const Peer& peer, const std::string& how);
  Status PassOn(const std::string& sentence);

  int rank_ = 0;
  int ranks_ = 0;
  std::vector<Peer> peers_;  // rank 0: all others; other ranks: rank 0
};

}  // namespace r2cc::perf

#endif  // R2CC_TOOLS_PERF_BOOTSTRAP_H_
