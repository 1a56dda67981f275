// A log record as programs read it: an entry of the journal, a JSON object. Pure.
#ifndef R2CC_BASE_LOG_FORMATS_H_
#define R2CC_BASE_LOG_FORMATS_H_

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "base/log.h"

namespace r2cc {

// One datagram of the journal's native protocol: PRIORITY, SYSLOG_IDENTIFIER, MESSAGE (`text`), and of each field R2CC_KEY, but of
// message_id MESSAGE_ID. Fields without a value are left out.
std::string FormatJournalEntry(Severity level, std::string_view identifier, std::string_view text, std::initializer_list<LogField> fields);

// {"time":"2026-01-31T12:00:00.123Z","level":"warning","message":"...","nic":"r1"}. All values but the first three are those
// of `fields`, as strings, without those that are empty and no part of the text. Valid UTF-8 for any record.
std::string FormatJsonRecord(int64_t realtime_ns, Severity level, std::string_view message, std::initializer_list<LogField> fields);

}  // namespace r2cc

#endif  // R2CC_BASE_LOG_FORMATS_H_
