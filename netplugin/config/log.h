// Defines how the plugin's parts log: one line, passed to a function that the glue provides.
#ifndef R2CC_NETPLUGIN_CONFIG_LOG_H_
#define R2CC_NETPLUGIN_CONFIG_LOG_H_

#include <functional>
#include <string>

namespace r2cc::net {

enum class LogLevel { kWarn, kInfo, kDebug };

// Any thread of the plugin may call it; it must not block for long. An empty function logs nothing.
using LogFn = std::function<void(LogLevel, const std::string& line)>;

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_CONFIG_LOG_H_
