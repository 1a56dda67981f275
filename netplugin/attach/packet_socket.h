// Sends and receives packets over a SOCK_SEQPACKET Unix socket. No call blocks.
#ifndef R2CC_NETPLUGIN_ATTACH_PACKET_SOCKET_H_
#define R2CC_NETPLUGIN_ATTACH_PACKET_SOCKET_H_

#include <cstddef>
#include <string>
#include <vector>

namespace r2cc::net {

// Connects to `path` at once or not at all; -1 and the cause in `error`. Forked children do not keep the socket.
int ConnectPacketSocket(const std::string& path, std::string* error);
// Ends the connection, even if another process has a copy of the descriptor.
void ClosePacketSocket(int fd);

// False if the packet was not taken completely, for any reason.
bool SendPacket(int fd, const void* data, size_t bytes);

// Descriptors that came with a packet: closed with it unless taken.
class ReceivedFds {
 public:
  ReceivedFds() = default;
  ~ReceivedFds();
  ReceivedFds(const ReceivedFds&) = delete;
  ReceivedFds& operator=(const ReceivedFds&) = delete;

  void Add(int fd) { fds_.push_back(fd); }
  size_t size() const { return fds_.size(); }
  // The caller owns it from now on. Call it at most once for each.
  int Take(size_t i);

 private:
  std::vector<int> fds_;
};

enum class Received {
  kPacket,
  kNothing,  // would block
  kEnd,      // the other end closed, or the socket broke
  kTooLong,  // the packet did not fit, or had more descriptors than any sender sends; it is dropped
};

// Takes one packet of at most `capacity` bytes.
Received ReceivePacket(int fd, void* data, size_t capacity, size_t* bytes, ReceivedFds* fds);

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_ATTACH_PACKET_SOCKET_H_
