#include "daemon/reload/reload_service.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "daemon/config/config_shown.h"
#include "daemon/reload/config_change.h"

namespace r2cc::daemon {

ReloadService::ReloadService(const Parts& parts, Config config)
    : parts_(parts), config_(std::move(config)), read_ns_(parts_.reporter->Now().realtime_ns) {}

void ReloadService::Reload(const Caller& caller, const absl::Status& may, Answer<v1::ReloadReply> answer) {
  absl::Status status = may;
  if (status.ok() && parts_.loader == nullptr)
    status = absl::UnimplementedError("this daemon has no configuration that it could read again");
  const auto note = [this, caller](const absl::Status& why, const std::string& result) {
    parts_.audit->Add({.action = "reload", .node = parts_.reporter->node(), .status = why, .result = result}, caller);
  };
  if (!status.ok()) {
    note(status, "");
    return answer(status);
  }
  parts_.disk->Post([this, alive = alive_, parts = parts_, in_force = std::make_shared<const Config>(config_), note, answer] {
    parts.core->Post([this, alive, loaded = parts.loader->Load(in_force.get()), note, answer] {
      if (!*alive) return;
      const absl::StatusOr<v1::ReloadReply> reply = Take(loaded);
      std::string result;
      if (reply.ok())
        result = absl::StrCat(reply->applied().empty() ? "nothing has changed" : absl::StrJoin(reply->applied(), "; "),
                              needs_restart_.empty() ? "" : "; needs a restart: ", absl::StrJoin(needs_restart_, ", "));
      note(reply.status(), result);
      answer(reply);
    });
  });
}

absl::StatusOr<v1::ReloadReply> ReloadService::Take(const absl::StatusOr<LoadedConfig>& loaded) {
  const int64_t now = parts_.reporter->Now().realtime_ns;
  if (!loaded.ok()) {
    refused_ = absl::StrSplit(loaded.status().message(), '\n', absl::SkipEmpty());
    refused_ns_ = now;
    return loaded.status();
  }
  ConfigChange change = Change(config_, loaded->config);
  config_ = std::move(change.config);
  needs_restart_ = std::move(change.needs_restart);
  refused_.clear();
  refused_ns_ = 0;
  read_ns_ = now;
  parts_.apply(config_, loaded->roles());
  v1::ReloadReply reply;
  *reply.mutable_state() = State();
  for (const std::string& line : change.applied) reply.add_applied(line);
  return reply;
}

v1::ConfigState ReloadService::State() const {
  v1::ConfigState state;
  state.set_file(config_.file);
  state.set_read_ns(read_ns_);
  for (const std::string& line : refused_) state.add_refused(line);
  state.set_refused_ns(refused_ns_);
  for (const std::string& line : needs_restart_) state.add_needs_restart(line);
  return state;
}

void ReloadService::Show(Answer<v1::ConfigReply> answer) const {
  v1::ConfigReply reply;
  *reply.mutable_state() = State();
  reply.set_text(ShowConfig(config_));
  if (parts_.loader == nullptr) return answer(reply);
  parts_.disk->Post([loader = parts_.loader, config = config_, reply, answer]() mutable {
    const CertificateState certificates = loader->CheckCertificates(config);
    for (const std::string& line : certificates.wrong) reply.add_certificates_wrong(line);
    reply.set_certificates_until_s(certificates.until_s);
    answer(reply);
  });
}

std::vector<std::string> ReloadService::Alarms() const {
  std::vector<std::string> alarms;
  for (const std::string& line : refused_)
    alarms.push_back(absl::StrCat("the configuration was refused, and the one before is in force: ", line));
  if (!needs_restart_.empty())
    alarms.push_back(absl::StrCat("the configuration has changes that wait for a restart: ", absl::StrJoin(needs_restart_, ", ")));
  return alarms;
}

}  // namespace r2cc::daemon
