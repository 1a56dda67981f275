#include "tools/perf/values.h"

#include <cstring>
#include <string_view>

#include "base/core/hash.h"
#include "tools/perf/pattern.h"
#include "tools/perf/random_values.h"

namespace r2cc::perf {
namespace {

int64_t ElementsOf(int64_t floats, abi::DataType type) { return floats * static_cast<int64_t>(sizeof(float) / BytesOf(type)); }

}  // namespace

void Values::Fill(float* input, float* output, int64_t elements, uint32_t iteration) const {
  if (!options_.check) return;
  if (!options_.random_seed.has_value()) return FillInput(input, elements, rank_, options_.ranks, iteration);
  FillRandom(input, ElementsOf(elements, options_.type), options_.type, *options_.random_seed, rank_);
  // The result of an earlier iteration would be right, so the buffer is filled with no number.
  std::memset(output, 0xff, static_cast<size_t>(elements) * sizeof(float));
}

void Values::Judge(const float* output, int64_t count, uint32_t iteration, Report* report) {
  report->wrong_elements = 0;
  if (!options_.check) return;
  if (!options_.random_seed.has_value()) {
    report->wrong_elements = CountWrong(options_.collective, output, count, rank_, options_.ranks, iteration);
    return;
  }
  report->hash = Fnv1a64({reinterpret_cast<const char*>(output), static_cast<size_t>(count) * sizeof(float)});
  if (report->hash == right_hash_) return;
  report->wrong_elements = CountFar(output, ElementsOf(count, options_.type), options_.type, *options_.random_seed, options_.ranks);
  if (report->wrong_elements == 0) right_hash_ = report->hash;
}

}  // namespace r2cc::perf
