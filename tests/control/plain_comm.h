// The plain plugin's connections: one TCP socket each, everything done inside the caller's calls, no thread, no protection.
// A message is its length in eight bytes, then its bytes.
#ifndef R2CC_TESTS_CONTROL_PLAIN_COMM_H_
#define R2CC_TESTS_CONTROL_PLAIN_COMM_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

#include "netplugin/abi/nccl_types.h"
#include "tests/control/rails.h"

namespace r2cc::control {

class PlainComm;

struct Request {
  PlainComm* comm = nullptr;  // nullptr: free
  uint8_t* data = nullptr;
  uint64_t bytes = 0;  // to send; of a receive first its room, then what came
  uint64_t moved = 0;  // of header and data
  uint64_t header = 0;
  bool finished = false;
  bool reported = false;
};

// One direction of one connection. One thread at a time.
class PlainComm {
 public:
  PlainComm(int fd, bool sends) : fd_(fd), sends_(sends) {}
  ~PlainComm();
  PlainComm(const PlainComm&) = delete;
  PlainComm& operator=(const PlainComm&) = delete;

  int fd() const { return fd_; }
  // nullptr: too many outstanding, ask again.
  Request* Post(void* data, uint64_t bytes);
  // Moves what the socket takes or gives. kRemoteError or kSystemError once the connection is broken, with the reason in error().
  abi::Result Pump();
  abi::Result Test(Request* request, int* done, int* size);
  const std::string& error() const { return error_; }

 private:
  abi::Result PumpSend();
  abi::Result PumpReceive();
  abi::Result Broken(const char* call, int error);
  void Finish();
  bool HoldsBack();
  bool DoneTooEarly(const Request* request) const;

  const int fd_;
  const bool sends_;
  std::array<Request, abi::kNetRequestsMax> requests_{};
  std::deque<Request*> queue_;  // posted and not finished, in order
  std::string error_;

  // For the planted bugs alone.
  int64_t messages_ = 0;
  int64_t held_polls_ = 0;
  std::array<uint8_t*, 3> recent_{};
};

struct ListenComm {
  explicit ListenComm(int socket) : fd(socket) {}
  ~ListenComm();
  ListenComm(const ListenComm&) = delete;
  ListenComm& operator=(const ListenComm&) = delete;
  const int fd;
};

// What travels in the 128 bytes; `connecting` is the connector's own, between its calls.
struct Handle {
  uint64_t magic;
  sockaddr_in address;
  int connecting_fd;
};
static_assert(sizeof(Handle) <= abi::kNetHandleBytesMax);

abi::Result Listen(const Rail& rail, Handle* handle, ListenComm** comm, std::string* error);
// Both leave *comm NULL while there is nothing yet.
abi::Result Connect(const Rail& rail, Handle* handle, PlainComm** comm, std::string* error);
abi::Result Accept(ListenComm* listener, PlainComm** comm, std::string* error);

}  // namespace r2cc::control

#endif  // R2CC_TESTS_CONTROL_PLAIN_COMM_H_
