#include "health/io/umad_fabric.h"

#include <dlfcn.h>
#include <endian.h>
#include <errno.h>
#include <infiniband/umad.h>
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace r2cc::health {
namespace {

constexpr int kMadBytes = 256;
constexpr int kClassSubnetAdministration = 0x03;
constexpr int kClassVersion = 2;
constexpr uint32_t kMethodReport = 6;
constexpr int kGeneralServicesQp = 1;
constexpr int kGeneralServicesKey = static_cast<int>(0x80010000u);
constexpr int kAnswerTimeoutMs = 1000;
constexpr int kAskRepeats = 3;
// How long a thread waits before it looks whether it is to end.
constexpr int kWaitMs = 200;
// The limit of MADs that a port's thread has posted and the executor has not taken. Beyond it MADs are dropped: the subnet administrator
// repeats its own.
constexpr int kPostedMax = 1024;

template <typename Function>
bool Find(void* library, const char* name, Function** function) {
  *function = reinterpret_cast<Function*>(dlsym(library, name));
  return *function != nullptr;
}

}  // namespace

struct UmadFabric::Library {
  decltype(umad_init)* init;
  decltype(umad_open_port)* open_port;
  decltype(umad_close_port)* close_port;
  decltype(umad_register)* register_agent;
  decltype(umad_send)* send;
  decltype(umad_recv)* recv;
  decltype(umad_size)* size;
  decltype(umad_get_mad)* get_mad;
  decltype(umad_set_addr)* set_addr;
  decltype(umad_set_pkey)* set_pkey;
  decltype(umad_status)* status;

  // Stays loaded until the process ends.
  static absl::StatusOr<std::shared_ptr<const Library>> Load(const std::string& name) {
    void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) return absl::NotFoundError(absl::StrCat(name, " cannot be loaded: ", dlerror()));
    auto library = std::make_shared<Library>();
    const bool complete = Find(handle, "umad_init", &library->init) && Find(handle, "umad_open_port", &library->open_port) &&
                          Find(handle, "umad_close_port", &library->close_port) &&
                          Find(handle, "umad_register", &library->register_agent) && Find(handle, "umad_send", &library->send) &&
                          Find(handle, "umad_recv", &library->recv) && Find(handle, "umad_size", &library->size) &&
                          Find(handle, "umad_get_mad", &library->get_mad) && Find(handle, "umad_set_addr", &library->set_addr) &&
                          Find(handle, "umad_set_pkey", &library->set_pkey) && Find(handle, "umad_status", &library->status);
    if (!complete) return absl::NotFoundError(absl::StrCat(name, " is not the library that it is called"));
    if (library->init() < 0) return absl::NotFoundError("the kernel has no InfiniBand management (module ib_umad)");
    return library;
  }
};

namespace {

class UmadPort final : public FabricPort {
 public:
  UmadPort(Executor* executor, std::shared_ptr<const UmadFabric::Library> library, int port, int agent, FabricHandler handler)
      : executor_(executor),
        library_(std::move(library)),
        port_(port),
        agent_(agent),
        shared_(std::make_shared<Shared>(std::move(handler))),
        thread_([this] { Listen(); }) {
    pthread_setname_np(thread_.native_handle(), "r2ccd-umad");
  }
  ~UmadPort() override {
    shared_->open = false;
    stop_ = true;
    thread_.join();
    library_->close_port(port_);
  }
  UmadPort(const UmadPort&) = delete;
  UmadPort& operator=(const UmadPort&) = delete;

  absl::Status Ask(const FabricAddress& to, std::string_view mad) override { return Send(to, mad, kAnswerTimeoutMs, kAskRepeats); }
  absl::Status Answer(const FabricAddress& to, std::string_view mad) override { return Send(to, mad, 0, 0); }

 private:
  // Outlives the port in tasks that are still posted.
  struct Shared {
    explicit Shared(FabricHandler given) : handler(std::move(given)) {}
    const FabricHandler handler;
    bool open = true;  // the executor's thread alone
    std::atomic<int> posted{0};
  };

