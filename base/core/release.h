// Names the release of a program, and the revision of its source.
#ifndef R2CC_BASE_CORE_RELEASE_H_
#define R2CC_BASE_CORE_RELEASE_H_

#include <cstdint>
#include <initializer_list>
#include <string>

namespace r2cc {

// A protocol that a program speaks: every version from `least` to `newest`.
struct Spoken {
  const char* name;
  uint32_t least;
  uint32_t newest;
};

// As messages to other daemons and to the operator have it: "0.1.0".
std::string Release();

// "0.1.0 (revision 1f2e3d4c)". Only packages have the revision: Bazel's output does not depend on the revision, so that it is built
// once. Without one: "0.1.0 (revision unknown: not from a package)".
std::string ReleaseAndRevision();

// "peers 2, wire 4 to 5".
std::string ProtocolText(std::initializer_list<Spoken> protocols);

// The output of --version, without the last newline: "r2ccd 0.1.0 (revision 1f2e3d4c)\nprotocols: peers 2, attach 1".
std::string VersionText(const char* program, std::initializer_list<Spoken> protocols);

}  // namespace r2cc

#endif  // R2CC_BASE_CORE_RELEASE_H_
