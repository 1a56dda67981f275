// A MadFabric whose other end is the test. One thread.
#ifndef R2CC_HEALTH_IO_FAKE_MAD_FABRIC_H_
#define R2CC_HEALTH_IO_FAKE_MAD_FABRIC_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "health/io/mad_fabric.h"

namespace r2cc::health {

class FakeMadFabric final : public MadFabric {
 public:
  struct Sent {
    std::string port;  // "mlx5_0/1"
    bool asked = false;
    FabricAddress to;
    std::string mad;
  };

  absl::StatusOr<std::unique_ptr<FabricPort>> Open(const std::string& device, uint32_t port, FabricHandler handler) override {
    if (!open_status_.ok()) return open_status_;
    const std::string name = absl::StrCat(device, "/", port);
    handlers_[name] = std::move(handler);
    return std::make_unique<Port>(this, name);
  }

  void set_open_status(absl::Status status) { open_status_ = std::move(status); }
  // The handler of an open port.
  FabricHandler& handler(const std::string& port) { return handlers_.at(port); }
  bool IsOpen(const std::string& port) const { return handlers_.contains(port); }
  std::vector<Sent> TakeSent() { return std::exchange(sent_, {}); }

 private:
  class Port final : public FabricPort {
   public:
    Port(FakeMadFabric* fabric, std::string name) : fabric_(fabric), name_(std::move(name)) {}
    ~Port() override { fabric_->handlers_.erase(name_); }
    Port(const Port&) = delete;
    Port& operator=(const Port&) = delete;
    absl::Status Ask(const FabricAddress& to, std::string_view mad) override { return Note(true, to, mad); }
    absl::Status Answer(const FabricAddress& to, std::string_view mad) override { return Note(false, to, mad); }

   private:
    absl::Status Note(bool asked, const FabricAddress& to, std::string_view mad) {
      fabric_->sent_.push_back({name_, asked, to, std::string(mad)});
      return absl::OkStatus();
    }
    FakeMadFabric* const fabric_;
    const std::string name_;
  };

  std::map<std::string, FabricHandler> handlers_;
  std::vector<Sent> sent_;
  absl::Status open_status_;
};

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_IO_FAKE_MAD_FABRIC_H_
