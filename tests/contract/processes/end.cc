// One process of the world: an Engine as the plugin starts it, told what to do by the test.
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/if_link.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <vector>

#include "base/core/fork_guard.h"
#include "netplugin/config/config.h"
#include "netplugin/plugin/verbs_rails.h"
#include "netplugin/rails/link_monitor.h"
#include "netplugin/rails/rails.h"
#include "netplugin/transport/engine.h"
#include "netplugin/transport/tcp/tcp_transport.h"
#include "plan/page/text.h"
#include "tests/contract/processes/protocol.h"

namespace r2cc::contract {
namespace {

[[noreturn]] void Die(const std::string& why) {
  std::fprintf(stderr, "contract end: %s\n", why.c_str());
  std::_Exit(1);
}

// A daemon whose words come from the test. The I/O thread uses it, the test's thread steers it.
class PuppetDaemon final : public net::DaemonLink {
 public:
  // What the engine sees stays as it is until its next Poll().
  struct Strings {
    std::mutex mutex;
    std::unique_ptr<plan::PageCopy> page;  // null: none
    uint64_t generation = 0;
    std::vector<plan::EvidenceRecord> records;
  };
  // Its NICs are called as the rails.
  PuppetDaemon(Strings* strings, const std::string& node, const std::vector<net::Rail>& rails) : strings_(strings) {
    plan::SetText(node, reply_.node);
    reply_.rail_count = static_cast<uint32_t>(rails.size());
    for (size_t i = 0; i < rails.size(); ++i) plan::SetText(rails[i].name, reply_.nics[i]);
  }

  int fd() const override { return -1; }
  void Poll(Nanos) override {
    const std::lock_guard lock(strings_->mutex);
    if (generation_ == strings_->generation) return;
    generation_ = strings_->generation;
    page_ = strings_->page == nullptr ? nullptr : std::make_unique<plan::PageCopy>(*strings_->page);
  }
  bool attached() const override { return true; }
  uint64_t attach_count() const override { return 1; }
  const plan::AttachReply& reply() const override { return reply_; }
  const plan::PageCopy* page(Nanos) const override { return page_.get(); }
  uint64_t page_generation() const override { return generation_; }
  void Report(const plan::EvidenceRecord& record) override {
    const std::lock_guard lock(strings_->mutex);
    strings_->records.push_back(record);
  }

 private:
  Strings* const strings_;
  uint64_t generation_ = 0;
  std::unique_ptr<plan::PageCopy> page_;
  plan::AttachReply reply_{};
};

FlowState StateOf(net::Comm::State state) {
  switch (state) {
    case net::Comm::State::kOpening: return FlowState::kOpening;
    case net::Comm::State::kOpen: return FlowState::kOpen;
    case net::Comm::State::kFailed: return FlowState::kFailed;
  }
  return FlowState::kFailed;
}

class Process {
 public:
  Process() {
    if (setns(kNamespaceFd, CLONE_NEWNET) != 0) Die("setns");
    memory_ = static_cast<std::byte*>(mmap(nullptr, kMemoryBytes, PROT_READ | PROT_WRITE, MAP_SHARED, kMemoryFd, 0));
    if (memory_ == MAP_FAILED) Die("mmap");
    madvise(memory_, kMemoryBytes, MADV_DONTDUMP);
    if (!fork_guard::InstallOnce()) Die("fork_guard");
    net::Engine::Parts parts;
    std::string error;
    if (!net::LoadConfig([](const char* name) { return std::getenv(name); }, &parts.config, &error)) Die(error);
    net::FillFromSystem(&parts.config);
    net::SystemHostNetwork host;
    if (!net::ResolveRails(parts.config.rails, host, {}, &parts.rails, &error)) Die(error);
    if (!net::ChooseOobAddress(parts.config.oob_ifname, parts.rails, host, &parts.oob_address, &error)) Die(error);
    parts.link_events = net::LinkMonitor::Create(parts.rails, &error);
    if (parts.link_events == nullptr) Die(error);
    parts.daemon = std::make_unique<PuppetDaemon>(&strings_, parts.config.node, parts.rails);
    parts.log = [this, node = parts.config.node, most = parts.config.log](net::LogLevel level, const std::string& line) {
      if (level <= most) std::fprintf(stderr, "[%s] %s\n", node.c_str(), line.c_str());
      const std::lock_guard lock(warning_mutex_);
      if (level == net::LogLevel::kWarn) warning_ = line;
    };
    const End end = parts.config.node == "n0" ? 0 : 1;
    for (const net::Rail& rail : parts.rails) rails_[end].push_back(rail.name);
    own_rails_ = &rails_[end];
    std::istringstream peers(std::getenv(kPeerRails));
    for (std::string name; std::getline(peers, name, ',');) rails_[1 - end].push_back(name);
    parts.make_transport = net::TcpTransport::Maker(parts.config);
    parts.make_rail_transport = net::MakeVerbsRails;
    engine_ = net::Engine::Start(std::move(parts), &error);
    if (engine_ == nullptr) Die(error);
  }

