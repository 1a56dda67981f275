// Writes the file from which jobs without R2CC_RAILS learn this node's NICs (base/core/rails_file.h).
#ifndef R2CC_DAEMON_IO_OFFERED_RAILS_H_
#define R2CC_DAEMON_IO_OFFERED_RAILS_H_

#include <string>

#include "absl/status/status.h"
#include "base/core/rails_file.h"

namespace r2cc::daemon {

// Writes the file into `directory`, readable by every user, in place of the one that is there; takes that away if `rails` has none. A
// reader sees the whole of one or the other.
absl::Status OfferRails(const std::string& directory, const RailsFile& rails);

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_IO_OFFERED_RAILS_H_
