// HTTP: a listening socket and its connections on a thread of its own. Requests are judged and answered elsewhere
// (route.h, answers.h); here are sockets, bounds and deadlines.
#ifndef R2CC_DAEMON_HTTP_HTTP_SERVER_H_
#define R2CC_DAEMON_HTTP_HTTP_SERVER_H_

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/core/token_bucket.h"
#include "base/event_loop.h"
#include "daemon/http/answers.h"
#include "daemon/http/request_parser.h"
#include "daemon/http/response.h"
#include "daemon/http/route.h"
#include "daemon/rpc/authenticator.h"
#include "daemon/rpc/backend.h"
#include "daemon/rpc/server_tls.h"
#include "daemon/trust/refusals.h"

namespace r2cc::daemon {

// The constructor, the destructor and alarm() from any thread but its own.
class HttpServer {
 public:
  // Connections at a time. A scraper has one, a browser six. Beyond that the one goes that has asked nothing for longest; if all have
  // asked, the oldest one without a certificate does (TLS), or the new one.
  static constexpr size_t kConnectionsMax = 128;
  // Connections that follow events.
  static constexpr size_t kStreamsMax = 16;
  // Answers that the core is asked for, a second and at once: it has more to do.
  static constexpr int kRequestsPerSecond = 200;
  static constexpr int kRequestsBurst = 400;
  // A document of more bytes than this is large. One large document at a time is in memory, until its client has it.
  static constexpr size_t kLargeBytes = 1 << 20;
  // Bytes of all other answers that clients have not taken yet. One of at most kSmallBytes, as metrics and health, is not counted.
  static constexpr size_t kPendingBytesMax = 16'777'216;
  static constexpr size_t kSmallBytes = 64 << 10;
  // Time of a client for the handshake (TLS) and for a whole request. Between two requests it may be silent for longer: Prometheus asks
  // each 15 s to a minute.
  static constexpr Nanos kRequestFor = 10 * kNanosPerSecond;
  static constexpr Nanos kSilentFor = 90 * kNanosPerSecond;
  // Time of the core for an answer.
  static constexpr Nanos kAnswerFor = 5 * kNanosPerSecond;
  // A client that takes nothing for this time is disconnected, and so is one that has not taken a whole answer, or the events at hand,
  // within this time.
  static constexpr Nanos kStalledFor = 10 * kNanosPerSecond;
  static constexpr Nanos kWriteFor = 60 * kNanosPerSecond;
  static constexpr Nanos kHeartbeatInterval = 15 * kNanosPerSecond;
  // A port that is taken is tried again.
  static constexpr Nanos kListenInterval = 5 * kNanosPerSecond;

  struct Parts {
    Backend* backend;
    Refusals* refusals;
    std::shared_ptr<TlsFiles> tls;  // null: in the clear, for every client
    HostNames names;
    // Why it does not listen; empty: it does. On its thread.
    std::function<void(const std::string&)> alarm;
  };

  // Listens on `listen`, host:port. If that fails, now or later, it tries again and again. The parts outlive it.
  HttpServer(Parts parts, const std::string& listen);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // The port that it listens on; 0: it does not.
  int port() const { return port_; }

 private:
  struct Connection;

  void Listen();
  void Accept();
  void Take(int fd, std::string address);
  // True: there is room for one more.
  bool MakeRoom(const std::string& address);
  void OnReady(uint64_t id, uint32_t events);
  // Reads, asks and writes as far as it goes. False: the connection is gone.
  bool Greet(Connection* connection);
  bool Read(Connection* connection);
  bool Serve(Connection* connection);
  bool Write(Connection* connection);
  // Identifies the caller, or the reason for a refusal.
  std::variant<Caller, HttpRefusal> Judge(const Connection& connection) const;
  bool BeginStream(Connection* connection, const v1::EventsRequest& request);
  bool FeedStream(Connection* connection);
  void WakeStreams();
  void OnAnswer(uint64_t id, uint64_t request, HttpResponse response);
  bool Respond(Connection* connection, HttpResponse response);
  bool Refuse(Connection* connection, const HttpRefusal& refusal);
  void CutOff(Connection* connection, const std::string& reason, const std::string& what);
  void Watch(Connection* connection);
  void End(Connection* connection);
  void ArmSweep();
  void Sweep();

  const Parts parts_;
  const std::string listen_;
  const bool clear_;
  const Authenticator authenticator_;
  std::atomic<int> port_ = 0;
  std::atomic<size_t> streams_ = 0;
  std::atomic<bool> woken_ = false;
  EventLog::ListenerId listener_ = 0;
  // All members below belong to the loop's thread.
  int fd_ = -1;
  std::map<uint64_t, std::unique_ptr<Connection>> connections_;  // the oldest first
  uint64_t last_id_ = 0;
  size_t large_ = 0;
  TokenBucket requests_{kRequestsPerSecond, kRequestsBurst};
  TokenBucket unproven_{kRequestsPerSecond, kRequestsBurst};  // over TLS, of clients without a certificate
  ServerTls server_tls_;
  TimerId sweep_ = 0;
  TimerId again_ = 0;
  std::string logged_alarm_;  // the alarm
  std::unique_ptr<HttpAnswers> answers_;
  ScopedLoopThread thread_;  // ends first
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_HTTP_HTTP_SERVER_H_
