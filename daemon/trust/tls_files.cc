#include "daemon/trust/tls_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/core/clock.h"
#include "base/log.h"
#include "daemon/io/files.h"

namespace r2cc::daemon {
namespace {

constexpr Nanos kLookInterval = kNanosPerSecond;
constexpr char kIssue[] = "`r2ccctl certs issue` makes one";
constexpr char kCopyAuthority[] = "copy the ca.crt of `r2ccctl certs init` there";

// As in docs/start/install.md: a key is the service's alone.
std::string OpenToService(const std::string& file, bool secret) {
  return secret ? absl::StrCat("chown r2ccd: ", file, " && chmod 400 ", file) : absl::StrCat("chmod 644 ", file);
}

// Why a file of the three cannot be read, with what ends that. `missing`: what to do if it is not there.
absl::Status CannotRead(const absl::Status& status, const TlsSpec& spec, const std::string& file, const char* missing) {
  return absl::Status(status.code(), absl::StrCat(status.message(), "; ",
                                                  absl::IsPermissionDenied(status)
                                                      ? absl::StrCat("r2ccd reads it after: ", OpenToService(file, file == spec.key_file))
                                                      : missing));
}

// Another stamp: the file was replaced or written.
std::string Stamp(const TlsSpec& spec) {
  std::string stamp;
  for (const std::string& file : {spec.certificate_file, spec.key_file, spec.ca_file, spec.refused_file(), spec.revoked_file()}) {
    struct stat about {};
    if (stat(file.c_str(), &about) != 0) {
      if (file != spec.refused_file() && file != spec.revoked_file()) return "";
      absl::StrAppend(&stamp, "- ");
      continue;
    }
    absl::StrAppend(&stamp, about.st_dev, ":", about.st_ino, ":", about.st_size, ":", about.st_mtim.tv_sec, ".", about.st_mtim.tv_nsec,
                    " ");
  }
  return stamp;
}

template <typename T>
absl::StatusOr<T> Named(const std::string& file, absl::StatusOr<T> parsed) {
  if (!parsed.ok()) return absl::InvalidArgumentError(absl::StrCat(file, " ", parsed.status().message()));
  return parsed;
}

// The revoked certificates. The files need not be there; one that cannot be read is an error, as it may name a thief.
absl::Status ReadRefused(const TlsSpec& spec, Authorities* authorities) {
  OsFiles files;
  if (const auto lines = files.Read(spec.refused_file()); lines.ok()) {
    if (absl::Status status = authorities->Refuse(*lines); !status.ok())
      return absl::InvalidArgumentError(absl::StrCat(spec.refused_file(), " ", status.message()));
  } else if (!absl::IsNotFound(lines.status())) {
    return lines.status();
  }
  if (const auto pem = files.Read(spec.revoked_file()); pem.ok()) {
    if (absl::Status status = authorities->AddRevoked(*pem); !status.ok())
      return absl::InvalidArgumentError(absl::StrCat(spec.revoked_file(), " ", status.message()));
  } else if (!absl::IsNotFound(pem.status())) {
    return pem.status();
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const TlsContents>> Read(const TlsSpec& spec) {
  OsFiles files;
  auto contents = std::make_shared<TlsContents>();
  auto pem = files.Read(spec.certificate_file);
  if (!pem.ok()) return CannotRead(pem.status(), spec, spec.certificate_file, kIssue);
  auto certificate = Named(spec.certificate_file, Certificate::Parse(*pem));
  if (!certificate.ok()) return certificate.status();
  const auto key_pem = files.Read(spec.key_file);
  if (!key_pem.ok()) return CannotRead(key_pem.status(), spec, spec.key_file, kIssue);
  auto key = Named(spec.key_file, ParseKey(*key_pem));
  if (!key.ok()) return key.status();
  const auto ca_pem = files.Read(spec.ca_file);
  if (!ca_pem.ok()) return CannotRead(ca_pem.status(), spec, spec.ca_file, kCopyAuthority);
  auto authorities = Named(spec.ca_file, Authorities::Parse(*ca_pem));
  if (!authorities.ok()) return authorities.status();
  if (absl::Status status = ReadRefused(spec, &*authorities); !status.ok()) return status;
  if (!certificate->Fits(key->get()))
    return absl::InvalidArgumentError(absl::StrCat(spec.key_file, " is not the key of ", spec.certificate_file, ": copy both again"));
  contents->pem = *std::move(pem);
  contents->key_pem = *key_pem;
  contents->authorities_pem = *ca_pem;
  contents->certificate = *std::move(certificate);
  contents->key = *std::move(key);
  contents->authorities = *std::move(authorities);
  return contents;
}

}  // namespace

absl::StatusOr<std::shared_ptr<TlsFiles>> TlsFiles::Load(const TlsSpec& spec, Clock realtime_ns) {
  std::shared_ptr<TlsFiles> files(new TlsFiles(spec, std::move(realtime_ns)));
  std::string stamp = Stamp(spec);
  auto contents = Read(spec);
  if (!contents.ok()) return contents.status();
  absl::MutexLock lock(&files->mutex_);
  files->contents_ = *std::move(contents);
  files->stamp_ = std::move(stamp);
  return files;
}

int64_t TlsFiles::now_s() const { return realtime_ns_() / kNanosPerSecond; }

std::shared_ptr<const TlsContents> TlsFiles::Get() {
  absl::MutexLock lock(&mutex_);
  const int64_t now = realtime_ns_();
  // Also a clock that was set back.
  if (now >= looked_ns_ && now - looked_ns_ < kLookInterval) return contents_;
  looked_ns_ = now;
  std::string stamp = Stamp(spec_);
  if (stamp.empty() || stamp == stamp_) return contents_;
  auto contents = Read(spec_);
  if (!contents.ok()) {
    // Between the key's and the certificate's replacement it is so for a moment; it is looked at again.
    LogWarning("new TLS files are not in use yet", {{"reason", std::string(contents.status().message())}});
    return contents_;
  }
  contents_ = *std::move(contents);
  stamp_ = std::move(stamp);
  LogInfo("new TLS files are in use", {{"certificate", spec_.certificate_file}, {"until", DateText(contents_->certificate.not_after_s())}});
  return contents_;
}

std::vector<std::string> CheckTlsFiles(const TlsSpec& spec, const std::string& node, int64_t now_s, const std::string& where,
                                       int64_t operators_gid) {
  std::vector<std::string> wrong;
  const auto add = [&](const std::string& what) { wrong.push_back(absl::StrCat(where, ": ", what)); };
  OsFiles files;
  std::optional<Certificate> certificate;
  KeyPtr key;
  std::optional<Authorities> authorities;
  if (const auto pem = files.Read(spec.certificate_file); !pem.ok()) {
    add(std::string(CannotRead(pem.status(), spec, spec.certificate_file, kIssue).message()));
  } else if (auto parsed = Certificate::Parse(*pem); !parsed.ok()) {
    add(absl::StrCat(spec.certificate_file, " ", parsed.status().message(), "; ", kIssue));
  } else {
    certificate = *std::move(parsed);
  }
  if (const auto pem = files.Read(spec.key_file); !pem.ok()) {
    add(std::string(CannotRead(pem.status(), spec, spec.key_file, kIssue).message()));
  } else if (auto parsed = ParseKey(*pem); !parsed.ok()) {
    add(absl::StrCat(spec.key_file, " ", parsed.status().message(), "; ", kIssue));
  } else {
    key = *std::move(parsed);
  }
  struct stat about {};
  if (key != nullptr && stat(spec.key_file.c_str(), &about) == 0) {
    const bool all = (about.st_mode & 0007) != 0;
    if (all || ((about.st_mode & 0070) != 0 && static_cast<int64_t>(about.st_gid) == operators_gid))
      add(absl::StrCat(spec.key_file, " can be read by ",
                       all ? "every user of this machine" : "all who may command this node; the key lets them impersonate the node", ": ",
                       OpenToService(spec.key_file, true), ", and have a new key issued if others had access"));
  }
  if (const auto pem = files.Read(spec.ca_file); !pem.ok()) {
    add(std::string(CannotRead(pem.status(), spec, spec.ca_file, kCopyAuthority).message()));
  } else if (auto parsed = Authorities::Parse(*pem); !parsed.ok()) {
    add(absl::StrCat(spec.ca_file, " ", parsed.status().message(), "; ", kCopyAuthority));
  } else {
    authorities = *std::move(parsed);
    if (const auto status = ReadRefused(spec, &*authorities); !status.ok()) add(std::string(status.message()));
    if (const auto status = authorities->CheckThemselves(now_s); !status.ok())
      add(absl::StrCat(spec.ca_file, " ", status.message(), "; ", kCopyAuthority));
  }
  if (certificate.has_value() && key != nullptr && !certificate->Fits(key.get()))
    add(absl::StrCat(spec.key_file, " is not the key of ", spec.certificate_file, ": copy both again"));
  if (certificate.has_value() && authorities.has_value())
    for (const Purpose purpose :
         node.empty() ? std::vector<Purpose>{Purpose::kClient} : std::vector<Purpose>{Purpose::kServer, Purpose::kClient})
      if (const auto status = authorities->Check(*certificate, purpose, now_s); !status.ok()) {
        add(absl::StrCat(spec.certificate_file, " ", status.message(), "; ", kIssue));
        break;
      }
  if (certificate.has_value() && !node.empty()) {
    const auto identity = certificate->identity();
    if (!identity.ok())
      add(absl::StrCat(spec.certificate_file, " ", identity.status().message(), "; ", kIssue));
    else if (*identity != Identity{Identity::Kind::kNode, node})
      add(absl::StrCat(spec.certificate_file, " is the certificate of ", Describe(*identity), ", and this is node ", node,
                       ": copy this node's own, or correct `node` in the configuration"));
  }
  return wrong;
}

}  // namespace r2cc::daemon
