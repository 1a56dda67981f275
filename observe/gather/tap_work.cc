#include "observe/gather/tap_work.h"

#include <algorithm>
#include <vector>

namespace r2cc::observe {
namespace {

std::string Shown(std::span<const uint64_t> shape) {
  std::string text = "[";
  for (uint64_t of : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(of);
  return text + "]";
}

struct Loop {
  uint64_t count;
  int64_t stride;
};

}  // namespace

bool MakeTapWork(const Tap& tap, uint64_t data, std::span<const uint64_t> shape, std::span<const int64_t> strides, TapWork* work,
                 std::string* error) {
  const size_t before = tap.rows ? 1 : 0;
  if (shape.size() != tap.shape.size() + before || !std::equal(tap.shape.begin(), tap.shape.end(), shape.begin() + before)) {
    std::string wanted = Shown(tap.shape);
    if (tap.rows) wanted = tap.shape.empty() ? "[rows]" : "[rows, " + wanted.substr(1);
    *error = tap.name + ": its shape is " + Shown(shape) + "; its layout has " + wanted;
    return false;
  }
  if (!strides.empty() && strides.size() != shape.size()) {
    *error = tap.name + ": " + std::to_string(strides.size()) + " strides for " + std::to_string(shape.size()) + " dimensions";
    return false;
  }
  std::vector<int64_t> given(strides.begin(), strides.end());
  if (given.empty()) {
    given.resize(shape.size());
    auto stride = static_cast<int64_t>(BytesOf(tap.dtype));
    for (size_t i = shape.size(); i-- > 0;) {
      given[i] = stride;
      stride *= static_cast<int64_t>(std::max<uint64_t>(shape[i], 1));
    }
  }
  TapWork made;
  made.data = data;
  made.op = tap.op;
  made.dtype = tap.dtype;
  made.rows = tap.rows ? shape[0] : 1;
  made.row_stride = tap.rows ? given[0] : 0;
  made.run_bytes = BytesOf(tap.dtype);
  std::vector<Loop> loops;  // from the innermost
  bool empty = false;
  for (size_t i = shape.size(); i-- > before;) {
    empty = empty || shape[i] == 0;
    if (shape[i] == 1) continue;
    if (loops.empty() && given[i] == static_cast<int64_t>(made.run_bytes))
      made.run_bytes *= shape[i];
    else if (!loops.empty() && given[i] == loops.back().stride * static_cast<int64_t>(loops.back().count))
      loops.back().count *= shape[i];
    else
      loops.push_back({shape[i], given[i]});
  }
  if (empty) {
    loops.clear();
    made.counts[0] = 0;
  }
  if (loops.size() > 3) {
    *error = tap.name + ": its strides take " + std::to_string(loops.size()) + " loops a row, at most 3: make it contiguous";
    return false;
  }
  for (size_t i = 0; i < loops.size(); ++i) {
    made.counts[2 - i] = loops[i].count;
    made.strides[2 - i] = loops[i].stride;
  }
  *work = made;
  return true;
}

}  // namespace r2cc::observe
