#include "daemon/rpc/http2_meter.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace r2cc::daemon {
namespace {

// RFC 9113.
constexpr uint8_t kData = 0x0;
constexpr uint8_t kHeaders = 0x1;
constexpr uint8_t kRstStream = 0x3;
constexpr uint8_t kWindowUpdate = 0x8;
constexpr uint8_t kEndStream = 0x1;
constexpr uint8_t kPadded = 0x8;

}  // namespace

bool Http2Meter::Header(Place* place, std::string_view* bytes) {
  while (place->header_bytes < kFrameHeaderBytes && !bytes->empty()) {
    place->header[place->header_bytes++] = static_cast<unsigned char>(bytes->front());
    bytes->remove_prefix(1);
  }
  if (place->header_bytes < kFrameHeaderBytes) return false;
  const auto& h = place->header;
  place->frame = {.bytes = (size_t{h[0]} << 16) | (size_t{h[1]} << 8) | h[2],
                  .type = h[3],
                  .flags = h[4],
                  .stream = ((uint32_t{h[5]} << 24) | (uint32_t{h[6]} << 16) | (uint32_t{h[7]} << 8) | h[8]) & 0x7fff'ffff};
  place->payload_left = place->frame.bytes;
  place->header_bytes = 0;
  return true;
}

std::optional<std::string> Http2Meter::FromClient(std::string_view bytes, Nanos now) {
  while (in_.preface_left > 0 && !bytes.empty()) {
    if (bytes.front() != kPreface[kPreface.size() - in_.preface_left]) return "it does not use HTTP/2";
    --in_.preface_left;
    bytes.remove_prefix(1);
  }
  while (!bytes.empty()) {
    if (in_.payload_left == 0) {
      if (!Header(&in_, &bytes)) return std::nullopt;
      if (auto reason = Begin(in_.frame, now)) return reason;
    }
    const std::string_view part = bytes.substr(0, in_.payload_left);
    bytes.remove_prefix(part.size());
    in_.payload_left -= part.size();
    if (in_.frame.type == kData) {
      if (auto reason = Data(in_.frame.stream, part)) return reason;
    } else if (in_.frame.type == kRstStream && in_.payload_left == 0) {
      Close(in_.frame.stream);
    }
  }
  return std::nullopt;
}

std::optional<std::string> Http2Meter::Begin(const Frame& frame, Nanos now) {
  if (frame.type == kHeaders && frame.stream > last_opened_) {
    last_opened_ = frame.stream;
    const TokenBucket& opened = allowance_->opened;
    if (!allowance_->opened.Take(now))
      return absl::StrCat("it opens more than ", opened.per_second(), " streams a second, and ", opened.burst(), " at once");
    if (streams_.size() >= bounds_.streams_max) return absl::StrCat("it opens more than ", bounds_.streams_max, " streams at a time");
    streams_.try_emplace(frame.stream);
    return std::nullopt;
  }
  if (frame.type == kData && (frame.flags & kPadded) != 0) return "it pads its data, as gRPC never does";
  if (frame.type == kWindowUpdate || (frame.type == kData && frame.bytes > 0)) return std::nullopt;
  // The last DATA frame of a request may be empty: each stream has one for nothing.
  if (frame.type == kData && (frame.flags & kEndStream) != 0 && streams_.count(frame.stream) > 0) return std::nullopt;
  if (!others_.Take(now)) return absl::StrCat("it sends more than ", kOtherFramesPerSecond, " frames a second that are no requests");
  return std::nullopt;
}

std::optional<std::string> Http2Meter::Data(uint32_t number, std::string_view bytes) {
  const auto found = streams_.find(number);
  if (found == streams_.end()) return std::nullopt;  // it is over, which the client does not know yet
  Stream& stream = found->second;
  while (!bytes.empty()) {
    if (stream.header_bytes < kMessageHeaderBytes) {
      stream.header[stream.header_bytes++] = static_cast<unsigned char>(bytes.front());
      bytes.remove_prefix(1);
      if (stream.header_bytes < kMessageHeaderBytes) continue;
      Release(&stream);
      const auto& h = stream.header;
      stream.message_left = (size_t{h[1]} << 24) | (size_t{h[2]} << 16) | (size_t{h[3]} << 8) | h[4];
      // A compressed one has no length that could be judged; none of our programs compresses.
      if (h[0] != 0) return "it sends compressed messages";
      if (stream.message_left > bounds_.message_bytes_max)
        return absl::StrCat("it sends a message of ", stream.message_left, " bytes, and ", bounds_.message_bytes_max, " are taken");
    } else {
      const size_t part = std::min(bytes.size(), stream.message_left);
      bytes.remove_prefix(part);
      stream.message_left -= part;
      stream.pending += part;
      pending_bytes_ += part;
      allowance_->pending_bytes += part;
      if (pending_bytes_ > bounds_.pending_bytes_max)
        return absl::StrCat("it has more than ", bounds_.pending_bytes_max, " bytes of requests under way");
      if (allowance_->pending_bytes > bounds_.share_pending_bytes_max)
        return absl::StrCat("its connections have more than ", bounds_.share_pending_bytes_max, " bytes of requests under way");
    }
    if (stream.header_bytes == kMessageHeaderBytes && stream.message_left == 0) stream.header_bytes = 0;
  }
  return std::nullopt;
}

void Http2Meter::FromServer(std::string_view bytes) {
  while (!bytes.empty()) {
    if (out_.payload_left == 0 && !Header(&out_, &bytes)) return;
    const size_t part = std::min(bytes.size(), out_.payload_left);
    bytes.remove_prefix(part);
    out_.payload_left -= part;
    if (out_.payload_left > 0) continue;
    const Frame& frame = out_.frame;
    if (frame.type == kRstStream || ((frame.type == kData || frame.type == kHeaders) && (frame.flags & kEndStream) != 0))
      Close(frame.stream);
  }
}

void Http2Meter::Close(uint32_t number) {
  const auto found = streams_.find(number);
  if (found == streams_.end()) return;
  Release(&found->second);
  streams_.erase(found);
}

void Http2Meter::Release(Stream* stream) {
  pending_bytes_ -= stream->pending;
  allowance_->pending_bytes -= stream->pending;
  stream->pending = 0;
}

}  // namespace r2cc::daemon
