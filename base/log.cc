#include "base/log.h"

#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <utility>

#include "base/core/check.h"
#include "base/core/mutex.h"
#include "base/journal_socket.h"
#include "base/log_formats.h"
#include "base/log_output.h"

namespace r2cc {
namespace {

spdlog::level::level_enum ToSpdlog(Severity level) {
  switch (level) {
    case Severity::kDebug: return spdlog::level::debug;
    case Severity::kInfo: return spdlog::level::info;
    case Severity::kWarning: return spdlog::level::warn;
    case Severity::kError: return spdlog::level::err;
  }
  return spdlog::level::err;
}

// Into a LogOutput.
class OutputSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit OutputSink(LogOutput* output) : output_(output) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& record) override {
    spdlog::memory_buf_t line;
    formatter_->format(record, line);
    output_->Write({line.data(), line.size()});
  }
  void flush_() override {}

 private:
  LogOutput* const output_;
};

void WriteTimeLevelAndText(spdlog::logger* logger) {
  logger->set_formatter(std::make_unique<spdlog::pattern_formatter>("%Y-%m-%dT%H:%M:%S.%eZ %^%l%$ %v", spdlog::pattern_time_type::utc));
}

spdlog::logger& Logger() {
  // Never destroyed: threads may log until the process ends.
  static spdlog::logger& logger = *[] {
    auto* made = new spdlog::logger("r2cc", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    WriteTimeLevelAndText(made);
    made->set_level(spdlog::level::info);
    return made;
  }();
  return logger;
}

std::atomic<bool> for_journal = false;
std::atomic<bool> as_json = false;
std::atomic<const JournalSocket*> journal = nullptr;  // never destroyed, as the logger
std::atomic<LogOutput*> output = nullptr;             // the same

Mutex capture_mutex;
ScopedLogCapture::Sink* capture R2CC_GUARDED_BY(capture_mutex) = nullptr;

void WriteTextAlone() { Logger().set_formatter(std::make_unique<spdlog::pattern_formatter>("%v")); }

int64_t RealtimeNow() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

bool Plain(std::string_view value) {
  if (value.empty()) return false;
  for (const char c : value) {
    const bool plain = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                       std::string_view("_./:+-").find(c) != std::string_view::npos;
    if (!plain) return false;
  }
  return true;
}

// One line for any text.
void AppendEscaped(std::string_view text, bool quotes, std::string* out) {
  constexpr char kHex[] = "0123456789abcdef";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (quotes && (c == '"' || c == '\\')) {
      *out += '\\';
      *out += c;
    } else if (c == '\n') {
      *out += "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      *out += "\\x";
      *out += kHex[byte >> 4];
      *out += kHex[byte & 15];
    } else {
      *out += c;
    }
  }
}

void ReportLost();

void Write(Severity level, std::string_view message, std::initializer_list<LogField> fields) {
  spdlog::logger& logger = Logger();
  if (!logger.should_log(ToSpdlog(level))) return;
  const std::string line = FormatLogRecord(message, fields);
  {
    const MutexLock lock(capture_mutex);
    if (capture != nullptr) {
      (*capture)(level, line);
      return;
    }
  }
  if (const JournalSocket* const socket = journal;
      socket != nullptr && socket->Send(FormatJournalEntry(level, program_invocation_short_name, line, fields)))
    return;
  const std::string text =
      as_json ? FormatJsonRecord(RealtimeNow(), level, message, fields) : (for_journal ? JournalPrefix(level) : "") + line;
  logger.log(ToSpdlog(level), spdlog::string_view_t(text.data(), text.size()));
  logger.flush();
  ReportLost();
}

void ReportLost() {
  LogOutput* const lines = output;
  if (const uint64_t lost = lines == nullptr ? 0 : lines->TakeLost(); lost > 0)
    LogWarning("log lines are lost: the reader of standard error took none for a while", {{"lines", lost}});
}

}  // namespace

LogField::LogField(std::string_view key, double value) : key(key), value(fmt::format("{:.6g}", value)) {}

void LogDebug(std::string_view message, std::initializer_list<LogField> fields) { Write(Severity::kDebug, message, fields); }
void LogInfo(std::string_view message, std::initializer_list<LogField> fields) { Write(Severity::kInfo, message, fields); }
void LogWarning(std::string_view message, std::initializer_list<LogField> fields) { Write(Severity::kWarning, message, fields); }
void LogError(std::string_view message, std::initializer_list<LogField> fields) { Write(Severity::kError, message, fields); }

void SetMinSeverity(Severity level) { Logger().set_level(ToSpdlog(level)); }

std::optional<Severity> ParseSeverity(std::string_view name) {
  if (name == "debug") return Severity::kDebug;
  if (name == "info") return Severity::kInfo;
  if (name == "warning") return Severity::kWarning;
  if (name == "error") return Severity::kError;
  return std::nullopt;
}

bool IsJournal(std::string_view journal_stream, int fd) {
  struct stat there {};
  return fstat(fd, &there) == 0 && journal_stream == std::to_string(there.st_dev) + ":" + std::to_string(there.st_ino);
}

void LogWithoutWaiting() {
  output = new LogOutput(STDERR_FILENO);
  Logger().sinks() = {std::make_shared<OutputSink>(output)};
  WriteTimeLevelAndText(&Logger());
}

void FlushLog() {
  LogOutput* const lines = output;
  if (lines == nullptr) return;
  lines->Flush();
  ReportLost();
}

void LogForJournal(const std::string& path) {
  for_journal = true;
  journal = JournalSocket::Open(path).release();
  WriteTextAlone();
}

void LogAsJson() {
  as_json = true;
  WriteTextAlone();
}

std::string JournalPrefix(Severity level) {
  switch (level) {
    case Severity::kDebug: return "<7>";
    case Severity::kInfo: return "<6>";
    case Severity::kWarning: return "<4>";
    case Severity::kError: return "<3>";
  }
  return "<3>";
}

std::string FormatLogRecord(std::string_view message, std::initializer_list<LogField> fields) {
  std::string line;
  AppendEscaped(message, false, &line);
  for (const LogField& field : fields) {
    if (!field.in_text) continue;
    line += ' ';
    line += field.key;
    line += '=';
    if (Plain(field.value)) {
      line += field.value;
    } else {
      line += '"';
      AppendEscaped(field.value, true, &line);
      line += '"';
    }
  }
  return line;
}

ScopedLogCapture::ScopedLogCapture(Sink sink) {
  const MutexLock lock(capture_mutex);
  R2CC_CHECK(capture == nullptr);
  capture = new Sink(std::move(sink));
}

ScopedLogCapture::~ScopedLogCapture() {
  const MutexLock lock(capture_mutex);
  delete capture;
  capture = nullptr;
}

}  // namespace r2cc
