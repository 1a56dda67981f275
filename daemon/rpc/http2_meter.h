// Reads the frames of one HTTP/2 conversation and reports a client that asks for more than a conversation may cost. gRPC 1.51 bounds
// neither streams that a client opens and resets at once (CVE-2023-44487) nor requests without an end. Pure: bytes and times in, a reason
// out.
#ifndef R2CC_DAEMON_RPC_HTTP2_METER_H_
#define R2CC_DAEMON_RPC_HTTP2_METER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/core/clock.h"
#include "base/core/token_bucket.h"

namespace r2cc::daemon {

// Limits of a connection. The server holds messages that have begun, and the last message of each open stream until the next one
// begins. In memory they can have many times their bytes.
struct Http2Bounds {
  size_t message_bytes_max;        // of one gRPC message to the server
  size_t pending_bytes_max;        // of all messages of one conversation that the server holds
  size_t share_pending_bytes_max;  // of all conversations that share an allowance
  size_t streams_max;              // open at once
};

// The common allowance of several connections. It outlives their meters.
struct Http2Allowance {
  TokenBucket opened;        // has a token for each stream that a client opens
  size_t pending_bytes = 0;  // of messages that the server holds
};

// One thread at a time.
class Http2Meter {
 public:
  // Frames that make the server answer or allocate and open no stream: PING, SETTINGS, RST_STREAM, CONTINUATION, PRIORITY, empty DATA.
  static constexpr int kOtherFramesPerSecond = 200;
  static constexpr int kOtherFramesBurst = 1000;

  Http2Meter(const Http2Bounds& bounds, Http2Allowance* allowance)
      : bounds_(bounds), allowance_(allowance), others_(kOtherFramesPerSecond, kOtherFramesBurst), in_{.preface_left = kPreface.size()} {}
  ~Http2Meter() { allowance_->pending_bytes -= pending_bytes_; }
  Http2Meter(const Http2Meter&) = delete;
  Http2Meter& operator=(const Http2Meter&) = delete;

  // Takes what the client sent next. A reason: the conversation has to end, and what follows is not judged.
  std::optional<std::string> FromClient(std::string_view bytes, Nanos now);
  // Takes what the server sent next.
  void FromServer(std::string_view bytes);

  // The client has sent the whole preface of HTTP/2.
  bool begun() const { return in_.preface_left == 0; }
  size_t open_streams() const { return streams_.size(); }
  // The newest stream that the client has opened; 0: none.
  uint32_t last_opened() const { return last_opened_; }
  size_t pending_bytes() const { return pending_bytes_; }

 private:
  static constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  static constexpr size_t kFrameHeaderBytes = 9;
  static constexpr size_t kMessageHeaderBytes = 5;

  struct Frame {
    size_t bytes = 0;
    uint8_t type = 0;
    uint8_t flags = 0;
    uint32_t stream = 0;
  };
  // One direction's place between frames.
  struct Place {
    size_t preface_left = 0;
    std::array<unsigned char, kFrameHeaderBytes> header{};
    size_t header_bytes = 0;
    Frame frame;
    size_t payload_left = 0;
  };
  // A request's place between gRPC messages.
  struct Stream {
    std::array<unsigned char, kMessageHeaderBytes> header{};
    size_t header_bytes = 0;
    size_t message_left = 0;
    size_t pending = 0;  // bytes of the message that has begun, or of the last one
  };

  // Reads a frame's header. True: it is whole.
  static bool Header(Place* place, std::string_view* bytes);
  std::optional<std::string> Begin(const Frame& frame, Nanos now);
  std::optional<std::string> Data(uint32_t stream, std::string_view bytes);
  void Close(uint32_t stream);
  // The server holds nothing of the stream any more.
  void Release(Stream* stream);

  const Http2Bounds bounds_;
  Http2Allowance* const allowance_;
  TokenBucket others_;
  Place in_;
  Place out_;
  uint32_t last_opened_ = 0;
  std::map<uint32_t, Stream> streams_;
  size_t pending_bytes_ = 0;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_RPC_HTTP2_METER_H_
