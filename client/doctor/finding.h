// Defines a result of `r2ccctl doctor`: one line a check.
#ifndef R2CC_CLIENT_DOCTOR_FINDING_H_
#define R2CC_CLIENT_DOCTOR_FINDING_H_

#include <string>
#include <utility>
#include <vector>

namespace r2cc::client {

struct Finding {
  enum class Level {
    kOk,
    kUnchecked,  // not known; `text` has the reason
    kWarn,       // it works, and will not always
    kFail,
  };
  Level level = Level::kOk;
  std::string check;  // "path mtu"
  std::string text;
  std::string fix;  // what to do; of kWarn and kFail
};

using Findings = std::vector<Finding>;

inline Finding Ok(std::string check, std::string text) { return {Finding::Level::kOk, std::move(check), std::move(text), ""}; }
inline Finding Unchecked(std::string check, std::string why) { return {Finding::Level::kUnchecked, std::move(check), std::move(why), ""}; }
inline Finding Warn(std::string check, std::string text, std::string fix) {
  return {Finding::Level::kWarn, std::move(check), std::move(text), std::move(fix)};
}
inline Finding Fail(std::string check, std::string text, std::string fix) {
  return {Finding::Level::kFail, std::move(check), std::move(text), std::move(fix)};
}

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_DOCTOR_FINDING_H_
