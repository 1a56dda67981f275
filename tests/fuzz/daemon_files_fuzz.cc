// The daemon's files: its configuration, which people write, and the state that it finds after a restart.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/core/check.h"
#include "base/fake_executor.h"
#include "base/names.h"
#include "daemon/config/config.h"
#include "daemon/io/fake_files.h"
#include "daemon/jobs/job_registry.h"
#include "daemon/jobs/job_sums.h"
#include "daemon/state/event_history.h"
#include "daemon/state/job_keeper.h"
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

constexpr int64_t kNow = 1'700'000'000'000'000'000;

// What jobs met in a former life.
void CheckJobs(const std::string& text) {
  daemon::FakeFiles files;
  FakeExecutor executor;
  R2CC_CHECK(files.WriteAtomically("jobs", text).ok());
  daemon::JobKeeper keeper(&files, &executor, &executor, "jobs", [](const absl::Status&) {});
  std::string trouble;
  daemon::JobRegistry registry;
  registry.Restore(keeper.Load(&trouble), kNow);
  R2CC_CHECK(trouble.find('\n') == std::string::npos);
  R2CC_CHECK(registry.all_ended().size() <= daemon::JobRegistry::kEndedMax && registry.ended().size() <= daemon::JobRegistry::kEndedMax);
  daemon::WholeJobs jobs;
  for (const v1::Job& job : registry.all_ended()) {
    R2CC_CHECK(job.faults_size() <= daemon::JobRegistry::kFaultsMax && job.ended_ns() > 0 && job.ended_ns() <= kNow);
    R2CC_CHECK(job.job().find('\x1b') == std::string::npos && job.run().find('\n') == std::string::npos);
    daemon::AddProcess(job, "n0", kNow, &jobs);
  }
  for (const auto& [key, whole] : jobs) R2CC_CHECK(whole.sums().faults_size() <= daemon::kSummedFaultsMax);
}

// What happened in it.
void CheckEvents(const std::string& text) {
  daemon::FakeFiles files;
  FakeExecutor executor;
  R2CC_CHECK(files.WriteAtomically("events.log", text).ok());
  daemon::EventHistory history(&files, &executor, &executor, "events.log", [](const absl::Status&) {});
  std::string trouble;
  const std::vector<v1::Event> events = history.Load(kNow, &trouble);
  R2CC_CHECK(trouble.find('\n') == std::string::npos && events.size() <= daemon::EventHistory::kEventsMax);
  for (size_t i = 0; i + 1 < events.size(); ++i) R2CC_CHECK(events[i].sequence() < events[i + 1].sequence());
  for (const v1::Event& event : events) R2CC_CHECK(event.instance() == events[0].instance() && event.instance() != 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  const char kind = input.Take<char>();
  const std::string text(input.rest().begin(), input.rest().end());
  switch (kind) {
    case 's': CheckState(text); break;
    case 'j': CheckJobs(text); break;
    case 'e': CheckEvents(text); break;
    default: CheckConfig(text);
  }
  return 0;
}
