#include "netplugin/link/control_queue.h"

#include <algorithm>
#include <utility>

#include "base/core/check.h"
#include "netplugin/flow/mutant.h"
#include "netplugin/flow/tuning.h"
#include "netplugin/link/fenced_parts.h"
#include "netplugin/link/repeated.h"

namespace r2cc::net {
bool ControlQueue::any_open() const {
  const auto is_open = [](ChannelState state) { return state != ChannelState::kDown; };
  return is_open(oob_) || std::any_of(links_.begin(), links_.end(), is_open);
}

void ControlQueue::Put(ChannelId channel, Frame frame) {
  actions_->push_back(SessionAction{.kind = SessionAction::Kind::kSend, .channel = channel, .frame = std::move(frame)});
}

void ControlQueue::Send(ChannelId channel, const Frame& frame) {
  const auto* const fenced = std::get_if<frames::Fenced>(&frame);
  if (fenced == nullptr) return Put(channel, frame);
  for (frames::Fenced& part : SplitFenced(*fenced, ++answers_)) Put(channel, std::move(part));
}

bool ControlQueue::SendOnLink(const Frame& frame, LinkId home, ChannelState least) {
  for (size_t i = 0; i < links_.size(); ++i) {
    const auto link = static_cast<ChannelId>((home + i) % links_.size());
    if (StateOf(link) < least) continue;
    Send(link, frame);
    return true;
  }
  return false;
}

bool ControlQueue::SendBest(const Frame& frame, LinkId home) {
  if (SendOnLink(frame, home, ChannelState::kUp)) return true;
  if (!open(kOobChannel)) return SendOnLink(frame, home, ChannelState::kOpen);
  Send(kOobChannel, frame);
  return true;
}

bool ControlQueue::Report(FlowReport report, LinkId home) { return SendBest(std::move(report), home); }

bool ControlQueue::SendAll(const Frame& frame) {
  // One answer, whichever channel brings which part.
  std::vector<frames::Fenced> parts;
  if (const auto* const fenced = std::get_if<frames::Fenced>(&frame)) parts = SplitFenced(*fenced, ++answers_);
  for (ChannelId channel = kOobChannel; channel < static_cast<ChannelId>(links_.size()); ++channel) {
    if (!open(channel)) continue;
    if (parts.empty()) Put(channel, frame);
    for (const frames::Fenced& part : parts) Put(channel, part);
  }
  return any_open();
}

void ControlQueue::SendUntilAnswered(const Key& key, Frame frame, LinkId home, bool all_channels, Nanos now) {
  R2CC_CHECK(IsRepeatedAnyway(TypeOf(frame)));
  Kept& kept = kept_[key] = Kept{std::move(frame), home, all_channels, 0};
  Send(&kept, now);
}

void ControlQueue::Send(Kept* kept, Nanos now) {
  const bool all = kept->all_channels || kept->sent != 0;
  if (all ? SendAll(kept->frame) : SendBest(kept->frame, kept->home)) kept->sent = now;
}

void ControlQueue::AnsweredThrough(FrameType type, uint32_t about, Incarnation incarnation) {
  std::erase_if(kept_, [&](const auto& entry) {
    const auto& [kept_type, kept_about, kept_incarnation] = entry.first;
    return kept_type == type && kept_about == about && kept_incarnation <= incarnation;
  });
}

void ControlQueue::Repeat(FrameType type, ChannelId channel) {
  for (const auto& [key, kept] : kept_)
    if (std::get<FrameType>(key) == type) Send(channel, kept.frame);
}

void ControlQueue::Resend(Nanos now) {
  if (IsActive(Mutant::kSentOnce)) return;
  for (auto& [key, kept] : kept_) Send(&kept, now);
}

void ControlQueue::Tick(Nanos now, const std::function<void(const Key&, Frame*)>& refresh) {
  for (auto& [key, kept] : kept_) {
    if (now - kept.sent < tuning::kResendAfter || (IsActive(Mutant::kSentOnce) && kept.sent != 0)) continue;
    if (refresh) refresh(key, &kept.frame);
    Send(&kept, now);
  }
}

}  // namespace r2cc::net
