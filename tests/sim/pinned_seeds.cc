#include "tests/sim/pinned_seeds.h"

#include <fstream>
#include <iterator>
#include <sstream>
#include <utility>

namespace r2cc::sim {

bool ParsePinnedSeeds(const std::string& text, PinnedSeeds* seeds, std::string* error) {
  std::istringstream lines(text);
  size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    std::istringstream words(line.substr(0, line.find('#')));
    std::string name;
    if (!(words >> name)) continue;
    std::vector<uint64_t> of_name;
    for (std::string word; words >> word;) {
      size_t used = 0;
      uint64_t seed = 0;
      if (word.find_first_not_of("0123456789") == std::string::npos && word.size() < 20) seed = std::stoull(word, &used);
      if (used != word.size()) {
        *error = "line " + std::to_string(number) + ": " + word + " is no seed";
        return false;
      }
      of_name.push_back(seed);
    }
    if (of_name.empty() || of_name.size() > kPinnedSeedsMax) {
      *error = "line " + std::to_string(number) + ": " + name + " has " + std::to_string(of_name.size()) + " seeds";
      return false;
    }
    if (!seeds->emplace(std::move(name), std::move(of_name)).second) {
      *error = "line " + std::to_string(number) + ": a second line of the same name";
      return false;
    }
  }
  return true;
}

std::string PinnedSeedsText(const PinnedSeeds& seeds, const std::string& comment) {
  std::string text = "# " + comment + "\n";
  for (const auto& [name, of_name] : seeds) {
    text += name;
    for (const uint64_t seed : of_name) text += " " + std::to_string(seed);
    text += "\n";
  }
  return text;
}

bool ReadPinnedSeeds(const std::string& path, PinnedSeeds* seeds, std::string* error) {
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file.is_open() || file.bad()) {
    *error = "cannot read " + path;
    return false;
  }
  if (ParsePinnedSeeds(text, seeds, error)) return true;
  *error = path + ": " + *error;
  return false;
}

bool WritePinnedSeeds(const std::string& path, const PinnedSeeds& seeds, const std::string& comment, std::string* error) {
  std::ofstream file(path, std::ios::trunc);
  file << PinnedSeedsText(seeds, comment);
  file.close();
  if (!file.fail()) return true;
  *error = "cannot write " + path;
  return false;
}

}  // namespace r2cc::sim
