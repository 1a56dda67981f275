// The daemon's files: its configuration, which people write, and the state that it finds after a restart.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/core/check.h"
#include "base/names.h"
#include "daemon/config/config.h"
#include "daemon/state/saved_state.h"
#include "tests/fuzz/input.h"

namespace {

using namespace r2cc;  // NOLINT

bool OneLine(absl::string_view text) { return !text.empty() && text.find('\n') == absl::string_view::npos; }

bool ValidHostPort(const std::string& text, bool allow_port_zero) { return daemon::ParseHostPort(text, allow_port_zero).ok(); }

void CheckConfig(const std::string& text) {
  const auto config = daemon::ParseConfig(text, "r2ccd.textproto", {"/run/r2cc", "host", "", "/var/lib/r2cc"});
  if (!config.ok()) {
    R2CC_CHECK(OneLine(config.status().message()));
    return;
  }
  R2CC_CHECK(IsNodeName(config->node) && ValidHostPort(config->listen, true) && !config->state_dir.empty());
  for (const daemon::PeerSpec& peer : config->peers)
    R2CC_CHECK(IsNodeName(peer.node) && peer.node != config->node && ValidHostPort(peer.address, false));
  R2CC_CHECK(config->nics.size() <= kNicsPerNodeMax);
  for (const daemon::NicSpec& nic : config->nics) {
    R2CC_CHECK(IsNicName(nic.name) && (!nic.interface.empty() || !nic.address.empty() || nic.port_guid != 0));
    R2CC_CHECK(nic.address == daemon::CanonicalAddress(nic.address) && nic.cable_node.empty() == nic.cable_nic.empty());
  }
  R2CC_CHECK(config->store_node.empty() || !config->etcd.has_value());
  if (const absl::Status status = daemon::CheckInterfaces(*config, {"eth0", "eth1"}); !status.ok()) R2CC_CHECK(OneLine(status.message()));
}

void CheckState(const std::string& text) {
  const auto state = daemon::DecodeState(text, "state");
  if (!state.ok()) {
    R2CC_CHECK(OneLine(state.status().message()));
    return;
  }
  // What it says is what is written again.
  R2CC_CHECK(daemon::DecodeState(daemon::EncodeState(*state), "state").value() == *state);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  const bool state = input.Take<char>() == 's';
  const std::string text(input.rest().begin(), input.rest().end());
  state ? CheckState(text) : CheckConfig(text);
  return 0;
}
