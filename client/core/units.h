// Numbers as a person reads them, with the unit.
#ifndef R2CC_CLIENT_CORE_UNITS_H_
#define R2CC_CLIENT_CORE_UNITS_H_

#include <cstdint>
#include <string>

namespace r2cc::client {

// "0 B", "512 B", "1.5 GiB".
std::string FormatBytes(uint64_t bytes);

// "500 Mbit/s", "100 Gbit/s"; "?" for 0, which means unknown.
std::string FormatRate(uint64_t bits_per_s);

// "250 us", "12.3 ms", "4.0 s", "3 min 2 s", "2 h 5 min", "3 d 4 h".
std::string FormatDuration(int64_t duration_ns);

// "100%", "33.3%".
std::string FormatPermille(uint32_t permille);

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_CORE_UNITS_H_
