#include "daemon/state/saved_state.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/names.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"
#include "proto/config.pb.h"

namespace r2cc::daemon {
namespace {

// Far more than the NICs that a node ever has.
constexpr size_t kCabledMax = 1024;

// The caller reports in one line that the file is garbled; the parser's own lines would go to standard error.
class Silent : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int, int, const std::string&) override {}
};

}  // namespace

std::string EncodeState(const SavedState& state) {
  v1::DaemonState out;
  out.set_version(kStateVersion);
  out.set_boot_id(state.boot_id);
  out.set_boot_ns(state.boot_time);
  for (const auto& [nic, setting] : state.settings) {
    auto* saved = out.add_words();
    saved->set_nic(nic);
    saved->set_drained(setting.drained);
    if (setting.drill_failed) saved->set_drill_left_ns(setting.drill_until);
    if (setting.weight_permille != health::kFullWeightPermille) saved->set_weight_permille(setting.weight_permille);
    for (const std::string& job : setting.drained_jobs) saved->add_drained_jobs(job);
  }
  for (const std::string& nic : state.cabled) out.add_cabled(nic);
  std::string text;
  google::protobuf::TextFormat::PrintToString(out, &text);
  return "# Written by r2ccd: what the operator said about this node's NICs. Stop r2ccd before editing.\n" + text;
}

absl::StatusOr<SavedState> DecodeState(const std::string& text, const std::string& file) {
  v1::DaemonState in;
  google::protobuf::TextFormat::Parser parser;
  Silent silent;
  parser.RecordErrorsTo(&silent);
  // First the version alone: another one may have fields that this release does not know.
  parser.AllowUnknownField(true);
  if (!parser.ParseFromString(text, &in)) return absl::InvalidArgumentError(absl::StrCat(file, ": garbled"));
  if (in.version() != kStateVersion)
    return absl::InvalidArgumentError(
        absl::StrCat(file, ": written in format ", in.version(), " by another release; this one reads ", kStateVersion));
  parser.AllowUnknownField(false);
  if (!parser.ParseFromString(text, &in)) return absl::InvalidArgumentError(absl::StrCat(file, ": garbled"));
  if (static_cast<size_t>(in.words_size()) > kSettingsMax)
    return absl::InvalidArgumentError(absl::StrCat(file, ": settings of more than ", kSettingsMax, " NICs"));
  if (in.boot_ns() < 0) return absl::InvalidArgumentError(absl::StrCat(file, ": garbled boot_ns"));
  SavedState state{in.boot_id(), {}, in.boot_ns()};
  for (const auto& saved : in.words()) {
    const bool drill = saved.has_drill_left_ns();
    const bool jobs = static_cast<size_t>(saved.drained_jobs_size()) <= health::kDrainedJobsMax &&
                      std::all_of(saved.drained_jobs().begin(), saved.drained_jobs().end(), IsJobName);
    if (!jobs || !IsNicName(saved.nic()) || (saved.has_weight_permille() && saved.weight_permille() > health::kFullWeightPermille) ||
        (drill && (saved.drill_left_ns() <= 0 || saved.drill_left_ns() > health::kDrillMax)))
      return absl::InvalidArgumentError(absl::StrCat(file, ": garbled setting of a NIC"));
    const uint32_t weight = saved.has_weight_permille() ? saved.weight_permille() : health::kFullWeightPermille;
    state.settings[saved.nic()] = {saved.drained(),
                                   drill,
                                   static_cast<uint16_t>(weight),
                                   saved.drill_left_ns(),
                                   {saved.drained_jobs().begin(), saved.drained_jobs().end()}};
  }
  for (const std::string& nic : in.cabled()) {
    if (!IsNicName(nic)) return absl::InvalidArgumentError(absl::StrCat(file, ": garbled name of a NIC"));
    if (state.cabled.size() < kCabledMax) state.cabled.insert(nic);
  }
  return state;
}

health::OperatorSettings Resume(const SavedState& saved, const BootMoment& now, std::vector<std::string>* ended) {
  const bool same_boot = saved.boot_id == now.boot_id;
  const Nanos passed = same_boot ? std::max<Nanos>(now.boot_time - saved.boot_time, 0) : kDrillSaveInterval;
  health::OperatorSettings settings;
  for (auto [nic, setting] : saved.settings) {
    if (setting.drill_failed && setting.drill_until <= passed) {
      ended->push_back(nic);
      setting.drill_failed = false;
      setting.drill_until = 0;
    }
    if (setting.drill_failed) setting.drill_until += now.monotonic - passed;
    if (setting != health::OperatorSetting{}) settings.emplace(nic, setting);
  }
  return settings;
}

SavedState ToSave(health::OperatorSettings settings, const BootMoment& now) {
  for (auto& [nic, setting] : settings) {
    if (!setting.drill_failed) continue;
    setting.drill_until -= now.monotonic;
    if (setting.drill_until > 0) continue;
    setting.drill_failed = false;
    setting.drill_until = 0;
  }
  std::erase_if(settings, [](const auto& entry) { return entry.second == health::OperatorSetting{}; });
  return {now.boot_id, std::move(settings), now.boot_time};
}

health::OperatorSettings MergeSettings(health::OperatorSettings saved, const std::vector<std::string>& known,
                                       const health::OperatorSettings& settings) {
  for (const std::string& nic : known) saved.erase(nic);
  while (!saved.empty() && saved.size() + settings.size() > kSettingsMax) saved.erase(saved.begin());
  for (const auto& [nic, setting] : settings) saved[nic] = setting;
  return saved;
}

}  // namespace r2cc::daemon
