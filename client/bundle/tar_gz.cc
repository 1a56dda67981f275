#include "client/bundle/tar_gz.h"

#include <archive.h>
#include <archive_entry.h>

#include <memory>

#include "absl/strings/str_cat.h"

namespace r2cc::client {
namespace {

// The archive's bytes are what a bundle holds, and no more: no last block of a tape's size.
constexpr int kLastBlockBytes = 1;

struct FreeArchive {
  void operator()(archive* writer) const { archive_write_free(writer); }
};
struct FreeEntry {
  void operator()(archive_entry* entry) const { archive_entry_free(entry); }
};
using Writer = std::unique_ptr<archive, FreeArchive>;
using Entry = std::unique_ptr<archive_entry, FreeEntry>;

la_ssize_t Append(archive*, void* packed, const void* bytes, size_t count) {
  static_cast<std::string*>(packed)->append(static_cast<const char*>(bytes), count);
  return static_cast<la_ssize_t>(count);
}

absl::Status WriterError(archive* writer) {
  const char* const why = archive_error_string(writer);
  return absl::InternalError(absl::StrCat("libarchive cannot write the archive: ", why != nullptr ? why : "it does not say why"));
}

absl::Status Add(archive* writer, const std::string& name, const std::string& text, int64_t time_s) {
  const Entry entry(archive_entry_new());
  if (entry == nullptr) return absl::ResourceExhaustedError("libarchive has no memory");
  archive_entry_set_pathname(entry.get(), name.c_str());
  archive_entry_set_filetype(entry.get(), AE_IFREG);
  archive_entry_set_perm(entry.get(), 0600);
  archive_entry_set_uid(entry.get(), 0);
  archive_entry_set_gid(entry.get(), 0);
  archive_entry_set_mtime(entry.get(), time_s, 0);
  archive_entry_set_size(entry.get(), static_cast<la_int64_t>(text.size()));
  if (archive_write_header(writer, entry.get()) != ARCHIVE_OK)
    return absl::InvalidArgumentError(absl::StrCat("'", name, "' is no name for a file of an archive: ", archive_error_string(writer)));
  if (archive_write_data(writer, text.data(), text.size()) != static_cast<la_ssize_t>(text.size())) return WriterError(writer);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> MakeTarGz(const std::string& folder, const std::vector<BundleFile>& files, int64_t time_s) {
  std::string packed;
  const Writer writer(archive_write_new());
  if (writer == nullptr) return absl::ResourceExhaustedError("libarchive has no memory");
  if (archive_write_set_format_ustar(writer.get()) != ARCHIVE_OK || archive_write_add_filter_gzip(writer.get()) != ARCHIVE_OK ||
      // gzip's own header has no time: the same files give the same bytes.
      archive_write_set_filter_option(writer.get(), "gzip", "timestamp", nullptr) != ARCHIVE_OK ||
      archive_write_set_bytes_in_last_block(writer.get(), kLastBlockBytes) != ARCHIVE_OK ||
      archive_write_open(writer.get(), &packed, nullptr, Append, nullptr) != ARCHIVE_OK)
    return WriterError(writer.get());
  for (const BundleFile& file : files) {
    const std::string name = absl::StrCat(folder, "/", file.name);
    if (file.name.empty() || file.name.front() == '/' || file.name.find("..") != std::string::npos)
      return absl::InvalidArgumentError(absl::StrCat("'", name, "' is no name for a file of an archive"));
    if (const absl::Status added = Add(writer.get(), name, file.text, time_s); !added.ok()) return added;
  }
  if (archive_write_close(writer.get()) != ARCHIVE_OK) return WriterError(writer.get());
  return packed;
}

}  // namespace r2cc::client
