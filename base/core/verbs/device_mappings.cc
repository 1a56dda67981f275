#include "base/core/verbs/device_mappings.h"

#include <sys/mman.h>

#include <charconv>
#include <fstream>
#include <string>

namespace r2cc::verbs {
namespace {

// "7f0010000000-7f0010001000 rw-s 00000000 00:06 123   /dev/infiniband/uverbs0"
bool Read(std::string_view line, std::string_view files, Mapping* mapping) {
  const size_t path = line.find('/');
  if (path == std::string_view::npos || !line.substr(path).starts_with(files)) return false;
  const char* const end = line.data() + line.size();
  const auto begin = std::from_chars(line.data(), end, mapping->begin, 16);
  if (begin.ec != std::errc() || begin.ptr == end || *begin.ptr != '-') return false;
  return std::from_chars(begin.ptr + 1, end, mapping->end, 16).ec == std::errc() && mapping->begin < mapping->end;
}

}  // namespace

std::vector<Mapping> MappingsOf(std::string_view files, std::istream& maps) {
  std::vector<Mapping> found;
  Mapping mapping;
  for (std::string line; std::getline(maps, line);)
    if (Read(line, files, &mapping)) found.push_back(mapping);
  return found;
}

void DeviceMappings::KeepFromChildren() {
  std::ifstream maps("/proc/self/maps");
  // A kernel that refuses leaves things as they are without it.
  for (const Mapping& mapping : MappingsOf(files_, maps))
    madvise(reinterpret_cast<void*>(mapping.begin), mapping.end - mapping.begin, MADV_DONTFORK);
}

}  // namespace r2cc::verbs
