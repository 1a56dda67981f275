// Checks r2ccd by its own status and the kernel's facts. Pure.
#ifndef R2CC_CLIENT_DOCTOR_DAEMON_CHECKS_H_
#define R2CC_CLIENT_DOCTOR_DAEMON_CHECKS_H_

#include "client/doctor/facts.h"
#include "client/doctor/finding.h"

namespace r2cc::client {

// Clocks further apart make certificates invalid and times of events useless.
constexpr int64_t kClockApartMaxNs = 5'000'000'000;
// As r2ccd's own alarm.
constexpr int64_t kCertificateWarnDays = 30;
constexpr int64_t kCertificateErrorDays = 7;
// Two for each of a node's processes, and one for each connection: with less a large node turns jobs away.
constexpr uint64_t kOpenFilesMin = 4096;
// Linux's default; with less, the probes of a node that was paused for a moment are lost.
constexpr int64_t kReceiveBufferMin = 212'992;
// Part of the page's entries beyond which a growing cluster would soon leave some out.
constexpr size_t kPagePercentMax = 80;

Findings CheckDaemon(const DaemonFacts& daemon, int64_t now_ns);

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_DOCTOR_DAEMON_CHECKS_H_
