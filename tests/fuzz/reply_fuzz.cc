// Replies of a daemon of any release as r2ccctl shows them: whatever stands in them, it is lines of text, and does not steer the terminal.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/core/check.h"
#include "client/format/format.h"
#include "proto/json.h"
#include "proto/r2cc.pb.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/messages.h"

namespace {

using namespace r2cc;  // NOLINT

constexpr const char* kNames[] = {
    "", "n0", "n1", "rail0", "rail1", "failover", "nic-state", "up", "silent", "n0/rail0", "HEALTHY -> FAILED"};

// Bytes below a blank but the ends of lines, DEL, and the second row of control characters (U+0080 to U+009F).
bool Plain(const std::string& text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte < 0x20 && byte != '\n') || byte == 0x7f) return false;
    if (byte == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0) return false;
  }
  return true;
}

template <typename Reply>
Reply Take(fuzz::Input* input) {
  Reply reply;
  fuzz::Fill(input, kNames, &reply);
  return reply;
}

template <typename Reply, typename Format>
void Check(fuzz::Input* input, Format format) {
  const Reply reply = Take<Reply>(input);
  const std::string text = format(reply);
  R2CC_CHECK(!text.empty() && text.back() == '\n');
  R2CC_CHECK(Plain(text));
  R2CC_CHECK(ToJsonDocument(reply).ok());
  const auto line = ToJsonLine(reply);
  R2CC_CHECK(line.ok() && line->find('\n') == line->size() - 1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  const client::Style style{static_cast<int64_t>(input.TakeNumber() >> 1), absl::UTCTimeZone(), false};
  const auto with_style = [&](auto format) { return [&style, format](const auto& reply) { return format(reply, style); }; };
  switch (input.Below(9)) {
    case 0: Check<v1::StatusReply>(&input, [&style](const auto& reply) { return client::FormatStatus(reply, style); }); break;
    case 1: Check<v1::ListNicsReply>(&input, [&style](const auto& reply) { return client::FormatNics(reply, style, false); }); break;
    case 2: Check<v1::Event>(&input, [&style](const auto& reply) { return client::FormatEvent(reply, style); }); break;
    case 3: Check<v1::ListJobsReply>(&input, with_style(client::FormatJobs)); break;
    case 4: Check<v1::Plan>(&input, with_style(client::FormatPlan)); break;
    case 5: Check<v1::ExplainNicReply>(&input, with_style(client::FormatExplainNic)); break;
    case 6: Check<v1::ProbePathsReply>(&input, with_style(client::FormatPaths)); break;
    case 7: Check<v1::ExplainPlanReply>(&input, with_style(client::FormatExplainPlan)); break;
    default: {
      const auto request = Take<v1::NicActionRequest>(&input);
      Check<v1::NicActionReply>(&input, [&](const auto& reply) { return client::FormatNicAction(request, reply, style); });
      break;
    }
  }
  return 0;
}
