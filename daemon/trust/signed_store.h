// A store whose values are signed: each names the node that wrote it, and is dropped unless the signature proves that. A value is believed
// for a bounded time, and its writer signs it again before that ends: a copy cannot be put back later.
#ifndef R2CC_DAEMON_TRUST_SIGNED_STORE_H_
#define R2CC_DAEMON_TRUST_SIGNED_STORE_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/executor.h"
#include "daemon/io/store.h"
#include "daemon/trust/refusals.h"
#include "daemon/trust/tls_files.h"

namespace r2cc::daemon {

// The signed text: a value of another key, or another kind of text, does not verify.
std::string SignedText(const std::string& key, const std::string& value);

// The core's thread only.
class SignedStore final : public Store {
 public:
  // Interval at which a value is signed again: one a second in the whole cluster, because each goes to all nodes, and not more often than
  // this.
  static constexpr int64_t kRenewalLeastS = 300;
  // Clocks may differ by this much.
  static constexpr int64_t kClockSlackS = 600;

  // `tls` null: values are put unsigned, and taken unsigned and unread. `insecure`: unsigned values are accepted in addition to signed
  // ones, but not from a node that has signed before. `refusals` and `executor`, the core's, outlive it.
  SignedStore(Executor* executor, std::unique_ptr<Store> store, std::shared_ptr<TlsFiles> tls, bool insecure, Refusals* refusals)
      : executor_(executor), store_(std::move(store)), tls_(std::move(tls)), insecure_(insecure), refusals_(refusals) {}
  ~SignedStore() override { EndRenewal(); }

  void Start(const std::string& prefix, Callbacks callbacks) override;
  void Put(const std::string& key, const std::string& value, int64_t lease_ms) override;
  void Stop() override {
    EndRenewal();
    store_->Stop();
  }

  // How long a value is believed that is signed while the store has entries of this many nodes. One renewal may fail.
  static int64_t LifetimeS(size_t nodes) { return 2 * RenewalS(nodes) + kClockSlackS; }
  static int64_t RenewalS(size_t nodes) { return std::max(kRenewalLeastS, static_cast<int64_t>(nodes)); }

  // Certificates that are kept.
  size_t known() const { return known_.size(); }

 private:
  struct Own {
    std::string value;
    int64_t lease_ms = 0;
    int64_t renew_s = 0;  // when it is signed again
  };
  void PutSigned(const std::string& key, Own* own);
  // Signs this node's values again: in time, and when there is a new certificate, because an entry whose certificate has expired is not
  // believed.
  void Renew();
  // Ends values whose time is over.
  void EndOld();
  void Arm();
  void EndRenewal();
  // The value within, if it is proven to be of the node that `key` names.
  std::optional<std::string> Open(const std::string& key, const std::string& stored);
  // The identity of this certificate now; with the reason if it proves none.
  absl::StatusOr<std::string> NodeOf(const std::string& node, const std::string& pem, const std::string& text,
                                     const std::string& signature);

  Executor* const executor_;
  const std::unique_ptr<Store> store_;
  const std::shared_ptr<TlsFiles> tls_;
  const bool insecure_;
  Refusals* const refusals_;
  std::string prefix_;
  std::function<void(const StoreChange&)> on_change_;
  std::map<std::string, int64_t> until_s_;  // of what is believed, by key; kNoEnd for a value of 0.2.0
  // The certificate with which a node signed last, by the node: most values come with that one. Nobody makes it grow but the authority.
  struct Known {
    std::string pem_digest;
    Certificate certificate;
    int64_t until_s = 0;
    std::shared_ptr<const TlsContents> by;
  };
  std::map<std::string, Known> known_;
  std::map<std::string, bool> has_signed_;
  std::map<std::string, Own> own_;                // what was put here
  std::shared_ptr<const TlsContents> signed_by_;  // all of it
  TimerId renewal_timer_ = 0;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_TRUST_SIGNED_STORE_H_
