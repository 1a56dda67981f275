// Every kernel of every instruction set against a reference that is written for being read: one element at a time, and numbers taken apart
// by ldexp() and put together by nearbyint().
#include "netplugin/collnet/reduce.h"

#include <gtest/gtest.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

namespace r2cc::collnet {
namespace {

using abi::DataType;
using abi::RedOp;

constexpr DataType kTypes[] = {DataType::kInt8,   DataType::kUint8,   DataType::kInt32,   DataType::kUint32,  DataType::kInt64,
                               DataType::kUint64, DataType::kFloat16, DataType::kFloat32, DataType::kFloat64, DataType::kBfloat16};
constexpr RedOp kOps[] = {RedOp::kSum, RedOp::kProd, RedOp::kMax, RedOp::kMin};

std::vector<InstructionSet> Sets() {
  std::vector<InstructionSet> sets;
  for (const InstructionSet set : {InstructionSet::kPortable, InstructionSet::kAvx2, InstructionSet::kAvx512})
    if (Supports(set)) sets.push_back(set);
  return sets;
}

using Bytes = std::vector<std::byte>;

// ---- the reference ----

// A float of so many bits.
struct Format {
  int fraction_bits;
  int exponent_bits;

  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  int bits() const { return 1 + exponent_bits + fraction_bits; }
  uint64_t nan() const { return ((uint64_t{1} << (exponent_bits + 1)) - 1) << (fraction_bits - 1); }

