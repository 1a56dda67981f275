// How the plugin's parts speak: one line, given to a function that the glue provides.
#ifndef R2CC_NETPLUGIN_CONFIG_LOG_H_
#define R2CC_NETPLUGIN_CONFIG_LOG_H_

#include <functional>
#include <string>

namespace r2cc::net {

enum class LogLevel { kWarn, kInfo, kDebug };

// Called from any thread of the plugin; must not block for long. An empty function is silence.
using LogFn = std::function<void(LogLevel, const std::string& line)>;

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_CONFIG_LOG_H_
