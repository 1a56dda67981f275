// The program of a rail socket's filter in the kernel. Pure.
#ifndef R2CC_HEALTH_IO_FILTER_PROGRAM_H_
#define R2CC_HEALTH_IO_FILTER_PROGRAM_H_

#include <linux/filter.h>

#include <string>
#include <vector>

#include "health/io/datagram.h"

namespace r2cc::health {

// Makes a filter that accepts what `filter` describes (all, if it has no words) unless it comes from one of `blocked`: numeric addresses
// of `family`.
std::vector<sock_filter> FilterProgram(const DatagramFilter& filter, int family, const std::vector<std::string>& blocked);

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_IO_FILTER_PROGRAM_H_