  double Decode(uint64_t bits) const {
    const uint64_t fraction = bits & ((uint64_t{1} << fraction_bits) - 1);
    const int exponent = static_cast<int>(bits >> fraction_bits & ((1 << exponent_bits) - 1));
    const double sign = bits >> (this->bits() - 1) != 0 ? -1 : 1;
    if (exponent == (1 << exponent_bits) - 1) return fraction != 0 ? std::nan("") : sign * INFINITY;
    if (exponent == 0) return sign * std::ldexp(static_cast<double>(fraction), 1 - bias() - fraction_bits);
    return sign * std::ldexp(1 + std::ldexp(static_cast<double>(fraction), -fraction_bits), exponent - bias());
  }
  // To nearest, of two that are as near to the even one.
  uint64_t Encode(double value) const {
    if (std::isnan(value)) return nan();
    const uint64_t sign = uint64_t{std::signbit(value)} << (bits() - 1);
    const uint64_t infinity = ((uint64_t{1} << exponent_bits) - 1) << fraction_bits;
    if (std::isinf(value)) return sign | infinity;
    if (value == 0) return sign;
    int exponent = 0;
    std::frexp(std::fabs(value), &exponent);
    exponent = std::max(exponent - 1, 1 - bias());  // of the unit; denormal numbers share the smallest one
    const double units = std::nearbyint(std::ldexp(std::fabs(value), fraction_bits - exponent));
    // What rounds up to the next power of two has carried into the exponent by itself, up to infinity.
    const uint64_t packed = (static_cast<uint64_t>(exponent + bias() - 1) << fraction_bits) + static_cast<uint64_t>(units);
    return sign | std::min(packed, infinity);
  }
};
constexpr Format kHalf{10, 5}, kBrain{7, 8}, kSingle{23, 8};

bool Below(double a, double b) { return a < b || (a == b && std::signbit(a) && !std::signbit(b)); }

double Extreme(RedOp op, double a, double b) {
  if (std::isnan(a)) return b;
  if (std::isnan(b)) return a;
  return (op == RedOp::kMin ? Below(b, a) : Below(a, b)) ? b : a;
}

template <typename T>
T Of(const Bytes& bytes, size_t i) {
  T value;
  std::memcpy(&value, &bytes[i * sizeof(T)], sizeof(T));
  return value;
}

template <typename T>
T ReduceIntegers(RedOp op, const std::vector<Bytes>& sources, size_t i) {
  using Unsigned = std::make_unsigned_t<T>;
  T value = Of<T>(sources[0], i);
  for (size_t s = 1; s < sources.size(); ++s) {
    const T next = Of<T>(sources[s], i);
    switch (op) {
      case RedOp::kSum: value = static_cast<T>(static_cast<uint64_t>(static_cast<Unsigned>(value)) + static_cast<Unsigned>(next)); break;
      case RedOp::kProd: value = static_cast<T>(static_cast<uint64_t>(static_cast<Unsigned>(value)) * static_cast<Unsigned>(next)); break;
      case RedOp::kMax: value = next > value ? next : value; break;
      default: value = next < value ? next : value; break;
    }
  }
  return value;
}

// Wide: that of the accumulation. Its own additions round as they should.
template <typename Wide>
double ReduceFloats(RedOp op, const std::vector<double>& values) {
  volatile Wide value = static_cast<Wide>(values[0]);
  for (size_t s = 1; s < values.size(); ++s) {
    const auto next = static_cast<Wide>(values[s]);
    if (op == RedOp::kSum) value = value + next;
    if (op == RedOp::kProd) value = value * next;
    if (op == RedOp::kMax || op == RedOp::kMin) value = static_cast<Wide>(Extreme(op, value, next));
  }
  return value;
}

template <typename Bits>
void ReduceFormat(const Format& format, RedOp op, const std::vector<Bytes>& sources, size_t count, Bytes* out) {
  for (size_t i = 0; i < count; ++i) {
    std::vector<double> values;
    for (const Bytes& source : sources) values.push_back(format.Decode(Of<Bits>(source, i)));
    const auto bits = static_cast<Bits>(format.Encode(ReduceFloats<float>(op, values)));
    std::memcpy(&(*out)[i * sizeof(Bits)], &bits, sizeof(Bits));
  }
}

Bytes Reference(DataType type, RedOp op, const std::vector<Bytes>& sources, size_t count) {
  Bytes out(count * ElementBytes(type));
  const auto integers = [&]<typename T>(T) {
    for (size_t i = 0; i < count; ++i) {
      const T value = ReduceIntegers<T>(op, sources, i);
      std::memcpy(&out[i * sizeof(T)], &value, sizeof(T));
    }
  };
  switch (type) {
    case DataType::kInt8: integers(int8_t{}); break;
    case DataType::kUint8: integers(uint8_t{}); break;
    case DataType::kInt32: integers(int32_t{}); break;
    case DataType::kUint32: integers(uint32_t{}); break;
    case DataType::kInt64: integers(int64_t{}); break;
    case DataType::kUint64: integers(uint64_t{}); break;
    case DataType::kFloat16: ReduceFormat<uint16_t>(kHalf, op, sources, count, &out); break;
    case DataType::kBfloat16: ReduceFormat<uint16_t>(kBrain, op, sources, count, &out); break;
    case DataType::kFloat32: ReduceFormat<uint32_t>(kSingle, op, sources, count, &out); break;
    default:
      for (size_t i = 0; i < count; ++i) {
        std::vector<double> values;
        for (const Bytes& source : sources) values.push_back(Of<double>(source, i));
        double value = ReduceFloats<double>(op, values);
        if (std::isnan(value)) value = std::bit_cast<double>(uint64_t{0x7ff8000000000000});
        std::memcpy(&out[i * sizeof(double)], &value, sizeof(double));
      }
  }
  return out;
}

// ---- inputs ----

// Any bits at all; every fourth element one of those at which mistakes are made, whatever the type.
Bytes RandomBytes(DataType type, size_t count, std::mt19937_64* random) {
  Bytes bytes(count * ElementBytes(type));
  for (std::byte& byte : bytes) byte = static_cast<std::byte>((*random)());
  const auto plant = [&]<typename Bits>(std::vector<Bits> special) {
    for (size_t i = 0; i < count; ++i) {
      if ((*random)() % 4 != 0) continue;
      const Bits sign = static_cast<Bits>(Bits((*random)() % 2) << (8 * sizeof(Bits) - 1));
      const Bits bits = static_cast<Bits>(special[(*random)() % special.size()] | sign);
      std::memcpy(&bytes[i * sizeof(Bits)], &bits, sizeof(Bits));
    }
  };
  // Zero, the ends of the denormal numbers, the smallest normal one, 1 and what is next to it, the largest, infinity, NaN, one that
  // signals.
  switch (ElementBytes(type)) {
    case 1: plant(std::vector<uint8_t>{0, 1, 0x7f}); break;
    case 2:
      if (type == DataType::kFloat16)
        plant(std::vector<uint16_t>{0, 1, 0x3ff, 0x400, 0x3c00, 0x3c01, 0x7bff, 0x7c00, 0x7e00, 0x7c01, 0x7fff});
      else
        plant(std::vector<uint16_t>{0, 1, 0x7f, 0x80, 0x3f80, 0x3f81, 0x7f7f, 0x7f80, 0x7fc0, 0x7f81, 0x7fff});
      break;
    case 4:
      plant(std::vector<uint32_t>{0, 1, 0x7fffff, 0x800000, 0x3f800000, 0x3f800001, 0x7f7fffff, 0x7f800000, 0x7fc00000, 0x7f800001,
                                  0x7fffffff});
      break;
    default:
      plant(std::vector<uint64_t>{0, 1, 0xfffffffffffff, 0x10000000000000, 0x3ff0000000000000, 0x3ff0000000000001, 0x7fefffffffffffff,
                                  0x7ff0000000000000, 0x7ff8000000000000, 0x7ff0000000000001, 0x7fffffffffffffff});
  }
  return bytes;
}

// The sources and the result at any alignment, with room around the result that must stay as it is.
Bytes RunAt(InstructionSet set, DataType type, RedOp op, const std::vector<Bytes>& sources, size_t count, std::mt19937_64* random) {
  constexpr size_t kRoom = 64;
  constexpr std::byte kUntouched{0xa5};
  std::vector<Bytes> shifted;
  std::vector<const std::byte*> pointers;
  for (const Bytes& source : sources) {
    const size_t shift = (*random)() % kRoom;
    shifted.emplace_back(shift + source.size() + 1);
    std::copy(source.begin(), source.end(), shifted.back().begin() + shift);
    pointers.push_back(shifted.back().data() + shift);
  }
  const size_t bytes = count * ElementBytes(type), shift = (*random)() % kRoom;
  Bytes out(kRoom + shift + bytes + kRoom, kUntouched);
  ReduceWith(set, type, op, pointers, out.data() + kRoom + shift, count);
  Bytes around = out;
  std::memset(around.data() + kRoom + shift, static_cast<int>(kUntouched), bytes);
  EXPECT_EQ(around, Bytes(out.size(), kUntouched)) << "written beside the result of " << bytes << " bytes";
  return Bytes(out.begin() + kRoom + shift, out.begin() + kRoom + shift + bytes);
}

std::string Named(InstructionSet set, DataType type, RedOp op) {
  return std::string(InstructionSetName(set)) + " type " + std::to_string(static_cast<int>(type)) + " op " +
         std::to_string(static_cast<int>(op));
}

size_t FirstDifference(const Bytes& a, const Bytes& b, size_t element_bytes) {
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i] != b[i]) return i / element_bytes;
  return a.size();
}

