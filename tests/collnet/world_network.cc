// What lies between the members: mail, flows, and pairs that have no path for a while.
#include <algorithm>

#include "tests/collnet/values.h"
#include "tests/collnet/world.h"

namespace r2cc::collnet_test {

using Fault = Scenario::Fault;

// ---- paths ----

// What waits for it comes late, not never. Its two members notice a while after the other.
void World::CutPairs() {
  for (const auto& member : members_) member->executor->SetCapacity(4);
  for (uint32_t i = 0; i < scenario_.cuts; ++i) {
    const auto a = static_cast<uint32_t>(random_() % scenario_.members), b = static_cast<uint32_t>(random_() % scenario_.members);
    if (a == b || !cut_.insert(std::minmax(a, b)).second) continue;
    const auto from = static_cast<Nanos>(random_() % (10 * kDelayMost)), until = from + static_cast<Nanos>(random_() % (40 * kDelayMost));
    At(from, [this, a, b] { Cut(a, b, true); });
    At(until, [this, a, b] { Cut(a, b, false); });
  }
  cut_.clear();
}

void World::Cut(uint32_t a, uint32_t b, bool cut) {
  if (cut) {
    cut_.insert(std::minmax(a, b));
  } else {
    cut_.erase(std::minmax(a, b));
    for (auto& what : std::exchange(waiting_[std::minmax(a, b)], {})) At(Delay(), std::move(what));
  }
  for (const auto& [one, other] : {std::pair(a, b), std::pair(b, a)})
    At(Delay(), [this, one, other, cut] {
      Member& member = *members_[one];
      cut ? static_cast<void>(member.unreachable.insert(other)) : static_cast<void>(member.unreachable.erase(other));
      member.executor->SetUnreachable({member.unreachable.begin(), member.unreachable.end()});
      CarryOut(one);
    });
}

void World::WhenPath(uint32_t a, uint32_t b, std::function<void()> what) {
  cut_.contains(std::minmax(a, b)) ? waiting_[std::minmax(a, b)].push_back(std::move(what)) : what();
}

// ---- messages ----

void World::SendMail(uint32_t from, uint32_t to, Bytes message) {
  mail_[{from, to}].push_back(std::move(message));
  At(Delay(), [this, from, to] {
    WhenPath(from, to, [this, from, to] {
      const Bytes bytes = std::move(mail_[{from, to}].front());
      mail_[{from, to}].pop_front();
      members_[to]->executor->MessageReceived(from, bytes, now_);
      CarryOut(to);
    });
  });
}

// ---- flows ----

void World::Move(const PipeKey& key) {
  Pipe& pipe = pipes_[key];
  if (pipe.moving || pipe.sends.empty() || pipe.receives.empty()) return;
  pipe.moving = true;
  At(Delay(), [this, key] { WhenPath(std::get<0>(key), std::get<1>(key), [this, key] { Deliver(key); }); });
}

void World::Deliver(const PipeKey& key) {
  Pipe& pipe = pipes_[key];
  const uint32_t from = std::get<0>(key), to = std::get<1>(key);
  if (members_[from]->executor->failed() || members_[to]->executor->failed()) return;
  const Pipe::End send = std::move(pipe.sends.front()), receive = std::move(pipe.receives.front());
  pipe.sends.pop_front();
  pipe.receives.pop_front();
  if (send.offer != receive.offer) return Wrong("an offer meets bytes");
  if (send.bytes != receive.bytes) {  // a transport refuses it at both ends
    if (scenario_.fault == Fault::kNone) return Wrong("a message of " + std::to_string(send.bytes) + " bytes where another is expected");
    members_[to]->executor->PeerFailed(from, "a message of another size");
    return CarryOut(to);
  }
  if (send.offer) {
    At(Delay(), [this, key, to, flow = receive.flow, copy = send.copy] {
      members_[to]->executor->OfferReceived(flow, copy, now_);
      CarryOut(to);
      pipes_[key].moving = false;
      Move(key);
    });
    return;
  }
  const std::byte* const source = Resolve(from, send.operation, send.place, send.bytes);
  std::byte* const target = Resolve(to, receive.operation, receive.place, receive.bytes);
  if (!wrong_.empty()) return;
  const auto delivered = std::make_shared<Bytes>(source, source + send.bytes);
  std::copy(delivered->begin(), delivered->end(), target);
  const auto ends = std::make_shared<int>(2);
  const auto end = [this, key, ends] {
    if (--*ends > 0) return;
    pipes_[key].moving = false;
    Move(key);
  };
  At(Delay(), [this, to, target, delivered, flow = receive.flow, end] {
    if (members_[to]->executor->failed()) return;
    std::copy(delivered->begin(), delivered->end(), target);
    members_[to]->executor->ReceiveDone(flow, now_);
    CarryOut(to);
    end();
  });
  At(Delay(), [this, from, source, delivered, flow = send.flow, end] {
    if (members_[from]->executor->failed()) return;
    if (!std::equal(delivered->begin(), delivered->end(), source)) Wrong("bytes changed before their send was done");
    members_[from]->executor->SendDone(flow, now_);
    CarryOut(from);
    end();
  });
}

}  // namespace r2cc::collnet_test
