#include "base/core/release.h"

#include <cstddef>

#include "base/core/version_range.h"

namespace r2cc {
namespace {

// The maker of a package overwrites these (deploy/debian/elf_stamp.py): fixed places, so that nothing else of the file changes.
struct Stamp {
  char release[32];
  char revision[64];
};

// In a section of its own, by whose name it is found. Volatile: the compiler must not believe that it knows the content.
[[gnu::section(".r2cc_release"), gnu::used]] const volatile Stamp stamp = {R2CC_RELEASE, ""};

std::string Text(const volatile char* begin, size_t bytes) {
  std::string text;
  for (size_t i = 0; i < bytes && begin[i] != '\0'; ++i) text += begin[i];
  return text;
}

}  // namespace

std::string Release() { return Text(stamp.release, sizeof(stamp.release)); }

std::string ReleaseAndRevision() {
  const std::string revision = Text(stamp.revision, sizeof(stamp.revision));
  return Release() + " (revision " + (revision.empty() ? "unknown: not from a package" : revision) + ")";
}

std::string ProtocolText(std::initializer_list<Spoken> protocols) {
  std::string text;
  for (const Spoken& spoken : protocols)
    text += std::string(text.empty() ? "" : ", ") + spoken.name + " " + VersionRange(spoken.least, spoken.newest);
  return text;
}

std::string VersionText(const char* program, std::initializer_list<Spoken> protocols) {
  return std::string(program) + " " + ReleaseAndRevision() + "\nprotocols: " + ProtocolText(protocols);
}

}  // namespace r2cc
