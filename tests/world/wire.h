// The end of the attach socket in a process that can be killed: the shipped client.
#ifndef R2CC_TESTS_WORLD_WIRE_H_
#define R2CC_TESTS_WORLD_WIRE_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "netplugin/attach/attach_client.h"
#include "tests/sim/charge.h"

namespace r2cc::world {

class Wire final : public net::DaemonLink {
 public:
  // `wrote`: it may have written to the socket, or closed it.
  Wire(std::string path, const plan::AttachRequest& request, std::function<void()> wrote)
      : wrote_(std::move(wrote)), client_(std::make_unique<net::AttachClient>(std::move(path), request, nullptr)) {}

  // The process has ended: its kernel closes the socket.
  void HangUp() {
    client_.reset();
    wrote_();
  }

  int fd() const override { return client_ == nullptr ? -1 : client_->fd(); }
  void Poll(Nanos now) override {
    if (client_ == nullptr) return;
    const int before = client_->fd();
    const uint64_t attached = client_->attach_count();
    client_->Poll(now);
    if (client_->fd() != before || client_->attach_count() != attached) wrote_();
  }
  bool attached() const override { return client_ != nullptr && client_->attached(); }
  uint64_t attach_count() const override { return client_ == nullptr ? 0 : client_->attach_count(); }
  const plan::AttachReply& reply() const override { return client_ == nullptr ? gone_ : client_->reply(); }
  const plan::PageCopy* page(Nanos now) const override { return client_ == nullptr ? nullptr : client_->page(now); }
  uint64_t page_generation() const override { return client_ == nullptr ? 0 : client_->page_generation(); }
  void Report(const plan::EvidenceRecord& record) override {
    if (client_ == nullptr) return;
    const sim::Charge charge(sim::Account::kSimulation);  // of records it keeps the last KeptRecords::kMost
    client_->Report(record);
    wrote_();
  }

 private:
  const std::function<void()> wrote_;
  std::unique_ptr<net::AttachClient> client_;
  const plan::AttachReply gone_{};
};

}  // namespace r2cc::world

#endif  // R2CC_TESTS_WORLD_WIRE_H_
