#include "client/bundle/tar_gz.h"

#include <zlib.h>

#include <cstdio>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace r2cc::client {
namespace {

constexpr size_t kBlockBytes = 512;
constexpr int kGzip = 16;  // zlib's flag beside the window's bits
constexpr int kMemoryLevel = 8;

// POSIX.1-1988, where numbers are octal text.
struct Header {
  char name[100];
  char mode[8];
  char uid[8];
  char gid[8];
  char size[12];
  char mtime[12];
  char checksum[8];
  char type;
  char link[100];
  char magic[6];
  char version[2];
  char user[32];
  char group[32];
  char major[8];
  char minor[8];
  char prefix[155];
  char padding[12];
};
static_assert(sizeof(Header) == kBlockBytes);

std::string HeaderOf(const std::string& name, size_t bytes, int64_t time_s) {
  Header header{};
  std::memcpy(header.name, name.data(), name.size());
  std::snprintf(header.mode, sizeof(header.mode), "%07o", 0600);
  std::snprintf(header.uid, sizeof(header.uid), "%07o", 0);
  std::snprintf(header.gid, sizeof(header.gid), "%07o", 0);
  std::snprintf(header.size, sizeof(header.size), "%011zo", bytes);
  std::snprintf(header.mtime, sizeof(header.mtime), "%011llo", static_cast<unsigned long long>(time_s));
  header.type = '0';
  std::memcpy(header.magic, "ustar", 6);
  std::memcpy(header.version, "00", 2);
  // Counted as if it were blanks.
  std::memset(header.checksum, ' ', sizeof(header.checksum));
  unsigned sum = 0;
  for (size_t i = 0; i < sizeof(header); ++i) sum += reinterpret_cast<const unsigned char*>(&header)[i];
  std::snprintf(header.checksum, sizeof(header.checksum), "%06o", sum);
  return {reinterpret_cast<const char*>(&header), sizeof(header)};
}

absl::StatusOr<std::string> Gzip(const std::string& text) {
  z_stream stream{};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + kGzip, kMemoryLevel, Z_DEFAULT_STRATEGY) != Z_OK)
    return absl::ResourceExhaustedError("zlib has no memory");
  std::string packed(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const int result = deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  if (result != Z_STREAM_END) return absl::InternalError("zlib cannot compress it");
  return packed;
}

}  // namespace

absl::StatusOr<std::string> MakeTarGz(const std::string& folder, const std::vector<BundleFile>& files, int64_t time_s) {
  std::string tar;
  for (const BundleFile& file : files) {
    const std::string name = absl::StrCat(folder, "/", file.name);
    if (name.size() >= sizeof(Header::name) || file.name.empty() || file.name.front() == '/' || file.name.find("..") != std::string::npos)
      return absl::InvalidArgumentError(absl::StrCat("'", name, "' is no name for a file of an archive"));
    tar += HeaderOf(name, file.text.size(), time_s);
    tar += file.text;
    tar.append((kBlockBytes - file.text.size() % kBlockBytes) % kBlockBytes, '\0');
  }
  tar.append(2 * kBlockBytes, '\0');
  return Gzip(tar);
}

}  // namespace r2cc::client
