// Whether NCCL loads the profiler that the job asks for. Pure.
#ifndef R2CC_NETPLUGIN_CONFIG_PROFILER_CHOICE_H_
#define R2CC_NETPLUGIN_CONFIG_PROFILER_CHOICE_H_

#include <string>

namespace r2cc::net {

// One line if NCCL_PROFILER_PLUGIN has this value and names several, R2CC's among them: NCCL takes the whole value as one name, finds no
// such file, and goes on without any profiler and without a warning. Empty: there is nothing to say. `value`: null where it is not set.
std::string SeveralProfilers(const char* value);

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_CONFIG_PROFILER_CHOICE_H_
