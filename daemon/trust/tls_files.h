// A daemon's certificate, key and authorities as they are on the disk now: files that are replaced are in use without a restart.
#ifndef R2CC_DAEMON_TRUST_TLS_FILES_H_
#define R2CC_DAEMON_TRUST_TLS_FILES_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/tls/certificate.h"
#include "daemon/config/config.h"

namespace r2cc::daemon {

// One reading of the three files, which fit each other.
struct TlsContents {
  std::string pem;  // of the certificate
  std::string key_pem;
  std::string authorities_pem;
  Certificate certificate;
  KeyPtr key;
  Authorities authorities;
};

// Thread-safe.
class TlsFiles {
 public:
  using Clock = std::function<int64_t()>;  // CLOCK_REALTIME, nanoseconds

  // Reads the files: one line that names the file on failure.
  static absl::StatusOr<std::shared_ptr<TlsFiles>> Load(const TlsSpec& spec, Clock realtime_ns);

  // The newest that could be read: looks at the disk once a second at most. A file that cannot be read, or does not fit, leaves the last in
  // force.
  std::shared_ptr<const TlsContents> Get();
  int64_t now_s() const;
  const TlsSpec& spec() const { return spec_; }

 private:
  TlsFiles(TlsSpec spec, Clock realtime_ns) : spec_(std::move(spec)), realtime_ns_(std::move(realtime_ns)) {}

  const TlsSpec spec_;
  const Clock realtime_ns_;
  absl::Mutex mutex_;
  std::shared_ptr<const TlsContents> contents_ ABSL_GUARDED_BY(mutex_);
  int64_t looked_ns_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string stamp_ ABSL_GUARDED_BY(mutex_);  // of the files that contents_ is from
};

// Everything that is wrong with the files of `spec` for node `node` at `now_s`, each one line that names the file and the way out. `where`
// begins the lines. `node` empty: any name will do, as for etcd. `operators_gid`: the group whose members may command this node, and must
// not be able to impersonate it; -1: there is no such group.
std::vector<std::string> CheckTlsFiles(const TlsSpec& spec, const std::string& node, int64_t now_s, const std::string& where,
                                       int64_t operators_gid);

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_TRUST_TLS_FILES_H_
