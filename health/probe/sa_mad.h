// The messages between a subscriber and the subnet administrator (SA) of an InfiniBand fabric, as bytes and as values. Pure.
//
// Layouts: InfiniBand Architecture Specification, volume 1, chapters 13.4 (MAD header, Notice, InformInfo, trap numbers in 14.2.5.1) and
// 15.2 (SA header). All fields are big-endian.
#ifndef R2CC_HEALTH_PROBE_SA_MAD_H_
#define R2CC_HEALTH_PROBE_SA_MAD_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace r2cc::health {

constexpr size_t kMadBytes = 256;

// Traps of the subnet manager that report a fault or its end.
constexpr uint16_t kTrapPortInService = 64;
constexpr uint16_t kTrapPortOutOfService = 65;
constexpr uint16_t kTrapLinkState = 128;
constexpr uint16_t kTrapLinkIntegrity = 129;
constexpr uint16_t kTrapBufferOverrun = 130;
constexpr uint16_t kTrapFlowControl = 131;
constexpr uint16_t kTrapCapability = 144;

// A notice that somebody in the fabric sent.
struct SaNotice {
  uint16_t trap = 0;
  uint64_t guid = 0;  // of the port that came or went: traps 64 to 67
  uint16_t lid = 0;   // of the switch or port that speaks: traps 128 to 131 and 144
  uint8_t port = 0;   // traps 129 to 131

  friend bool operator==(const SaNotice&, const SaNotice&) = default;
};

struct SaMessage {
  enum class Kind : uint8_t { kReport, kSubscribed };
  Kind kind = Kind::kReport;
  uint32_t transaction = 0;
  uint16_t status = 0;  // of kSubscribed; 0: done
  SaNotice notice;      // of kReport

  friend bool operator==(const SaMessage&, const SaMessage&) = default;
};

// Asks the SA to report every notice to the sender's QP 1 (InformInfo, Set). `transaction` comes back with the answer.
std::string EncodeSubscription(uint32_t transaction);

// The contents of a MAD from the SA; nothing if it is neither a report of a generic notice nor the answer to a subscription.
std::optional<SaMessage> DecodeSaMessage(std::string_view mad);

// The answer that the SA waits for. REQUIRES: DecodeSaMessage() called it a report.
std::string EncodeReportAnswer(std::string_view report);

// Makes a report as the SA sends it: for tests and simulators.
std::string EncodeReport(uint32_t transaction, const SaNotice& notice);

// "port out of service"; empty: the trap is not about a fault.
const char* TrapName(uint16_t trap);

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_PROBE_SA_MAD_H_
