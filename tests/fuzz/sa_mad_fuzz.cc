// MADs that come from the fabric: anybody who may send to QP 1 may send them.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/core/check.h"
#include "health/probe/sa_mad.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view mad(reinterpret_cast<const char*>(data), size);
  const auto message = r2cc::health::DecodeSaMessage(mad);
  if (!message.has_value()) return 0;
  R2CC_CHECK(size == r2cc::health::kMadBytes);
  if (message->kind == r2cc::health::SaMessage::Kind::kSubscribed) {
    R2CC_CHECK(message->notice == r2cc::health::SaNotice());
    return 0;
  }
  // What was understood is all that matters of a report: made again from it, it says the same.
  R2CC_CHECK(message->status == 0);
  R2CC_CHECK(r2cc::health::DecodeSaMessage(r2cc::health::EncodeReport(message->transaction, message->notice)) == message);
  R2CC_CHECK(r2cc::health::EncodeReportAnswer(mad).size() == r2cc::health::kMadBytes);
  return 0;
}
