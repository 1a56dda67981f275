// Requests to servers over TLS on loopback, some of which want to keep the client for ever.
#include "client/conditions/kubernetes_api.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>

namespace r2cc::client {
namespace {

using testing::HasSubstr;

constexpr Nanos kTimeout = 500 * kNanosPerMs;
constexpr Nanos kPatience = 20 * kNanosPerSecond;

class KubernetesApiTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    std::string name = testing::TempDir() + "/account.XXXXXX";
    account_ = new std::string(mkdtemp(name.data()));
    std::ofstream(*account_ + "/token") << "the token\n";
    const std::string make = "openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=kubernetes -addext subjectAltName=IP:127.0.0.1 -keyout " +
                             *account_ + "/key -out " + *account_ + "/ca.crt 2>/dev/null";
    ASSERT_EQ(std::system(make.c_str()), 0);
  }

  void SetUp() override {
    signal(SIGPIPE, SIG_IGN);
    context_ = SSL_CTX_new(TLS_server_method());
    ASSERT_EQ(SSL_CTX_use_certificate_file(context_, (*account_ + "/ca.crt").c_str(), SSL_FILETYPE_PEM), 1);
    ASSERT_EQ(SSL_CTX_use_PrivateKey_file(context_, (*account_ + "/key").c_str(), SSL_FILETYPE_PEM), 1);
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in own{};
    own.sin_family = AF_INET;
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof(own);
    ASSERT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&own), bytes), 0);
    ASSERT_EQ(listen(listener_, 4), 0);
    ASSERT_EQ(getsockname(listener_, reinterpret_cast<sockaddr*>(&own), &bytes), 0);
    address_ = "127.0.0.1:" + std::to_string(ntohs(own.sin_port));
  }
  void TearDown() override {
    over_ = true;
    shutdown(listener_, SHUT_RDWR);
    if (server_.joinable()) server_.join();
    close(listener_);
    SSL_CTX_free(context_);
  }

  // Takes one connection. `serve` gets it after the handshake and the request.
  void Serve(std::function<void(SSL*)> serve) {
    server_ = std::thread([this, serve = std::move(serve)] {
      const int fd = accept(listener_, nullptr, nullptr);
      if (fd < 0) return;  // the test is over
      SSL* const ssl = SSL_new(context_);
      SSL_set_fd(ssl, fd);
      char request[4096];
      if (SSL_accept(ssl) == 1 && SSL_read(ssl, request, sizeof(request)) > 0) serve(ssl);
      SSL_shutdown(ssl);
      SSL_free(ssl);
      close(fd);
    });
  }
  // False: the client is gone, or the test is over.
  bool Write(SSL* ssl, const std::string& text) { return !over_ && SSL_write(ssl, text.data(), static_cast<int>(text.size())) > 0; }

  // Waits until the client leaves, for this time at most.
  static void WaitForLeave(SSL* ssl, int milliseconds) {
    pollfd client{SSL_get_fd(ssl), POLLRDHUP, 0};
    poll(&client, 1, milliseconds);
  }

  absl::StatusOr<std::string> Ask(Nanos timeout) {
    return ConnectKubernetes(address_, *account_, timeout)->Ask({"GET", "/api/v1/nodes/n0", "", ""});
  }

  static std::string* account_;
  SSL_CTX* context_ = nullptr;
  int listener_ = -1;
  std::string address_;
  std::atomic<bool> over_ = false;
  std::thread server_;
};
std::string* KubernetesApiTest::account_ = nullptr;

TEST_F(KubernetesApiTest, AnAnswerInPartsIsTakenWhole) {
  Serve([this](SSL* ssl) {
    for (const char* part : {"HTTP/1.0 200 OK\r\n", "Content-Length: 4\r\n\r\n{", "}\r", "\n"}) {
      Write(ssl, part);
      WaitForLeave(ssl, 10);
    }
  });
  const auto answer = Ask(kPatience);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(*answer, "{}\r\n");
}

// A byte now and then: each read ends soon, and the answer never does.
TEST_F(KubernetesApiTest, AnAnswerWithoutAnEndIsGivenUp) {
  Serve([this](SSL* ssl) {
    Write(ssl, "HTTP/1.0 200 OK\r\n\r\n");
    while (Write(ssl, "x")) WaitForLeave(ssl, 5);
  });
  const Nanos began = SteadyClock().Now();
  EXPECT_THAT(std::string(Ask(kTimeout).status().message()), HasSubstr("takes too long"));
  EXPECT_LT(SteadyClock().Now() - began, kPatience);
}

TEST_F(KubernetesApiTest, AServerThatNeverAnswersIsGivenUp) {
  // The kernel takes the connection, and nobody the handshake.
  EXPECT_THAT(std::string(Ask(kTimeout).status().message()), HasSubstr("takes too long"));
}

TEST_F(KubernetesApiTest, AnAnswerOfAnySizeIsNotKept) {
  Serve([this](SSL* ssl) {
    Write(ssl, "HTTP/1.0 200 OK\r\n\r\n");
    while (Write(ssl, std::string(16 << 10, 'x'))) {
    }
  });
  EXPECT_THAT(std::string(Ask(kPatience).status().message()), HasSubstr("answer is too long"));
}

}  // namespace
}  // namespace r2cc::client