// ---- the tests ----

TEST(ReduceTest, EveryKernelGivesTheReferencesBits) {
  std::mt19937_64 random(1);
  for (const DataType type : kTypes) {
    for (const RedOp op : kOps) {
      for (const size_t sources_count : {1, 2, 3, 8}) {
        std::vector<Bytes> sources;
        constexpr size_t kCount = 4099;
        for (size_t s = 0; s < sources_count; ++s) sources.push_back(RandomBytes(type, kCount, &random));
        const Bytes want = Reference(type, op, sources, kCount);
        for (const InstructionSet set : Sets()) {
          const Bytes got = RunAt(set, type, op, sources, kCount, &random);
          ASSERT_EQ(FirstDifference(got, want, ElementBytes(type)), want.size())
              << Named(set, type, op) << ", " << sources_count << " sources";
        }
      }
    }
  }
}

// Every length up to some vectors of the widest kind: no element is left out, none too many is written.
TEST(ReduceTest, EveryLength) {
  std::mt19937_64 random(2);
  for (const DataType type : kTypes) {
    for (const RedOp op : {RedOp::kSum, RedOp::kMin}) {
      for (size_t count = 0; count * ElementBytes(type) <= 5 * 64 + 8; ++count) {
        const std::vector<Bytes> sources = {RandomBytes(type, count, &random), RandomBytes(type, count, &random)};
        const Bytes want = Reference(type, op, sources, count);
        for (const InstructionSet set : Sets())
          ASSERT_EQ(RunAt(set, type, op, sources, count, &random), want) << Named(set, type, op) << ", " << count << " elements";
      }
    }
  }
}

