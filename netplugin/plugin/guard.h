// Guards every entry of the tables: no exception crosses the ABI, and the first call starts the process's engine.
#ifndef R2CC_NETPLUGIN_PLUGIN_GUARD_H_
#define R2CC_NETPLUGIN_PLUGIN_GUARD_H_

#include <exception>
#include <string>

#include "netplugin/abi/nccl_types.h"
#include "netplugin/plugin/process.h"

namespace r2cc::net {

inline abi::Result Refuse(abi::Result result, const std::string& line) {
  Process::Get().Log(LogLevel::kWarn, line);
  return result;
}

// The error of all calls that take a buffer and its registration: see LiesIn().
constexpr char kOutside[] = "R2CC: a buffer does not lie in the registration that it was given with";

// No exception crosses the ABI. There may be no memory left to report it.
template <typename Body>
abi::Result Caught(Body body) noexcept {
  try {
    return body();
  } catch (const std::exception& exception) {
    Process::Get().Log(LogLevel::kWarn, "R2CC: ", exception.what());
  } catch (...) {
    Process::Get().Log(LogLevel::kWarn, "R2CC: ", "an unknown exception");
  }
  return abi::Result::kInternalError;
}

// Every entry uses it, except test(), which also has to answer after the end. Starts the engine if it does not run.
template <typename Body>
abi::Result Guarded(Body body) noexcept {
  return Caught([&] {
    const abi::Result started = Process::Get().Start();
    return started == abi::Result::kSuccess ? body() : started;
  });
}

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_PLUGIN_GUARD_H_