  void Serve() {
    for (Command command;;) {
      if (recv(kCommandsFd, &command, sizeof(command), 0) != sizeof(command)) return;
      if (command.kind == Command::Kind::kEnd) {
        engine_.reset();
        return Reply(Answer{.ok = true});
      }
      Do(command);
    }
  }

 private:
  template <typename T>
  void Reply(const T& packet) {
    if (send(kCommandsFd, &packet, sizeof(packet), MSG_NOSIGNAL) != sizeof(packet)) Die("the test is gone");
  }

  void Do(const Command& command) {
    switch (command.kind) {
      case Command::Kind::kListen: return Listen(command);
      case Command::Kind::kConnect: return Connect(command);
      case Command::Kind::kRegister: return Register(command);
      case Command::Kind::kSend: engine_->Send(sends_.at(command.flow).get(), BufferAt(command.offset), command.bytes); return;
      case Command::Kind::kReceive: engine_->Receive(receives_.at(command.flow).get(), BufferAt(command.offset), command.bytes); return;
      case Command::Kind::kCloseSend:
        engine_->Close(std::move(sends_.at(command.flow)));
        sends_.erase(command.flow);
        return Reply(Answer{.ok = true});
      case Command::Kind::kCloseReceive:
        engine_->Close(std::move(receives_.at(command.flow)));
        receives_.erase(command.flow);
        sizes_.erase(command.flow);
        return Reply(Answer{.ok = true});
      case Command::Kind::kPublish: return Publish(command);
      case Command::Kind::kLoseDaemon: {
        const std::lock_guard lock(strings_.mutex);
        strings_.page.reset();
        ++strings_.generation;
        return;
      }
      case Command::Kind::kForkHolder: return ForkHolder();
      case Command::Kind::kPoll: return Poll();
      case Command::Kind::kEnd: return;
    }
  }

  void Listen(const Command& command) {
    net::Handle handle;
    listens_[command.flow] = engine_->Listen(&handle);
    Answer answer{.ok = true};
    std::memcpy(answer.handle, &handle, sizeof(handle));
    Reply(answer);
  }

  void Connect(const Command& command) {
    net::Handle handle;
    Answer answer{};
    std::string error = "not a handle";
    if (net::ReadHandle(command.handle, &handle)) {
      auto comm = engine_->Connect(handle, static_cast<uint16_t>(command.rail), &error);
      answer.ok = comm != nullptr;
      sends_[command.flow] = std::move(comm);
    }
    if (!answer.ok) std::snprintf(answer.error, sizeof(answer.error), "%s", error.c_str());
    Reply(answer);
  }

  void Register(const Command& command) {
    std::string error;
    const net::Memory like{.base = memory_ + command.offset, .bytes = command.bytes};
    registered_[command.offset] = engine_->memory().Register(like, &error);
    // Without it a buffer is copied, which is another way to be right.
    if (registered_[command.offset] == nullptr) std::fprintf(stderr, "contract end: %s\n", error.c_str());
  }

  net::Buffer BufferAt(uint64_t offset) const {
    const auto after = registered_.upper_bound(offset);
    return net::BufferIn(after == registered_.begin() ? nullptr : std::prev(after)->second, memory_ + offset);
  }

  void Publish(const Command& command) {
    plan::Plan plan;
    plan.epoch.counter = ++plans_;
    for (int i = 0; i < command.verdict_count; ++i) {
      const World::Verdict& verdict = command.verdicts[i];
      plan.nics.push_back({"n" + std::to_string(verdict.node), rails_[verdict.node].at(static_cast<size_t>(verdict.rail)), verdict.state,
                           verdict.weight_permille});
    }
    const std::lock_guard lock(strings_.mutex);
    strings_.page = std::make_unique<plan::PageCopy>(plan::PageCopyOf(plan));
    ++strings_.generation;
  }

