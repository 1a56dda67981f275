// Holds success, or one line that states what failed.
#ifndef R2CC_TOOLS_PERF_STATUS_H_
#define R2CC_TOOLS_PERF_STATUS_H_

#include <string>
#include <utility>

namespace r2cc::perf {

class [[nodiscard]] Status {
 public:
  Status() = default;
  static Status Error(std::string message) {
    Status status;
    status.message_ = std::move(message);
    return status;
  }

  bool ok() const { return message_.empty(); }
  const std::string& message() const { return message_; }

 private:
  std::string message_;  // empty: success
};

}  // namespace r2cc::perf

#define R2CC_PERF_RETURN_IF_ERROR(expression)                                       \
  do {                                                                              \
    if (::r2cc::perf::Status status_ = (expression); !status_.ok()) return status_; \
  } while (false)

#endif  // R2CC_TOOLS_PERF_STATUS_H_