TEST(ReduceTest, EveryHalfIsReadAndWritten) {
  for (const DataType type : {DataType::kFloat16, DataType::kBfloat16}) {
    const Format& format = type == DataType::kFloat16 ? kHalf : kBrain;
    Bytes all(2 * 65536), want(all.size());
    for (uint32_t i = 0; i < 65536; ++i) {
      const auto bits = static_cast<uint16_t>(i);
      const auto result = static_cast<uint16_t>(std::isnan(format.Decode(bits)) ? format.nan() : bits);
      std::memcpy(&all[2 * i], &bits, 2);
      std::memcpy(&want[2 * i], &result, 2);
    }
    for (const InstructionSet set : Sets()) {
      for (const RedOp op : kOps) {
        Bytes got(all.size());
        const std::byte* const source = all.data();
        ReduceWith(set, type, op, {&source, 1}, got.data(), 65536);
        ASSERT_EQ(FirstDifference(got, want, 2), want.size()) << Named(set, type, op);
      }
    }
  }
}

// 2048 + 1 + 1 in f16: rounded each time it stays 2048; accumulated in f32 and rounded once it is 2050. 1 + 2^-11 lies half way between
// two numbers and goes to the even one; what is smaller than half of the last digit counts when there is enough of it.
TEST(ReduceTest, SmallFloatsAreRoundedOnce) {
  const auto sum = [](DataType type, const Format& format, const std::vector<double>& values) {
    std::vector<uint16_t> bits;
    std::vector<const std::byte*> sources;
    for (const double value : values) bits.push_back(static_cast<uint16_t>(format.Encode(value)));
    for (const uint16_t& one : bits) sources.push_back(reinterpret_cast<const std::byte*>(&one));
    double result = 0;
    for (const InstructionSet set : Sets()) {
      uint16_t out = 0;
      ReduceWith(set, type, RedOp::kSum, sources, reinterpret_cast<std::byte*>(&out), 1);
      result = format.Decode(out);
    }
    return result;
  };
  EXPECT_EQ(sum(DataType::kFloat16, kHalf, {2048, 1, 1}), 2050);
  EXPECT_EQ(sum(DataType::kFloat16, kHalf, {1, 0x1p-11}), 1);
  EXPECT_EQ(sum(DataType::kFloat16, kHalf, {1 + 0x1p-10, 0x1p-11}), 1 + 0x1p-9);
  EXPECT_EQ(sum(DataType::kFloat16, kHalf, {65504, 15}), 65504);
  EXPECT_EQ(sum(DataType::kFloat16, kHalf, {65504, 16}), INFINITY);
  EXPECT_EQ(sum(DataType::kFloat16, kHalf, {65504, 65504, -65504}), 65504);  // no infinity in between
  EXPECT_EQ(sum(DataType::kBfloat16, kBrain, {256, 1, 1}), 258);
  EXPECT_EQ(sum(DataType::kBfloat16, kBrain, {1, 0x1p-8}), 1);
}

// The order of the sources decides what is rounded away, so it must be kept.
TEST(ReduceTest, TheOrderIsThatOfTheSources) {
  const float values[] = {0x1p24f, 1, -0x1p24f};
  const auto sum = [&](InstructionSet set, int a, int b, int c) {
    const std::byte* sources[] = {reinterpret_cast<const std::byte*>(&values[a]), reinterpret_cast<const std::byte*>(&values[b]),
                                  reinterpret_cast<const std::byte*>(&values[c])};
    float out = -1;
    ReduceWith(set, DataType::kFloat32, RedOp::kSum, sources, reinterpret_cast<std::byte*>(&out), 1);
    return out;
  };
  for (const InstructionSet set : Sets()) {
    EXPECT_EQ(sum(set, 0, 1, 2), 0);
    EXPECT_EQ(sum(set, 0, 2, 1), 1);
  }
}

