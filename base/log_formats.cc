#include "base/log_formats.h"

#include <spdlog/fmt/fmt.h>

#include <ctime>

namespace r2cc {
namespace {

constexpr std::string_view kMessageId = "message_id";
// As the journal takes names.
constexpr size_t kJournalNameBytesMax = 64;

int Priority(Severity level) {
  switch (level) {
    case Severity::kDebug: return 7;
    case Severity::kInfo: return 6;
    case Severity::kWarning: return 4;
    case Severity::kError: return 3;
  }
  return 3;
}

std::string_view LevelName(Severity level) {
  switch (level) {
    case Severity::kDebug: return "debug";
    case Severity::kInfo: return "info";
    case Severity::kWarning: return "warning";
    case Severity::kError: return "error";
  }
  return "error";
}

std::string JournalName(std::string_view key) {
  if (key == kMessageId) return "MESSAGE_ID";
  std::string name = "R2CC_";
  for (const char c : key) {
    const bool lower = c >= 'a' && c <= 'z';
    const bool plain = lower || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    name += lower ? static_cast<char>(c - 'a' + 'A') : plain ? c : '_';
  }
  return name.substr(0, kJournalNameBytesMax);
}

// A value with a newline has its length before it, little endian.
void AppendJournalField(std::string_view name, std::string_view value, std::string* entry) {
  *entry += name;
  if (value.find('\n') == std::string_view::npos) {
    *entry += '=';
  } else {
    *entry += '\n';
    for (int byte = 0; byte < 8; ++byte) *entry += static_cast<char>(static_cast<uint64_t>(value.size()) >> (8 * byte) & 0xff);
  }
  *entry += value;
  *entry += '\n';
}

// The length of the UTF-8 character that `text` begins with; 0: there is none.
size_t CharacterBytes(std::string_view text) {
  const auto at = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = at(0);
  const size_t bytes = first < 0x80                    ? 1
                       : first >= 0xc2 && first < 0xe0 ? 2
                       : first >= 0xe0 && first < 0xf0 ? 3
                       : first >= 0xf0 && first < 0xf5 ? 4
                                                       : 0;
  if (bytes == 0 || bytes > text.size()) return 0;
  for (size_t i = 1; i < bytes; ++i)
    if ((at(i) & 0xc0) != 0x80) return 0;
  // Longer than need be, a surrogate, or beyond the last character.
  if ((first == 0xe0 && at(1) < 0xa0) || (first == 0xed && at(1) >= 0xa0) || (first == 0xf0 && at(1) < 0x90) ||
      (first == 0xf4 && at(1) >= 0x90))
    return 0;
  return bytes;
}

void AppendJsonString(std::string_view text, std::string* out) {
  *out += '"';
  while (!text.empty()) {
    const size_t bytes = CharacterBytes(text);
    const auto first = static_cast<unsigned char>(text.front());
    if (bytes == 0)
      *out += "\\ufffd";
    else if (first == '"' || first == '\\')
      (*out += '\\') += text.front();
    else if (first < 0x20 || first == 0x7f)
      *out += fmt::format("\\u{:04x}", first);
    else
      *out += text.substr(0, bytes);
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  *out += '"';
}

std::string TimeText(int64_t realtime_ns) {
  const std::time_t seconds = realtime_ns / 1'000'000'000;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday, parts.tm_hour,
                     parts.tm_min, parts.tm_sec, realtime_ns % 1'000'000'000 / 1'000'000);
}

}  // namespace

std::string FormatJournalEntry(Severity level, std::string_view identifier, std::string_view text, std::initializer_list<LogField> fields) {
  std::string entry;
  AppendJournalField("PRIORITY", std::to_string(Priority(level)), &entry);
  AppendJournalField("SYSLOG_IDENTIFIER", identifier, &entry);
  AppendJournalField("MESSAGE", text, &entry);
  for (const LogField& field : fields)
    if (!field.value.empty()) AppendJournalField(JournalName(field.key), field.value, &entry);
  return entry;
}

std::string FormatJsonRecord(int64_t realtime_ns, Severity level, std::string_view message, std::initializer_list<LogField> fields) {
  std::string line = "{\"time\":\"" + TimeText(realtime_ns) + "\",\"level\":\"";
  line += LevelName(level);
  line += "\",\"message\":";
  AppendJsonString(message, &line);
  for (const LogField& field : fields) {
    if (field.value.empty() && !field.in_text) continue;
    line += ',';
    AppendJsonString(field.key, &line);
    line += ':';
    AppendJsonString(field.value, &line);
  }
  return line + "}";
}

}  // namespace r2cc
