#include "health/probe/sa_mad.h"

#include "base/core/check.h"

namespace r2cc::health {
namespace {

constexpr uint8_t kBaseVersion = 1;
constexpr uint8_t kClassSubnetAdministration = 0x03;
constexpr uint8_t kClassVersion = 2;
constexpr uint8_t kMethodSet = 0x02;
constexpr uint8_t kMethodReport = 0x06;
constexpr uint8_t kMethodGetResponse = 0x81;
constexpr uint8_t kMethodReportResponse = 0x86;
constexpr uint16_t kAttributeNotice = 0x0002;
constexpr uint16_t kAttributeInformInfo = 0x0003;

// Offsets in the MAD header.
constexpr size_t kMethodAt = 3;
constexpr size_t kStatusAt = 4;
constexpr size_t kTransactionAt = 12;  // the lower half: the kernel puts the agent's number into the upper one
constexpr size_t kAttributeAt = 16;
// Offsets in the SA header; RMPP's part stays zero, as nothing here is longer than one MAD.
constexpr size_t kComponentMaskAt = 48;
constexpr size_t kDataAt = 56;
// InformInfo.
constexpr size_t kLidBeginAt = kDataAt + 16;
constexpr size_t kIsGenericAt = kDataAt + 22;
constexpr size_t kSubscribeAt = kDataAt + 23;
constexpr size_t kTypeAt = kDataAt + 24;
constexpr size_t kTrapAt = kDataAt + 26;
constexpr size_t kQpnAt = kDataAt + 28;
constexpr size_t kProducerAt = kDataAt + 33;
// LIDRangeBegin and End, IsGeneric, Subscribe, Type, TrapNumber, QPN, RespTime, ProducerType.
constexpr uint64_t kComponents = 0x6 | 0x10 | 0x20 | 0x40 | 0x80 | 0x100 | 0x400 | 0x1000;
constexpr uint16_t kAll16 = 0xffff;
constexpr uint32_t kGeneralServicesQp = 1;
constexpr uint32_t kResponseTime = 18;  // 4.096 us * 2^18: a second
// Notice.
constexpr size_t kNoticeTypeAt = kDataAt;
constexpr uint8_t kNoticeGeneric = 0x80;
constexpr size_t kNoticeTrapAt = kDataAt + 4;
constexpr size_t kDetailsAt = kDataAt + 10;
constexpr size_t kDetailGuidAt = kDetailsAt + 6 + 8;  // the lower half of the GID
constexpr size_t kDetailLidAt = kDetailsAt;           // trap 128
constexpr size_t kDetailPortLidAt = kDetailsAt + 2;   // traps 129 to 131 and 144
constexpr size_t kDetailPortAt = kDetailsAt + 4;

void Put(std::string* mad, size_t at, size_t bytes, uint64_t value) {
  for (size_t i = 0; i < bytes; ++i) (*mad)[at + i] = static_cast<char>(value >> (8 * (bytes - 1 - i)));
}

uint64_t Get(std::string_view mad, size_t at, size_t bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes; ++i) value = value << 8 | static_cast<uint8_t>(mad[at + i]);
  return value;
}

std::string Begin(uint8_t method, uint16_t attribute, uint32_t transaction) {
  std::string mad(kMadBytes, '\0');
  Put(&mad, 0, 1, kBaseVersion);
  Put(&mad, 1, 1, kClassSubnetAdministration);
  Put(&mad, 2, 1, kClassVersion);
  Put(&mad, kMethodAt, 1, method);
  Put(&mad, kTransactionAt, 4, transaction);
  Put(&mad, kAttributeAt, 2, attribute);
  return mad;
}

bool NamesAGuid(uint16_t trap) { return trap >= 64 && trap <= 67; }
bool NamesAPort(uint16_t trap) { return trap >= kTrapLinkIntegrity && trap <= kTrapFlowControl; }

SaNotice DecodeNotice(std::string_view mad) {
  SaNotice notice;
  notice.trap = static_cast<uint16_t>(Get(mad, kNoticeTrapAt, 2));
  if (NamesAGuid(notice.trap)) notice.guid = Get(mad, kDetailGuidAt, 8);
  if (notice.trap == kTrapLinkState) notice.lid = static_cast<uint16_t>(Get(mad, kDetailLidAt, 2));
  if (NamesAPort(notice.trap) || notice.trap == kTrapCapability) notice.lid = static_cast<uint16_t>(Get(mad, kDetailPortLidAt, 2));
  if (NamesAPort(notice.trap)) notice.port = static_cast<uint8_t>(Get(mad, kDetailPortAt, 1));
  return notice;
}

}  // namespace

