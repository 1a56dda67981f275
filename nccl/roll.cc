#include "nccl/roll.h"

#include <algorithm>
#include <cstring>

namespace r2cc::nccl {

bool Roll::CheckIn(const Attendee& attendee) {
  if (attendee.ranks < 1 || attendee.ranks > kRollRanksMax || attendee.rank >= attendee.ranks) return false;
  if (here_.empty()) {
    here_.resize(attendee.ranks);
    first_ = attendee;
  }
  if (attendee.ranks != here_.size()) return false;
  if (!here_[attendee.rank]) ++count_;
  here_[attendee.rank] = true;
  if (attendee.every != first_.every || attendee.release != first_.release)
    differs_ = std::min(differs_.value_or(attendee.rank), attendee.rank);
  return true;
}

void Roll::Want(Nanos now) {
  if (!wanted_.has_value()) wanted_ = now;
}

Verdict Roll::Decide(Nanos now) {
  if (verdict_.kind != Verdict::Kind::kNone || here_.empty()) return verdict_;
  const auto position = [this](bool is_here) {
    return static_cast<uint32_t>(std::find(here_.begin(), here_.end(), is_here) - here_.begin());
  };
  if (differs_.has_value())
    verdict_ = {Verdict::Kind::kDiffers, *differs_, position(true)};
  else if (count_ == here_.size())
    verdict_ = {Verdict::Kind::kAll, 0, position(true)};
  else if (wanted_.has_value() && now - *wanted_ >= kRollGrace)
    verdict_ = {Verdict::Kind::kMissing, position(false), position(true)};
  return verdict_;
}

std::optional<RollRequest> ParseRollRequest(std::span<const std::byte> bytes) {
  RollRequest request;
  if (bytes.size() != sizeof(request)) return std::nullopt;
  std::memcpy(&request, bytes.data(), sizeof(request));
  if (request.magic != RollRequest::kMagic || request.wants > 1 || request.zero != 0) return std::nullopt;
  return request;
}

std::optional<Verdict> ParseRollReply(std::span<const std::byte> bytes) {
  RollReply reply;
  if (bytes.size() != sizeof(reply)) return std::nullopt;
  std::memcpy(&reply, bytes.data(), sizeof(reply));
  if (reply.magic != RollReply::kMagic || reply.kind > static_cast<uint32_t>(Verdict::Kind::kNoRoom)) return std::nullopt;
  return Verdict{static_cast<Verdict::Kind>(reply.kind), reply.rank, reply.speaker};
}

}  // namespace r2cc::nccl
