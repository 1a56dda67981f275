// The real r2ccctl against daemons that are not there, break off, send nothing, or are something else: what a person reads then has no word
// of gRPC.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/r2cc.grpc.pb.h"

namespace r2cc::client {
namespace {

using testing::HasSubstr;
using testing::Not;

// Texts of gRPC and of OpenSSL; addresses as gRPC writes them.
constexpr const char* kForeign[] = {"DEADLINE_EXCEEDED",
                                    "Deadline Exceeded",
                                    "UNAVAILABLE",
                                    "UNKNOWN",
                                    "CANCELLED",
                                    "INTERNAL",
                                    "Socket closed",
                                    "failed to connect",
                                    "last error",
                                    "C-ares",
                                    "DNS",
                                    "ipv4:",
                                    "ipv6:",
                                    "unix:",
                                    "Endpoint",
                                    "GOAWAY",
                                    "RST_STREAM",
                                    "Stream removed",
                                    "Cancelling",
                                    "handshaker",
                                    "Handshake",
                                    "SETTINGS",
                                    "SSL_",
                                    "Tls ",
                                    "RPC",
                                    "grpc",
                                    "larger than max"};

// One that accepts connections and is no daemon.
class NoDaemon {
 public:
  enum class Kind { kHangsUp, kResets, kSpeaksHttp, kSendsNothing };

  NoDaemon(Kind kind, int listener) : kind_(kind), listener_(listener), thread_([this] { Serve(); }) {}
  ~NoDaemon() {
    over_ = true;
    thread_.join();
    for (const int fd : silent_) close(fd);
    close(listener_);
  }

 private:
  void Serve() {
    for (pollfd waiting{listener_, POLLIN, 0}; !over_;) {
      if (poll(&waiting, 1, 50) <= 0) continue;
      const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) continue;
      const linger reset{1, 0};
      constexpr char kHttp[] = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
      switch (kind_) {
        case Kind::kSendsNothing: silent_.push_back(fd); continue;
        case Kind::kResets: (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)); break;
        case Kind::kSpeaksHttp: (void)!write(fd, kHttp, sizeof(kHttp) - 1); break;
        case Kind::kHangsUp: break;
      }
      close(fd);
    }
  }

  const Kind kind_;
  const int listener_;
  std::atomic<bool> over_ = false;
  std::vector<int> silent_;
  std::thread thread_;
};

// A daemon whose answers gRPC makes: it ends, its handler throws, or its answer is too long.
class Broken final : public v1::Control::Service {
 public:
  explicit Broken(grpc::Status status) : status_(std::move(status)) {}

 private:
  grpc::Status GetStatus(grpc::ServerContext*, const v1::StatusRequest*, v1::StatusReply*) override { return status_; }
  grpc::Status ListNics(grpc::ServerContext*, const v1::ListNicsRequest*, v1::ListNicsReply*) override { return status_; }
  grpc::Status ActOnNic(grpc::ServerContext*, const v1::NicActionRequest*, v1::NicActionReply*) override { return status_; }
  grpc::Status Events(grpc::ServerContext*, const v1::EventsRequest*, grpc::ServerWriter<v1::Event>*) override { return status_; }

  const grpc::Status status_;
};

class R2ccctlErrors : public testing::Test {
 protected:
  void SetUp() override {
    signal(SIGPIPE, SIG_IGN);
    program_ = std::filesystem::absolute("client/r2ccctl");
    start_ = std::filesystem::current_path();
    // The path of a socket is short: it is named relative to the folder.
    std::filesystem::current_path(testing::TempDir());
    std::filesystem::remove("r2ccd.sock");
  }
  void TearDown() override { std::filesystem::current_path(start_); }

  std::string Run(const std::string& arguments) const {
    std::string text;
    FILE* const pipe = popen(absl::StrCat(program_, " ", arguments, " 2>&1 < /dev/null").c_str(), "r");
    char buffer[4096];
    for (size_t got = 0; (got = fread(buffer, 1, sizeof(buffer), pipe)) > 0;) text.append(buffer, got);
    EXPECT_NE(pclose(pipe), 0) << arguments << ": " << text;
    return text;
  }
  void ExpectPlainText(const std::string& arguments) const {
    const std::string text = Run(arguments);
    EXPECT_GT(text.size(), 20u) << arguments;
    for (const char* word : kForeign) EXPECT_THAT(text, Not(HasSubstr(word))) << arguments;
    if (std::getenv("R2CC_SHOW_ERRORS") != nullptr) std::printf("%s\n    %s\n", arguments.c_str(), text.c_str());
  }
  // Over the Unix socket in this folder.
  void ExpectPlainTextHere() const {
    for (const char* command :
         {"status", "nic list", "nic why n0/rail0", "nic drain n0/rail0", "path probe n0 n1", "jobs", "job report", "report", "events",
          "plan show", "plan why", "config show", "config reload", "node forget n7", "health", "ready", "doctor", "watch"})
      ExpectPlainText(absl::StrCat(command, " --socket r2ccd.sock"));
  }

