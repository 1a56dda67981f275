// A store whose values are signed: each names the node that wrote it, and is dropped where it does not prove that.
#ifndef R2CC_DAEMON_TRUST_SIGNED_STORE_H_
#define R2CC_DAEMON_TRUST_SIGNED_STORE_H_

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/executor.h"
#include "daemon/io/store.h"
#include "daemon/trust/refusals.h"
#include "daemon/trust/tls_files.h"

namespace r2cc::daemon {

// What is signed: another key's value, or another kind of text, is none of ours.
std::string SignedText(const std::string& key, const std::string& value);

// The core's thread only.
class SignedStore final : public Store {
 public:
  // `tls` null: values are put unsigned, and taken unsigned and unread. `insecure`: beside signed ones the unsigned are taken, but of no
  // node that has signed before. `refusals` outlives it.
  // And so does `executor`, the core's.
  SignedStore(Executor* executor, std::unique_ptr<Store> store, std::shared_ptr<TlsFiles> tls, bool insecure, Refusals* refusals)
      : executor_(executor), store_(std::move(store)), tls_(std::move(tls)), insecure_(insecure), refusals_(refusals) {}
  ~SignedStore() override { EndRenewal(); }

  void Start(const std::string& prefix, Callbacks callbacks) override;
  void Put(const std::string& key, const std::string& value, int64_t lease_ms) override;
  void Stop() override {
    EndRenewal();
    store_->Stop();
  }

  // Certificates that are kept.
  size_t known() const { return known_.size(); }

 private:
  struct Own {
    std::string value;
    int64_t lease_ms = 0;
  };
  void PutSigned(const std::string& key, const Own& own);
  // Signs what was put here anew when there is a new certificate: nobody believes an entry whose certificate has expired.
  void Renew();
  void EndRenewal();
  // The value within, if it is proven to be of the node that `key` names.
  std::optional<std::string> Open(const std::string& key, const std::string& stored);
  // Whose certificate this is, by now; with the reason if it is nobody's.
  absl::StatusOr<std::string> NodeOf(const std::string& node, const std::string& pem, const std::string& text,
                                     const std::string& signature);

  Executor* const executor_;
  const std::unique_ptr<Store> store_;
  const std::shared_ptr<TlsFiles> tls_;
  const bool insecure_;
  Refusals* const refusals_;
  std::string prefix_;
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