  // As a data loader does, that then waits for its parent's word.
  void ForkHolder() {
    const pid_t pid = fork();
    for (; pid == 0;) pause();
    Reply(Answer{.ok = pid > 0, .pid = pid});
  }

  void Poll() {
    auto status = std::make_unique<Status>();
    for (auto it = listens_.begin(); it != listens_.end();) {
      std::unique_ptr<net::RecvComm> comm = engine_->Accept(it->second);
      if (comm == nullptr) {
        ++it;
        continue;
      }
      receives_[it->first] = std::move(comm);
      engine_->CloseListen(it->second);
      it = listens_.erase(it);
    }
    for (int flow = 0; flow < kFlowsMax; ++flow) status->send[flow].state = status->receive[flow].state = FlowState::kOpening;
    for (const auto& [flow, comm] : sends_) Fill(comm.get(), &send_errors_[flow], &status->send[flow]);
    for (const auto& [flow, comm] : receives_) {
      Fill(comm.get(), &receive_errors_[flow], &status->receive[flow]);
      FillSizes(*comm, &sizes_[flow], &status->receive[flow]);
    }
    CountBytes(status->left_bytes);
    {
      const std::lock_guard lock(strings_.mutex);
      status->record_count = static_cast<uint32_t>(std::min<size_t>(strings_.records.size(), kRecordsMax));
      std::copy_n(strings_.records.begin(), status->record_count, status->records);
      strings_.records.erase(strings_.records.begin(), strings_.records.begin() + status->record_count);
    }
    Reply(*status);
  }

  // As NCCL tests its oldest request: who waits helps.
  template <typename OneComm>
  void Fill(OneComm* comm, std::string* error, FlowStatus* status) {
    if (comm->posted > 0) engine_->Look(comm, comm->posted - 1);
    // The state is read first: what was done before the flow failed is done.
    status->state = StateOf(comm->state.load(std::memory_order_acquire));
    status->done_through = comm->done_through.load(std::memory_order_acquire);
    if (status->state != FlowState::kFailed) return;
    if (error->empty()) *error = comm->TakeError();
    if (error->empty()) {  // the log has it
      const std::lock_guard lock(warning_mutex_);
      *error = warning_;
    }
    std::snprintf(status->error, sizeof(status->error), "%s", error->c_str());
  }

  struct Sizes {
    uint64_t through = 0;
    std::array<uint64_t, kSizesKept> last{};
  };
  // Each is read when it is new: its place may be written again from when the next request is posted.
  static void FillSizes(const net::RecvComm& comm, Sizes* sizes, FlowStatus* status) {
    static_assert(net::kRequestsMax == kSizesKept);
    for (; sizes->through < status->done_through; ++sizes->through)
      sizes->last[sizes->through % kSizesKept] = comm.sizes[sizes->through % kSizesKept];
    std::copy(sizes->last.begin(), sizes->last.end(), status->sizes);
  }

  void CountBytes(uint64_t (&left_bytes)[kRails]) const {
    ifaddrs* all = nullptr;
    if (getifaddrs(&all) != 0) return;
    for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
      if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_PACKET) continue;
      const auto rail = std::find(own_rails_->begin(), own_rails_->end(), one->ifa_name);
      if (rail == own_rails_->end()) continue;
      left_bytes[rail - own_rails_->begin()] = static_cast<const rtnl_link_stats*>(one->ifa_data)->tx_bytes;
    }
    freeifaddrs(all);
  }

  PuppetDaemon::Strings strings_;
  std::mutex warning_mutex_;
  std::string warning_;
  std::byte* memory_ = nullptr;
  std::vector<std::string> rails_[2];  // by node
  const std::vector<std::string>* own_rails_ = nullptr;
  std::unique_ptr<net::Engine> engine_;
  std::map<uint64_t, const net::Memory*> registered_;  // by offset
  std::map<int, uint64_t> listens_;
  std::map<int, std::unique_ptr<net::SendComm>> sends_;
  std::map<int, std::unique_ptr<net::RecvComm>> receives_;
  std::map<int, Sizes> sizes_;  // of what receives_ have received
  std::map<int, std::string> send_errors_, receive_errors_;
  uint64_t plans_ = 0;
};

}  // namespace
}  // namespace r2cc::contract

int main() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (const int fd : {r2cc::contract::kCommandsFd, r2cc::contract::kMemoryFd, r2cc::contract::kNamespaceFd})
    fcntl(fd, F_SETFD, FD_CLOEXEC);
  r2cc::contract::Process process;
  process.Serve();
  return 0;
}
