// What reducing costs beside copying: bytes read and written a second by each kernel, and by memcpy() between the same buffers. Sums, which
// cost the most; buffers that no cache holds, taken in pieces as a collective takes them. Medians of some rounds, in turns.
//
//   reduction [MiB of one buffer]
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <span>
#include <vector>

#include "base/core/clock.h"
#include "netplugin/collnet/reduce.h"

namespace r2cc::collnet {
namespace {

constexpr size_t kPieceBytes = 128 << 10;
constexpr int kRounds = 7;
constexpr size_t kSources[] = {2, 4, 8};

struct TypeName {
  abi::DataType type;
  const char* name;
};
constexpr TypeName kTypes[] = {{abi::DataType::kFloat32, "f32"}, {abi::DataType::kFloat16, "f16"}, {abi::DataType::kBfloat16, "bf16"},
                               {abi::DataType::kFloat64, "f64"}, {abi::DataType::kInt32, "i32"},   {abi::DataType::kInt8, "i8"}};

class Bench {
 public:
  explicit Bench(size_t bytes) : bytes_(bytes / kPieceBytes * kPieceBytes), buffers_(1 + kSources[std::size(kSources) - 1]) {
    for (auto& buffer : buffers_) {
      buffer.resize(bytes_);
      for (size_t i = 0; i < bytes_; ++i) buffer[i] = static_cast<std::byte>(i % 61);  // small numbers in all types
    }
  }

  void Run() {
    std::printf("%zu MiB a buffer, pieces of %zu KiB; GB/s read and written\n%-20s", bytes_ >> 20, kPieceBytes >> 10, "");
    for (const size_t sources : kSources) std::printf("  %zu sources (of copying)", sources);
    std::printf("\n");
    for (const InstructionSet set : {InstructionSet::kPortable, InstructionSet::kAvx2, InstructionSet::kAvx512}) {
      if (!Supports(set)) continue;
      for (const auto& [type, name] : kTypes) {
        std::printf("%-10s sum %-6s", InstructionSetName(set), name);
        for (const size_t sources : kSources) {
          std::vector<double> copy, reduce;
          for (int round = 0; round < kRounds; ++round) {
            copy.push_back(Copy());
            reduce.push_back(Reduced(set, type, sources));
          }
          std::printf("  %9.1f (%4.0f %%)     ", Median(reduce), 100 * Median(reduce) / Median(copy));
        }
        std::printf("\n");
      }
    }
  }

 private:
  template <typename Piece>
  double GbPerSecond(size_t buffers, Piece piece) {
    const Nanos since = clock_.Now();
    for (size_t at = 0; at < bytes_; at += kPieceBytes) piece(at);
    return static_cast<double>(buffers * bytes_) / static_cast<double>(clock_.Now() - since);
  }
  double Copy() {
    return GbPerSecond(2, [&](size_t at) { std::memcpy(&buffers_[0][at], &buffers_[1][at], kPieceBytes); });
  }
  double Reduced(InstructionSet set, abi::DataType type, size_t sources) {
    std::vector<const std::byte*> from(sources);
    return GbPerSecond(sources + 1, [&](size_t at) {
      for (size_t s = 0; s < sources; ++s) from[s] = &buffers_[1 + s][at];
      ReduceWith(set, type, abi::RedOp::kSum, from, &buffers_[0][at], kPieceBytes / ElementBytes(type));
    });
  }
  static double Median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
  }

  SteadyClock clock_;
  size_t bytes_;
  std::vector<std::vector<std::byte>> buffers_;
};

}  // namespace
}  // namespace r2cc::collnet

int main(int argc, char** argv) {
  const long mib = argc > 1 ? std::atol(argv[1]) : 64;
  if (argc > 2 || mib < 1 || mib > 4096) {
    std::fprintf(stderr, "usage: reduction [MiB of one buffer, 1 to 4096]\n");
    return 2;
  }
  r2cc::collnet::Bench(static_cast<size_t>(mib) << 20).Run();
  return 0;
}
