#include "daemon/saved_state.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/names.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"
#include "proto/config.pb.h"

namespace r2cc::daemon {
namespace {

// Far more than a node has NICs in its life.
constexpr size_t kCabledMax = 1024;

// The caller says in one line that the file is garbled; the parser's own lines would go to standard error.
class Silent : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int, int, const std::string&) override {}
};

}  // namespace

std::string EncodeState(const SavedState& state) {
  v1::DaemonState out;
  out.set_version(kStateVersion);
  out.set_boot_id(state.boot_id);
  for (const auto& [nic, setting] : state.settings) {
    auto* saved = out.add_words();
    saved->set_nic(nic);
    saved->set_drained(setting.drained);
    saved->set_drill_failed(setting.drill_failed);
    if (setting.weight_permille != health::kFullWeightPermille) saved->set_weight_permille(setting.weight_permille);
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
  if (static_cast<size_t>(in.words_size()) > kWordsMax)
    return absl::InvalidArgumentError(absl::StrCat(file, ": settings of more than ", kWordsMax, " NICs"));
  SavedState state{in.boot_id(), {}};
  for (const auto& saved : in.words()) {
    if (!IsNicName(saved.nic()) || (saved.has_weight_permille() && saved.weight_permille() > health::kFullWeightPermille))
      return absl::InvalidArgumentError(absl::StrCat(file, ": garbled setting of a NIC"));
    const uint32_t weight = saved.has_weight_permille() ? saved.weight_permille() : health::kFullWeightPermille;
    state.settings[saved.nic()] = {saved.drained(), saved.drill_failed(), static_cast<uint16_t>(weight)};
  }
  for (const std::string& nic : in.cabled()) {
    if (!IsNicName(nic)) return absl::InvalidArgumentError(absl::StrCat(file, ": garbled name of a NIC"));
    if (state.cabled.size() < kCabledMax) state.cabled.insert(nic);
  }
  return state;
}

health::OperatorSettings MergeSettings(health::OperatorSettings saved, const std::vector<std::string>& known,
                                       const health::OperatorSettings& settings) {
  for (const std::string& nic : known) saved.erase(nic);
  while (!saved.empty() && saved.size() + settings.size() > kWordsMax) saved.erase(saved.begin());
  for (const auto& [nic, setting] : settings) saved[nic] = setting;
  return saved;
}

}  // namespace r2cc::daemon