std::string EncodeSubscription(uint32_t transaction) {
  std::string mad = Begin(kMethodSet, kAttributeInformInfo, transaction);
  Put(&mad, kComponentMaskAt, 8, kComponents);
  // No GID is named: of all sources, by their LIDs.
  Put(&mad, kLidBeginAt, 2, kAll16);
  Put(&mad, kIsGenericAt, 1, 1);
  Put(&mad, kSubscribeAt, 1, 1);
  Put(&mad, kTypeAt, 2, kAll16);
  Put(&mad, kTrapAt, 2, kAll16);
  Put(&mad, kQpnAt, 4, kGeneralServicesQp << 8 | kResponseTime);
  Put(&mad, kProducerAt, 3, 0xffffff);
  return mad;
}

std::optional<SaMessage> DecodeSaMessage(std::string_view mad) {
  if (mad.size() != kMadBytes || Get(mad, 0, 1) != kBaseVersion || Get(mad, 1, 1) != kClassSubnetAdministration ||
      Get(mad, 2, 1) != kClassVersion)
    return std::nullopt;
  const auto method = static_cast<uint8_t>(Get(mad, kMethodAt, 1));
  const auto attribute = static_cast<uint16_t>(Get(mad, kAttributeAt, 2));
  SaMessage message;
  message.transaction = static_cast<uint32_t>(Get(mad, kTransactionAt, 4));
  if (method == kMethodGetResponse && attribute == kAttributeInformInfo) {
    message.kind = SaMessage::Kind::kSubscribed;
    message.status = static_cast<uint16_t>(Get(mad, kStatusAt, 2));
    return message;
  }
  const bool generic = (Get(mad, kNoticeTypeAt, 1) & kNoticeGeneric) != 0;
  if (method != kMethodReport || attribute != kAttributeNotice || !generic) return std::nullopt;
  message.notice = DecodeNotice(mad);
  return message;
}

std::string EncodeReportAnswer(std::string_view report) {
  R2CC_CHECK(report.size() == kMadBytes);
  std::string answer(report);
  Put(&answer, kMethodAt, 1, kMethodReportResponse);
  Put(&answer, kStatusAt, 2, 0);
  return answer;
}

std::string EncodeReport(uint32_t transaction, const SaNotice& notice) {
  std::string mad = Begin(kMethodReport, kAttributeNotice, transaction);
  Put(&mad, kNoticeTypeAt, 1, kNoticeGeneric);
  Put(&mad, kNoticeTrapAt, 2, notice.trap);
  if (NamesAGuid(notice.trap)) Put(&mad, kDetailGuidAt, 8, notice.guid);
  if (notice.trap == kTrapLinkState) Put(&mad, kDetailLidAt, 2, notice.lid);
  if (NamesAPort(notice.trap) || notice.trap == kTrapCapability) Put(&mad, kDetailPortLidAt, 2, notice.lid);
  if (NamesAPort(notice.trap)) Put(&mad, kDetailPortAt, 1, notice.port);
  return mad;
}

const char* TrapName(uint16_t trap) {
  switch (trap) {
    case kTrapPortInService: return "port in service";
    case kTrapPortOutOfService: return "port out of service";
    case kTrapLinkState: return "link state changed";
    case kTrapLinkIntegrity: return "local link integrity errors";
    case kTrapBufferOverrun: return "excessive buffer overruns";
    case kTrapFlowControl: return "flow control timed out";
    case kTrapCapability: return "capability or link width or speed changed";
    default: return "";
  }
}

}  // namespace r2cc::health
