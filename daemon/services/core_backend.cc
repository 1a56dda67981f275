#include "daemon/services/core_backend.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "daemon/core/speaker.h"

namespace r2cc::daemon {
namespace {

// Views pushed to us and not yet looked at. A peer whose view is dropped sends it again with its next keep-alive.
constexpr size_t kReceivedMax = 4096;
constexpr Nanos kTooManyLogInterval = 60 * kNanosPerSecond;
// Speakers whose allowance is remembered.
constexpr size_t kSpeakersMax = 16'384;

}  // namespace

CoreBackend::CoreBackend(const Parts& parts, std::shared_ptr<const bool> alive)
    : parts_(parts), alive_(std::move(alive)), received_(parts_.core, kReceivedMax, [this](Received received) {
        if (received.ended) return parts_.peer_set->StreamEnded(received.stream);
        const Caller& from = received.from;
        parts_.peer_set->Receive(received.view, {received.stream, from.address});
        if (!received.taken) return;
        // A sender without a certificate is the node that it claims, at its address.
        const std::string claimed = absl::StrCat(from.address.substr(0, from.address.rfind(':')), " ", received.view.node());
        LetSpeak(from.name.empty() ? claimed : from.name, from, std::move(received.taken));
      }) {}

void CoreBackend::LetSpeak(const std::string& who, const Caller& from, std::function<void()> taken) {
  const Nanos now = parts_.core->Now();
  if (views_.size() >= kSpeakersMax && !views_.contains(who)) views_.clear();
  Views& views = views_.try_emplace(who, Views{{kViewsPerSecond, kViewsBurst}}).first->second;
  if (views.allowance.Take(now)) return taken();
  if (views.logged_at == 0 || now - views.logged_at >= kTooManyLogInterval) {
    views.logged_at = now;
    LogWarning("rate limit: views of a node are delayed", {{"who", Describe(from)}, {"views_per_second", kViewsPerSecond}});
  }
  parts_.core->RunAfter(kNanosPerSecond / kViewsPerSecond, [this, alive = alive_, who, from, taken = std::move(taken)] {
    if (*alive) LetSpeak(who, from, taken);
  });
}

void CoreBackend::ReceiveView(v1::NodeView view, uint64_t stream, const Caller& from, std::function<void()> taken) {
  // Without room the sender may send it again.
  if (!received_.Push({std::move(view), stream, from, false, taken}) && taken) taken();
}

// Behind the views that came by it. If there is no room, the stream is found to be silent a little later.
void CoreBackend::EndStream(uint64_t stream) { received_.Push({{}, stream, {}, true, nullptr}); }

}  // namespace r2cc::daemon