  absl::Status Send(const FabricAddress& to, std::string_view mad, int timeout_ms, int repeats) {
    if (mad.size() != kMadBytes) return absl::InvalidArgumentError("a MAD has 256 bytes");
    std::vector<char> buffer(library_->size() + kMadBytes);
    std::memcpy(library_->get_mad(buffer.data()), mad.data(), mad.size());
    library_->set_addr(buffer.data(), to.lid, kGeneralServicesQp, to.service_level, kGeneralServicesKey);
    library_->set_pkey(buffer.data(), 0);
    const int result = library_->send(port_, agent_, buffer.data(), kMadBytes, timeout_ms, repeats);
    return result < 0 ? absl::ErrnoToStatus(-result, absl::StrCat("cannot send to LID ", to.lid)) : absl::OkStatus();
  }

  void Listen() {
    std::vector<char> buffer(library_->size() + kMadBytes);
    while (!stop_) {
      std::memset(buffer.data(), 0, buffer.size());
      int bytes = kMadBytes;
      const int agent = library_->recv(port_, buffer.data(), &bytes, kWaitMs);
      if (agent == -ETIMEDOUT || agent == -EWOULDBLOCK || agent == -EINTR) continue;
      if (agent == -ENOSPC) continue;  // longer than a MAD: nothing that was asked for
      if (agent < 0) {
        Post([status = absl::ErrnoToStatus(-agent, "the port cannot be read")](const FabricHandler& handler) { handler.on_lost(status); });
        return;
      }
      if (library_->status(buffer.data()) != 0) {
        Post([](const FabricHandler& handler) { handler.on_timeout(); });
        continue;
      }
      const auto* header = reinterpret_cast<const ib_user_mad_t*>(buffer.data());
      const FabricAddress from = {be16toh(header->addr.lid), header->addr.sl};
      const auto* mad = static_cast<const char*>(library_->get_mad(buffer.data()));
      Post([mad = std::string(mad, kMadBytes), from](const FabricHandler& handler) { handler.on_mad(mad, from); });
    }
  }

  template <typename Call>
  void Post(Call call) {
    if (shared_->posted.fetch_add(1) >= kPostedMax) {
      shared_->posted.fetch_sub(1);
      return;
    }
    executor_->Post([shared = shared_, call = std::move(call)] {
      shared->posted.fetch_sub(1);
      if (shared->open) call(shared->handler);
    });
  }

  Executor* const executor_;
  const std::shared_ptr<const UmadFabric::Library> library_;
  const int port_;
  const int agent_;
  const std::shared_ptr<Shared> shared_;
  std::atomic<bool> stop_{false};
  std::thread thread_;  // the last: it uses the others
};

}  // namespace

UmadFabric::UmadFabric(Executor* executor, std::string library) : executor_(executor), name_(std::move(library)) {}
UmadFabric::~UmadFabric() = default;

absl::StatusOr<std::unique_ptr<FabricPort>> UmadFabric::Open(const std::string& device, uint32_t port, FabricHandler handler) {
  if (library_ == nullptr) {
    auto library = Library::Load(name_);
    if (!library.ok()) return library.status();
    library_ = *std::move(library);
  }
  const std::string where = absl::StrCat(device, " port ", port);
  const int id = library_->open_port(device.c_str(), static_cast<int>(port));
  if (id < 0) return absl::NotFoundError(absl::StrCat("cannot open ", where, " for management: ", strerror(-id)));
  long methods[16 / sizeof(long)] = {};
  methods[0] = 1L << kMethodReport;
  const int agent = library_->register_agent(id, kClassSubnetAdministration, kClassVersion, /*rmpp_version=*/0, methods);
  if (agent < 0) {
    library_->close_port(id);
    return absl::NotFoundError(absl::StrCat("cannot listen to reports on ", where, ": ", strerror(-agent)));
  }
  return std::make_unique<UmadPort>(executor_, library_, id, agent, std::move(handler));
}

}  // namespace r2cc::health
