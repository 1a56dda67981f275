#include "netplugin/transport/verbs/link_core.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "netplugin/flow/mutant.h"
#include "netplugin/flow/tuning.h"
#include "netplugin/link/repeated.h"

namespace r2cc::net::verbs {
namespace {

using plan::EvidenceCause;

// Kinds of control messages. A frame that does not fit into one message comes in parts.
constexpr uint8_t kPart = 1, kLastPart = 2, kProof = 3;
constexpr size_t kPartBytes = kFrameSlotBytes - 8;

// Retry counters that ran out say that the other device has answered nothing, as often as it was asked.
EvidenceCause CauseOf(Status status) {
  const bool silent = status == Status::kRetryExceeded || status == Status::kReceiverNotReadyExceeded;
  return silent ? EvidenceCause::kSilence : EvidenceCause::kSocketError;
}

// By then a device reports the end of a request, or that its retries ran out. Vendors' timers take up to four times as long as they are
// set.
Nanos ReportsWithin(const SiteSettings& site) {
  const Nanos timer = 4'096 * (Nanos{1} << std::min<uint8_t>(site.timeout, 31));
  return std::max<Nanos>(5 * kNanosPerSecond, 4 * timer * (site.retry_cnt + 1));
}

class Opened {
 public:
  explicit Opened(std::atomic<int>* opening) : opening_(opening) {}
  ~Opened() { --*opening_; }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