TEST(ReduceTest, TheResultMayTakeThePlaceOfASource) {
  std::mt19937_64 random(3);
  for (const InstructionSet set : Sets()) {
    for (const DataType type : kTypes) {
      for (const size_t place : {0, 1, 2}) {
        std::vector<Bytes> sources;
        for (int s = 0; s < 3; ++s) sources.push_back(RandomBytes(type, 777, &random));
        const Bytes want = Reference(type, RedOp::kSum, sources, 777);
        const std::byte* pointers[] = {sources[0].data(), sources[1].data(), sources[2].data()};
        ReduceWith(set, type, RedOp::kSum, pointers, sources[place].data(), 777);
        EXPECT_EQ(sources[place], want) << Named(set, type, RedOp::kSum) << " in the place of source " << place;
      }
    }
  }
}

#if defined(__x86_64__)
// A framework may have told its threads to flush denormal numbers to zero, or a program to round down.
TEST(ReduceTest, TheThreadsRoundingIsOfNoMatterAndIsKept) {
  constexpr unsigned kFlushAndRoundDown = 0x1f80 | 0x8000 | 0x0040 | 0x2000;
  std::mt19937_64 random(4);
  for (const DataType type : {DataType::kFloat16, DataType::kBfloat16, DataType::kFloat32, DataType::kFloat64}) {
    for (const RedOp op : kOps) {
      const std::vector<Bytes> sources = {RandomBytes(type, 999, &random), RandomBytes(type, 999, &random)};
      const Bytes want = Reference(type, op, sources, 999);
      for (const InstructionSet set : Sets()) {
        Bytes got(want.size());
        const std::byte* pointers[] = {sources[0].data(), sources[1].data()};
        const unsigned before = _mm_getcsr();
        _mm_setcsr(kFlushAndRoundDown);
        ReduceWith(set, type, op, pointers, got.data(), 999);
        const unsigned after = _mm_getcsr();
        _mm_setcsr(before);
        EXPECT_EQ(after, kFlushAndRoundDown);
        ASSERT_EQ(FirstDifference(got, want, ElementBytes(type)), want.size()) << Named(set, type, op);
      }
    }
  }
}
#endif

TEST(ReduceTest, RefusesOtherTypesAndOperators) {
  for (const DataType type : kTypes)
    for (const RedOp op : kOps) EXPECT_TRUE(CanReduce(type, op));
  EXPECT_FALSE(CanReduce(DataType::kFloat32, RedOp::kAvg));
  EXPECT_FALSE(CanReduce(DataType::kFloat8e4m3, RedOp::kSum));
  EXPECT_FALSE(CanReduce(DataType::kFloat8e5m2, RedOp::kSum));
  EXPECT_FALSE(CanReduce(static_cast<DataType>(-1), RedOp::kSum));
  EXPECT_FALSE(CanReduce(DataType::kFloat32, static_cast<RedOp>(-1)));
  EXPECT_EQ(ElementBytes(static_cast<DataType>(99)), 0u);
  float value = 0;
  const std::byte* const source = reinterpret_cast<const std::byte*>(&value);
  EXPECT_DEATH(Reduce(DataType::kFloat32, RedOp::kAvg, {&source, 1}, reinterpret_cast<std::byte*>(&value), 1), "CanReduce");
}

// The job's processor decides; the others are for processors that lack them.
TEST(ReduceTest, TheBestThatTheProcessorHas) {
  EXPECT_TRUE(Supports(InstructionSet::kPortable));
  EXPECT_TRUE(Supports(BestInstructionSet()));
  EXPECT_EQ(BestInstructionSet(), Sets().back());
}

}  // namespace
}  // namespace r2cc::collnet
