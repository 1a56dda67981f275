// Writes entries to the journal by its native protocol. Thread-safe.
#ifndef R2CC_BASE_JOURNAL_SOCKET_H_
#define R2CC_BASE_JOURNAL_SOCKET_H_

#include <memory>
#include <string>

namespace r2cc {

class JournalSocket {
 public:
  // The socket on which systemd-journald takes entries.
  static constexpr char kPath[] = "/run/systemd/journal/socket";

  // Null: there is no journal at `path`.
  static std::unique_ptr<JournalSocket> Open(const std::string& path);
  ~JournalSocket();
  JournalSocket(const JournalSocket&) = delete;
  JournalSocket& operator=(const JournalSocket&) = delete;

  // Waits while the journal's queue is full, as a write to standard error does. False: the journal did not take it: it is being started
  // again, or the entry is larger than a datagram.
  bool Send(const std::string& entry) const;

 private:
  JournalSocket(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}

  const int fd_;
  const std::string path_;
};

}  // namespace r2cc

#endif  // R2CC_BASE_JOURNAL_SOCKET_H_
