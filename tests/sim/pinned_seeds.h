// Reads and writes the checked-in file of the seeds at which each mutant is caught, so that a test need not search for them.
#ifndef R2CC_TESTS_SIM_PINNED_SEEDS_H_
#define R2CC_TESTS_SIM_PINNED_SEEDS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace r2cc::sim {

// At most this many seeds of a mutant are kept: one that still catches it is enough, and a change of the code may cost the others.
inline constexpr size_t kPinnedSeedsMax = 3;

// By the mutant's name.
using PinnedSeeds = std::map<std::string, std::vector<uint64_t>>;

// Parses lines of `NAME SEED [SEED]...`; `#` starts a comment. Returns false, with `error` set, at the first line that is none, that has
// too many seeds, or that repeats a name.
bool ParsePinnedSeeds(const std::string& text, PinnedSeeds* seeds, std::string* error);
// The file's content; ParsePinnedSeeds() reads it back. `comment` has no line break.
std::string PinnedSeedsText(const PinnedSeeds& seeds, const std::string& comment);

// The same with a file. Both return false, with `error` set, if it cannot be read or written whole.
bool ReadPinnedSeeds(const std::string& path, PinnedSeeds* seeds, std::string* error);
bool WritePinnedSeeds(const std::string& path, const PinnedSeeds& seeds, const std::string& comment, std::string* error);

}  // namespace r2cc::sim

#endif  // R2CC_TESTS_SIM_PINNED_SEEDS_H_
