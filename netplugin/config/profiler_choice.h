// Checks whether NCCL can load the profiler that the job names. Pure.
#ifndef R2CC_NETPLUGIN_CONFIG_PROFILER_CHOICE_H_
#define R2CC_NETPLUGIN_CONFIG_PROFILER_CHOICE_H_

#include <string>

namespace r2cc::net {

// One line if `value` of NCCL_PROFILER_PLUGIN names several profilers, R2CC's among them: NCCL takes the whole value as one name, finds no
// such file, and continues without any profiler and without a warning. Empty: nothing to report. `value`: null if it is not set.
std::string SeveralProfilers(const char* value);

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_CONFIG_PROFILER_CHOICE_H_
