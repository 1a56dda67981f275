#include "daemon/reload/certificate_watch.h"

#include "absl/strings/str_cat.h"
#include "base/tls/certificate.h"

namespace r2cc::daemon {
namespace {

constexpr int64_t kSecondsPerDay = 86'400;

}  // namespace

CertificateAlarm JudgeCertificates(const CertificateState& state, const std::string& node, int64_t now_s) {
  if (!state.wrong.empty())
    return {absl::StrCat(state.wrong.front(), state.wrong.size() == 1 ? "" : absl::StrCat(" (and ", state.wrong.size() - 1, " more)")),
            Severity::kError};
  if (state.until_s == 0) return {};
  const int64_t days = (state.until_s - now_s) / kSecondsPerDay;
  if (days >= kCertificateWarnDays) return {};
  return {absl::StrCat("a certificate of this node ends in ", days, days == 1 ? " day" : " days", ", on ", DateText(state.until_s),
                       ": `r2ccctl certs issue ", node, "` makes the next one; r2ccd uses new files within seconds"),
          days < kCertificateErrorDays ? Severity::kError : Severity::kWarning};
}

void CertificateWatch::Look() {
  if (parts_.loader == nullptr) return;
  parts_.disk->Post([this, alive = alive_, core = parts_.core, loader = parts_.loader, config = config_] {
    core->Post([this, alive, state = loader->CheckCertificates(*config)] {
      if (*alive) Take(state);
    });
  });
}

void CertificateWatch::Take(const CertificateState& state) {
  until_s_ = state.until_s;
  const CertificateAlarm alarm = JudgeCertificates(state, config_->node, parts_.now_s());
  parts_.set_alarm(alarm.text);
  // Days pass without a line; what gets worse has one.
  if (alarm.level > logged_ && alarm.level == Severity::kError)
    LogError(alarm.text);
  else if (alarm.level > logged_)
    LogWarning(alarm.text);
  else if (alarm.text.empty() && logged_ != Severity::kInfo)
    LogInfo("the certificates are as they should be again");
  logged_ = alarm.level;
}

}  // namespace r2cc::daemon