 private:
  std::atomic<int>* const opening_;
};

}  // namespace

int VerbsShared::Revoke(uint16_t rail, const std::shared_ptr<Domain>& domain) {
  // First, so that what is registered meanwhile is registered there. Another fence of the rail may have come before.
  if (!IsActive(Mutant::kSameDomain) && Of(rail).domain == domain) {
    int failed = 0;
    const auto next = Domain::Allocate(domain->device(), &failed);
    if (next == nullptr) return failed;
    const MutexLock lock(mutex);
    if (rails[rail].domain == domain) rails[rail].domain = next;
  }
  if (const int failed = regions.RevokeAll(domain.get()); failed != 0) return failed;
  keys_revoked(rail);
  domain->device()->Retire(domain.get());
  return 0;
}

LinkCore::LinkCore(VerbsShared* shared, const SessionKey& key, const LinkName& name, End end, std::shared_ptr<LinkHistory> history,
                   LinkOwner* owner, User* user)
    : shared_(shared),
      key_(key),
      name_(name),
      end_(end),
      history_(std::move(history)),
      owner_(owner),
      user_(user),
      rail_(shared->Of(name.local_rail)),
      reader_([user](FlowId flow) { return user->IsOpen(flow); }) {
  state_->core = this;
}

LinkCore::~LinkCore() { state_->core = nullptr; }

void LinkCore::CallAlive(const std::shared_ptr<State>& state, LinkOwner* owner, const std::function<void(LinkCore*)>& what) {
  owner->WithLock(
      [&] {
        if (state->core == nullptr || state->closed.load()) return false;
        what(state->core);
        return true;
      },
      [](bool) { return false; });
}

void LinkCore::Trouble(EvidenceCause cause) {
  if (!std::exchange(broken_, true)) owner_->Trouble(name_, cause);
}

// ---- the control thread's part ----

QueuePairOptions LinkCore::Options() const {
  QueuePairOptions options{.number = ++shared_->queue_pairs_made, .port = rail_.port, .gid = rail_.gid, .psn = shared_->random()};
  options.site = shared_->traffic_class.For(shared_->site);
  if (IsActive(Mutant::kSuccessorTheSame)) options.psn = 1;
  return options;
}

void LinkCore::Create() {
  if (rail_.device() == nullptr || rail_.device()->lost()) return Trouble(EvidenceCause::kLinkDown);
  const auto job = [state = state_, owner = owner_, alive = owner_->KeepAlive(), log = shared_->log, history = history_,
                    domain = rail_.domain, options = Options()](Nanos) -> std::optional<Nanos> {
    const Opened opened(&state->opening);
    if (state->closed.load()) return std::nullopt;
    std::string error;
    auto pair = std::make_unique<QueuePair>(domain, options);
    bool ok = pair->Create(&error);
    // The device uses a number again at once: while the first one has it a second one cannot. A call that fails once is no device that has
    // none left; without a second one the first has other sequence numbers still.
    constexpr int kTries = 2;
    for (int i = 0; i < kTries && ok && pair->offer().number == history->number.load() && !IsActive(Mutant::kSuccessorTheSame); ++i) {
      auto second = std::make_unique<QueuePair>(domain, options);
      if (std::string none; second->Create(&none)) pair.swap(second);
    }
    if (ok) history->number.store(pair->offer().number);
    state->pair = std::move(pair);
    if (!ok) log(LogLevel::kWarn, error);
    CallAlive(state, owner, [&](LinkCore* core) {
      if (!ok) return core->Trouble(EvidenceCause::kLinkDown);
      core->ready_ = true;
      core->records_.emplace(state->pair.get(), core->key_.tag);
      const auto report = [state, owner](Device::Trouble trouble) {
        CallAlive(state, owner, [trouble](LinkCore* of) {
          of->Trouble(trouble == Device::Trouble::kQueuePair ? EvidenceCause::kSocketError : EvidenceCause::kLinkDown);
        });
      };
      core->listening_ =
          core->rail_.device()->Listen({core->rail_.port, state->pair->id(), state->pair->completions(), core->rail_.domain.get(), report});
      // After it listens, so that it cannot miss both.
      if (core->rail_.domain->revoked()) return core->Trouble(EvidenceCause::kLinkDown);
      core->user_->Created();
    });
    return std::nullopt;
  };
  ++state_->opening;
  rail_.device()->control()->Submit(JobKind::kOpen, job);
}

void LinkCore::Join(const Offer& remote) {
  const auto job = [state = state_, owner = owner_, alive = owner_->KeepAlive(), log = shared_->log, history = history_,
                    remote](Nanos) -> std::optional<Nanos> {
    const Opened opened(&state->opening);
    if (state->closed.load()) return std::nullopt;
    std::string error;
    const bool ok = state->pair->Join(remote, &error);
    history->silent = !ok;
    const uint32_t own = state->pair->offer().mtu_bytes;
    if (ok && own != remote.mtu_bytes && !history->mtu_logged.exchange(true))
      log(LogLevel::kWarn, "R2CC: device=" + state->pair->device()->info().name + ": the MTU is " + std::to_string(own) + " here and " +
                               std::to_string(remote.mtu_bytes) + " at the peer; the link uses " +
                               std::to_string(state->pair->mtu_bytes()) + ". Set both ports to the larger one for full speed");
    if (!ok) log(LogLevel::kWarn, error);
    CallAlive(state, owner, [&](LinkCore* core) {
      if (!ok) return core->Trouble(EvidenceCause::kLinkDown);
      core->joined_ = core->shared_->clock->Now();
      core->user_->Joined();
    });
    return std::nullopt;
  };
  ++state_->opening;
  rail_.device()->control()->Submit(history_->silent.load() ? JobKind::kJoinAgain : JobKind::kJoin, job);
}

bool LinkCore::Close() {
  state_->closed = true;
  out_.clear();
  records_out_.clear();
  if (rail_.device() == nullptr) return true;
  if (listening_ != 0) rail_.device()->Unlisten(std::exchange(listening_, 0));
  struct Closing {
    std::unique_ptr<Fence> fence;
    bool reported = false;
  };
  const auto job = [state = state_, owner = owner_, alive = owner_->KeepAlive(), name = name_, shared = shared_, domain = rail_.domain,
                    places = end_ == End::kReceives, closing = std::make_shared<Closing>()](Nanos now) -> std::optional<Nanos> {
    const auto report = [&](bool ok) {
      if (alive == nullptr) return;
      owner->WithLock(
          [&] {
            if (state->core != nullptr) owner->LinkClosed(name, ok);
            return true;
          },
          [](bool) { return false; });
    };
    if (state->opening.load() > 0) return tuning::kLookSoon;
    if (state->pair == nullptr || !state->pair->may_place()) {
      state->pair = nullptr;
      report(true);
      return std::nullopt;
    }
    if (IsActive(Mutant::kFenceSkipped) && !std::exchange(closing->reported, true)) {
      report(true);
      return kNanosPerSecond;
    }
    if (closing->fence == nullptr) {
      std::function<int()> second_line;
      if (places) second_line = [shared, rail = name.local_rail, domain] { return shared->Revoke(rail, domain); };
      closing->fence = state->pair->NewFence(std::move(second_line));
    }
    const auto again = closing->fence->Step(now);
    if (again) {
      if (closing->fence->result() == Fence::Result::kUnproved && !std::exchange(closing->reported, true)) {
        shared->log(LogLevel::kWarn, "R2CC: link=" + std::to_string(name.link) + " device=" + domain->device()->info().name +
                                         ": the device cannot end a queue pair. What the link carried waits until it can; the job fails "
                                         "at R2CC_DEADLINE_MS");
        report(false);
      }
      return again;
    }
    closing->fence = nullptr;
    state->pair = nullptr;
    report(true);
    return std::nullopt;
  };
  rail_.device()->control()->Submit(JobKind::kClose, job);
  return false;
}

// ---- control messages ----

void LinkCore::Queue(const Frame& frame) {
  if (broken_) return;
  if (const auto* const report = std::get_if<FlowReport>(&frame)) {
    if (const auto records = writer_.RecordsOf(*report, RecordRoom())) {
      records_out_.insert(records_out_.end(), records->begin(), records->end());
      return;
    }
    writer_.Sent(*report);
  }
  if (IsFirstPart(frame)) repeats_wait_ = out_.size() * kPartBytes >= tuning::kControlBytesMost;
  if (repeats_wait_ && IsRepeatedAnyway(TypeOf(frame))) return;
  const Bytes packet = Encode(frame, key_.tag);
  for (size_t at = 0; at < packet.size(); at += kPartBytes) {
    const size_t end = std::min(packet.size(), at + kPartBytes);
    out_.push_back({end == packet.size() ? kLastPart : kPart,
                    {packet.begin() + static_cast<ptrdiff_t>(at), packet.begin() + static_cast<ptrdiff_t>(end)}});
  }
}

void LinkCore::SendProof(uint32_t crc) {
  Control proof{kProof, std::vector<uint8_t>(sizeof(crc))};
  std::memcpy(proof.bytes.data(), &crc, sizeof(crc));
  out_.push_back(std::move(proof));
  Flush();
}

size_t LinkCore::RecordRoom() const {
  const size_t free = pair() == nullptr ? 0 : records_->free();
  return free > records_out_.size() ? free - records_out_.size() : 0;
}

int LinkCore::WriteRecords() {
  if (records_out_.empty()) return 0;
  size_t written = 0;
  const int failed = records_->Write(records_out_, &written);
  records_out_.erase(records_out_.begin(), records_out_.begin() + static_cast<ptrdiff_t>(written));
  return failed;
}

bool LinkCore::Flush() {
  QueuePair* const of = pair();
  if (of == nullptr || !joined() || !other_ready_ || broken_) return true;
  if (WriteRecords() != 0) return false;
  for (; !out_.empty() && of->CanSendControl(); out_.pop_front())
    if (of->SendControl(out_.front().kind, out_.front().bytes) != 0) return false;
  return records_->ReturnCredit() == 0;
}

void LinkCore::OnControl(uint8_t kind, std::span<const uint8_t> bytes) {
  if (kind == kProof && bytes.size() == sizeof(uint32_t)) {
    uint32_t crc;
    std::memcpy(&crc, bytes.data(), sizeof(crc));
    return user_->ProofCame(crc);
  }
  const bool whole = kind == kLastPart;
  if ((!whole && kind != kPart) || in_.size() + bytes.size() > kPacketBytesMax) return Trouble(EvidenceCause::kGarbled);
  in_.insert(in_.end(), bytes.begin(), bytes.end());
  if (!whole) return;
  Frame frame;
  const Bytes packet = std::exchange(in_, {});
  if (PacketLength(packet) != packet.size() || !Decode(packet, key_.tag, &frame)) return Trouble(EvidenceCause::kGarbled);
  if (const auto* const report = std::get_if<FlowReport>(&frame)) reader_.Received(*report);
  user_->FrameReceived(frame);
}

void LinkCore::ReadRecords() {
  Record record;
  for (auto came = records_->Next(&record); came != RecordChannel::Came::kNothing; came = records_->Next(&record)) {
    if (came == RecordChannel::Came::kGarbled) return Trouble(EvidenceCause::kGarbled);
    FlowReport report;
    const auto result = reader_.Read(record, &report);
    if (result == GrantReader::Result::kGarbled) return Trouble(EvidenceCause::kGarbled);
    if (result == GrantReader::Result::kLater) return;
    records_->Took(record);
    if (result == GrantReader::Result::kReport) user_->FrameReceived(std::move(report));
    if (broken_) return;
  }
}

bool LinkCore::IsSilent(const QueuePair& pair) {
  if (out_.empty() || !pair.awaits()) {
    silent_since_ = 0;
    return false;
  }
  const Nanos now = shared_->clock->Now();
  if (silent_since_ == 0 || silent_at_ != pair.retired()) {
    silent_since_ = now;
    silent_at_ = pair.retired();
  }
  return now - silent_since_ >= ReportsWithin(shared_->site);
}

void LinkCore::Look() {
  QueuePair* const of = pair();
  if (of == nullptr || broken_) return;
  if (joined() && !other_ready_ && shared_->clock->Now() - joined_ >= tuning::kSpeaksWithin) return Trouble(EvidenceCause::kSilence);
  const uint32_t credit = of->credit();
  const bool ok = of->Poll([this](const QueuePair::Event& event) {
    switch (event.kind) {
      case QueuePair::Event::Kind::kControl:
        other_ready_ = true;
        OnControl(event.control_kind, event.bytes);
        break;
      case QueuePair::Event::Kind::kMark:
        if (!user_->Mark(event.immediate, event.immediate_bytes)) Trouble(EvidenceCause::kGarbled);
        break;
      case QueuePair::Event::Kind::kRetired: user_->Retired(event.through); break;
      case QueuePair::Event::Kind::kFailed: Trouble(CauseOf(event.status)); break;
    }
    return !broken_;
  });
  if (!ok) return Trouble(EvidenceCause::kLinkDown);
  if (!broken_) ReadRecords();
  if (!broken_ && credit == 0 && of->credit() > 0) user_->Credited();
  if (!broken_ && !Flush()) Trouble(EvidenceCause::kSocketError);
  // The initiator's session finds that sooner while the peer answers elsewhere. An acceptor's would wait for ever to say its last words.
  if (!broken_ && IsSilent(*of)) Trouble(EvidenceCause::kSilence);
}

}  // namespace r2cc::net::verbs
