// `r2ccctl doctor`: what is wrong with this node, its ways to others, and the jobs that would be started here.
#ifndef R2CC_CLIENT_DOCTOR_DOCTOR_H_
#define R2CC_CLIENT_DOCTOR_DOCTOR_H_

#include <functional>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "client/core/style.h"
#include "client/doctor/doctor_command.h"
#include "client/doctor/facts.h"
#include "client/doctor/finding.h"
#include "client/doctor/machine.h"
#include "proto/doctor.pb.h"

namespace r2cc::client {

// All checks of what was gathered.
Findings CheckAll(const Facts& facts);

v1::DoctorReport ToReport(const Findings& findings);
// Looks once.
v1::DoctorReport Diagnose(const DoctorCommand& command, Machine& machine);
// A line for each finding, and one of how many there are. `all`: also what is ok.
std::string FormatDoctor(const v1::DoctorReport& report, bool all, const Style& style);

// Looks, and writes the report to `out`. FAILED_PRECONDITION with how many checks failed, if any did. `wait`: for some milliseconds; false:
// the person has seen enough.
absl::Status Run(const DoctorCommand& command, Machine& machine, const Style& style, std::ostream& out,
                 const std::function<bool(int milliseconds)>& wait);

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_DOCTOR_DOCTOR_H_
