#include "netplugin/transport/collective/engine_group.h"

#include <memory>
#include <string>
#include <utility>

namespace r2cc::net {

EngineGroup::EngineGroup(Engine* engine, uint64_t listen_id, std::vector<Handle> handles)
    : engine_(engine), listen_id_(listen_id), handles_(std::move(handles)), opened_(handles_.size()) {}

EngineGroup::~EngineGroup() { engine_->CloseListen(listen_id_); }

// The flows to a member go round all rails: while all rails are there, a flow keeps to its own.
FlowRef EngineGroup::Open(uint32_t member) {
  const auto rail = static_cast<uint16_t>(opened_[member]++ % engine_->rails());
  std::string error;
  std::unique_ptr<SendComm> comm = engine_->Connect(handles_[member], rail, &error);
  return comm != nullptr ? engine_->GiveTo(&port_, std::move(comm)) : port_.AddFailed(std::move(error));
}

std::optional<FlowRef> EngineGroup::Accept() {
  std::unique_ptr<RecvComm> comm = engine_->Accept(listen_id_);
  if (comm == nullptr) return std::nullopt;
  return engine_->GiveTo(&port_, std::move(comm));
}

}  // namespace r2cc::net