  static int ListenHere() {
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = "r2ccd.sock"};
    EXPECT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(listen(fd, 64), 0);
    return fd;
  }
  // At a port of this machine's own address.
  static int Bind(int* port) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof(address);
    EXPECT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&address), bytes), 0);
    EXPECT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &bytes), 0);
    *port = ntohs(address.sin_port);
    return fd;
  }
  // An operator's certificate, in the folder ca/alice.
  void MakeCertificates() const {
    std::filesystem::remove_all("ca");
    for (const char* arguments : {"certs init --dir ca", "certs issue alice --operator --dir ca"})
      ASSERT_EQ(std::system(absl::StrCat(program_, " ", arguments, " > /dev/null").c_str()), 0) << arguments;
  }
  void ExpectPlainTextFromAfar(const std::string& server) const {
    for (const char* command : {"status", "nic list", "nic drain n0/rail0", "job report", "events"})
      ExpectPlainText(absl::StrCat(command, " --certs ca/alice --server ", server));
  }

  std::string program_;
  std::filesystem::path start_;
};

TEST_F(R2ccctlErrors, ASocketWithoutADaemon) {
  ExpectPlainTextHere();
  close(ListenHere());
  ExpectPlainTextHere();
}

TEST_F(R2ccctlErrors, ASocketOfSomethingElse) {
  for (const auto kind : {NoDaemon::Kind::kHangsUp, NoDaemon::Kind::kSpeaksHttp}) {
    std::filesystem::remove("r2ccd.sock");
    const NoDaemon server(kind, ListenHere());
    ExpectPlainTextHere();
  }
}

TEST_F(R2ccctlErrors, ADaemonThatDoesNotAnswer) {
  const NoDaemon server(NoDaemon::Kind::kSendsNothing, ListenHere());
  for (const char* command : {"ready", "status"}) ExpectPlainText(absl::StrCat(command, " --socket r2ccd.sock"));
}

TEST_F(R2ccctlErrors, AServerThatIsNone) {
  MakeCertificates();
  int port = 0;
  const int closed = Bind(&port);
  ExpectPlainTextFromAfar(absl::StrCat("127.0.0.1:", port));
  close(closed);
  // By RFC 2606 no such name exists.
  ExpectPlainTextFromAfar("nowhere.invalid:7460");
  for (const auto kind : {NoDaemon::Kind::kHangsUp, NoDaemon::Kind::kResets, NoDaemon::Kind::kSpeaksHttp}) {
    const int listener = Bind(&port);
    ASSERT_EQ(listen(listener, 64), 0);
    const NoDaemon server(kind, listener);
    ExpectPlainTextFromAfar(absl::StrCat("127.0.0.1:", port));
  }
}

TEST_F(R2ccctlErrors, ADaemonWhoseAnswersGrpcMakes) {
  using grpc::StatusCode;
  for (const grpc::Status& status : {
           grpc::Status(StatusCode::UNAVAILABLE, "Socket closed"),
           grpc::Status(StatusCode::UNAVAILABLE, ""),
           grpc::Status(StatusCode::CANCELLED, "Cancelling all calls"),
           grpc::Status(StatusCode::CANCELLED, "CANCELLED"),
           grpc::Status(StatusCode::UNKNOWN, "Stream removed"),
           grpc::Status(StatusCode::UNKNOWN, "Unexpected error in RPC handling"),
           grpc::Status(StatusCode::INTERNAL, "Received RST_STREAM with error code 2"),
           grpc::Status(StatusCode::INTERNAL, ""),
           grpc::Status(StatusCode::RESOURCE_EXHAUSTED, "Received message larger than max (6758817 vs. 4194304)"),
           grpc::Status(StatusCode::DEADLINE_EXCEEDED, "Deadline Exceeded"),
       }) {
    SCOPED_TRACE(status.error_message());
    std::filesystem::remove("r2ccd.sock");
    Broken service(status);
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:r2ccd.sock", grpc::InsecureServerCredentials());
    builder.RegisterService(&service);
    const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
    ASSERT_NE(server, nullptr);
    for (const char* command : {"status", "nic list", "nic drain n0/rail0", "events", "health", "ready"})
      ExpectPlainText(absl::StrCat(command, " --socket r2ccd.sock"));
    server->Shutdown();
  }
}

}  // namespace
}  // namespace r2cc::client
