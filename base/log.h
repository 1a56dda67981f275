// Log lines for daemons and tools: one record is one line on standard error, a sentence and then key=value fields, e.g.
//   2026-01-31T12:00:00.123Z WARNING nic failed nic=n0/r1 reason="link down"
// In the journal, which has its own time, it is an entry with the fields R2CC_NIC and R2CC_REASON; as JSON it is an object a line.
// Thread-safe.
#ifndef R2CC_BASE_LOG_H_
#define R2CC_BASE_LOG_H_

#include <concepts>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace r2cc {

enum class Severity { kDebug, kInfo, kWarning, kError };

// One key=value of a line. Values that hold anything but [A-Za-z0-9_./:+-] are quoted and escaped, so a name that came from outside
// can neither break the line nor forge another field.
struct LogField {
  LogField(std::string_view key, std::string_view value) : key(key), value(value) {}
  LogField(std::string_view key, const char* value) : key(key), value(value) {}
  LogField(std::string_view key, const std::string& value) : key(key), value(value) {}
  LogField(std::string_view key, bool value) : key(key), value(value ? "true" : "false") {}
  template <std::integral T>
  LogField(std::string_view key, T value) : key(key), value(std::to_string(value)) {}
  LogField(std::string_view key, double value);
  // A field for programs only: the message has it in other words, or a person has no use for it. Empty: there is none.
  static LogField Structured(std::string_view key, std::string_view value) {
    LogField field(key, value);
    field.in_text = false;
    return field;
  }

  std::string key;
  std::string value;
  bool in_text = true;
};

void LogDebug(std::string_view message, std::initializer_list<LogField> fields = {});
void LogInfo(std::string_view message, std::initializer_list<LogField> fields = {});
void LogWarning(std::string_view message, std::initializer_list<LogField> fields = {});
void LogError(std::string_view message, std::initializer_list<LogField> fields = {});

// Records below `level` are not written. Default: kInfo.
void SetMinSeverity(Severity level);

// "debug", "info", "warning" or "error"; nothing for any other name.
std::optional<Severity> ParseSeverity(std::string_view name);

// Whether descriptor `fd` leads to the journal, by `journal_stream`, the value of JOURNAL_STREAM ("DEVICE:INODE", as systemd sets it).
// A process whose standard error was redirected afterwards has inherited the variable all the same.
bool IsJournal(std::string_view journal_stream, int fd);
// From now on no call waits for the reader of standard error (base/log_output.h): records that it does not take wait, and are lost if they
// become too many. The first record after that, or FlushLog, reports how many. Before the calls below, and before other threads log.
void LogWithoutWaiting();
// Writes records that wait for the reader, as far as it takes them. To be called now and then.
void FlushLog();
// From now on records go to the journal's socket at `path`, with their fields. Records that it does not take, or all if there is none, go
// to standard error: lines that begin with the syslog priority (JournalPrefix), by which journalctl -p chooses, instead of time and level.
// Before other threads log.
void LogForJournal(const std::string& path);
// From now on each record is a JSON object on a line (base/log_formats.h). Before other threads log.
void LogAsJson();
// "<4>" for a warning: sd-daemon(3).
std::string JournalPrefix(Severity level);

// A record's text without time and level: the message and those of its fields that are part of the text.
std::string FormatLogRecord(std::string_view message, std::initializer_list<LogField> fields);

// Takes every record that passes the level instead of standard error, until it is destroyed; one at a time. For tests.
class ScopedLogCapture {
 public:
  using Sink = std::function<void(Severity, const std::string& line)>;
  explicit ScopedLogCapture(Sink sink);
  ~ScopedLogCapture();
  ScopedLogCapture(const ScopedLogCapture&) = delete;
  ScopedLogCapture& operator=(const ScopedLogCapture&) = delete;
};

}  // namespace r2cc

#endif  // R2CC_BASE_LOG_H_
