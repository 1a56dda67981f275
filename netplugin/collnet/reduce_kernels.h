// Implements the kernels for the instruction set of the including file. That file defines
//   R2CC_VECTOR_BYTES                 of one vector
//   R2CC_HALVES_BY_HARDWARE           1: f16 is converted by F16C or AVX-512
// and, if the set needs one, has a target pragma in force.
//
// Everything here has internal linkage, and no other header with code in it is included: the linker keeps one copy of a function for all
// files, and that must not be one compiled with AVX-512.
#ifndef R2CC_NETPLUGIN_COLLNET_REDUCE_KERNELS_H_
#define R2CC_NETPLUGIN_COLLNET_REDUCE_KERNELS_H_

#include <cstddef>
#include <cstdint>

#if R2CC_HALVES_BY_HARDWARE
#include <immintrin.h>
#endif

#include "netplugin/collnet/reduce_table.h"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);

namespace r2cc::collnet {
namespace {

#define R2CC_INLINE static inline __attribute__((always_inline))

constexpr size_t kVectorBytes = R2CC_VECTOR_BYTES;
constexpr size_t kFloats = kVectorBytes / 4;

template <typename T>
struct VectorOf {
  typedef T Type __attribute__((vector_size(kVectorBytes)));
};
template <typename T>
using Vector = typename VectorOf<T>::Type;
typedef uint16_t Halves __attribute__((vector_size(kFloats * 2)));  // as many as a vector has floats
typedef int16_t SignedHalves __attribute__((vector_size(kFloats * 2)));

template <typename V>
R2CC_INLINE V LoadAs(const std::byte* from) {
  V v;
  __builtin_memcpy(&v, from, sizeof(v));
  return v;
}
template <typename V>
R2CC_INLINE void StoreAs(std::byte* to, V v) {
  __builtin_memcpy(to, &v, sizeof(v));
}
// For each element: `a` if its mask is set, otherwise `b`.
template <typename Mask, typename V>
R2CC_INLINE V Select(Mask mask, V a, V b) {
  return (V)(((Mask)a & mask) | ((Mask)b & ~mask));
}

// The memory layout of floats, and the integers of their width.
template <typename B, typename S, B kInfinityBits>
struct FloatBits {
  using Bits = B;
  using Signed = S;
  static constexpr B kInfinity = kInfinityBits;
  static constexpr B kSign = static_cast<B>(B{1} << (8 * sizeof(B) - 1));
  static constexpr B kNan = static_cast<B>(kInfinityBits | ((kInfinityBits & (~kInfinityBits + 1)) >> 1));  // the fraction's first bit
};
using Float16 = FloatBits<uint16_t, int16_t, 0x7c00>;
using Bfloat16 = FloatBits<uint16_t, int16_t, 0x7f80>;
using Float32 = FloatBits<uint32_t, int32_t, 0x7f800000>;
using Float64 = FloatBits<uint64_t, int64_t, 0x7ff0000000000000>;

// A mask. Without the sign bit, numbers compare the same as signed and as unsigned; before AVX-512 only signed ones are compared in one
// instruction.
template <typename Format, typename S = Vector<typename Format::Signed>, typename U>
R2CC_INLINE U IsNan(U bits) {
  return (U)((S)(bits & static_cast<typename Format::Bits>(~Format::kSign)) > static_cast<typename Format::Signed>(Format::kInfinity));
}

// ---- f16 to f32 and back, f32 to bf16 ----

using Signed = Vector<int32_t>;

#if R2CC_HALVES_BY_HARDWARE && R2CC_VECTOR_BYTES == 64
constexpr __mmask16 kAll = 0xffff;  // the forms without a mask make gcc 12 warn of its own headers
#endif

R2CC_INLINE Vector<float> Widen(Halves h) {
#if R2CC_HALVES_BY_HARDWARE && R2CC_VECTOR_BYTES == 64
  return (Vector<float>)_mm512_maskz_cvtph_ps(kAll, (__m256i)h);
#elif R2CC_HALVES_BY_HARDWARE
  return (Vector<float>)_mm256_cvtph_ps((__m128i)h);
#else
  using U = Vector<uint32_t>;
  const U bits = __builtin_convertvector(h, U);
  const U magnitude = (bits & 0x7fff) << 13;
  // The exponent's bias is 112 more; multiplying also turns a denormal number into a normal one.
  const U scaled = (U)((Vector<float>)magnitude * 0x1p112f);
  return (Vector<float>)(Select((U)((Signed)magnitude >= (0x7c00 << 13)), magnitude | Float32::kInfinity, scaled) |
                         ((bits & 0x8000) << 16));
#endif
}

R2CC_INLINE Halves Narrow(Vector<float> f) {
#if R2CC_HALVES_BY_HARDWARE
#if R2CC_VECTOR_BYTES == 64
  const Halves h = (Halves)_mm512_maskz_cvtps_ph(kAll, (__m512)f, _MM_FROUND_TO_NEAREST_INT);
#else
  const Halves h = (Halves)_mm256_cvtps_ph((__m256)f, _MM_FROUND_TO_NEAREST_INT);
#endif
  return Select(IsNan<Float16, SignedHalves>(h), Halves{} + Float16::kNan, h);
#else
  using U = Vector<uint32_t>;
  const U bits = (U)f;
  const U magnitude = bits & 0x7fffffff;
  // 13 bits less: to nearest, and halfway to the even one.
  const U normal = (magnitude - (112u << 23) + 0xfff + ((magnitude >> 13) & 1)) >> 13;
  // Below 2^-14 an f16 counts in 2^-24, as floats do at one half.
  const U small = (U)((Vector<float>)magnitude + 0.5f) - 0x3f000000;
  U h = Select((U)((Signed)magnitude < 0x38800000), small, normal);
  h = Select((U)((Signed)magnitude >= 0x47800000), U{} + Float16::kInfinity, h);  // 65536 and more
  h |= (bits >> 16) & 0x8000;
  h = Select(IsNan<Float32>(bits), U{} + Float16::kNan, h);
  return __builtin_convertvector(h, Halves);
#endif
}

// The upper half of a float; it is a bf16 if the lower sixteen bits are zero.
R2CC_INLINE Vector<uint32_t> RoundToUpperHalf(Vector<float> f) {
  using U = Vector<uint32_t>;
  const U bits = (U)f;
  const U rounded = (bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff0000;
  return Select(IsNan<Float32>(bits), U{} + (uint32_t{Bfloat16::kNan} << 16), rounded);
}

// ---- the operations on the elements of one vector ----
// kBytes: of memory for one vector. Load() takes them, Join() adds one more source, Store() writes the result.

struct Add {
  template <typename V>
  R2CC_INLINE V Of(V a, V b) {
    return a + b;
  }
};
struct Multiply {
  template <typename V>
  R2CC_INLINE V Of(V a, V b) {
    return a * b;
  }
};
struct Least {
  template <typename V>
  R2CC_INLINE V Of(V a, V b) {
    return a < b ? a : b;
  }
};
struct Greatest {
  template <typename V>
  R2CC_INLINE V Of(V a, V b) {
    return a > b ? a : b;
  }
};

template <typename T, typename Op>
struct Integers {
  static constexpr size_t kElementBytes = sizeof(T), kBytes = kVectorBytes;
  using Value = Vector<T>;
  R2CC_INLINE Value Load(const std::byte* from) { return LoadAs<Value>(from); }
  R2CC_INLINE Value Join(Value a, Value b) { return Op::Of(a, b); }
  R2CC_INLINE void Store(std::byte* to, Value v) { StoreAs(to, v); }
};

template <typename T, typename Format, typename Op>
struct Floats {
  static constexpr size_t kElementBytes = sizeof(T), kBytes = kVectorBytes;
  using Value = Vector<T>;
  R2CC_INLINE Value Load(const std::byte* from) { return LoadAs<Value>(from); }
  R2CC_INLINE Value Join(Value a, Value b) { return Op::Of(a, b); }
  R2CC_INLINE void Store(std::byte* to, Value v) {
    using U = Vector<typename Format::Bits>;
    StoreAs(to, Select((U)(v != v), U{} + Format::kNan, (U)v));
  }
};

template <typename Op>
struct Float16s {
  static constexpr size_t kElementBytes = 2, kBytes = kVectorBytes / 2;
  using Value = Vector<float>;
  R2CC_INLINE Value Load(const std::byte* from) { return Widen(LoadAs<Halves>(from)); }
  R2CC_INLINE Value Join(Value a, Value b) { return Op::Of(a, b); }
  R2CC_INLINE void Store(std::byte* to, Value v) { StoreAs(to, Narrow(v)); }
};

// Every second element is the upper half of a float as it is, the others one after a shift: nothing moves between elements. (Memory order
// is that of a little-endian processor.)
template <typename Op>
struct Bfloat16s {
  static constexpr size_t kElementBytes = 2, kBytes = kVectorBytes;
  struct Value {
    Vector<float> even, odd;
  };
  R2CC_INLINE Value Load(const std::byte* from) {
    const auto both = LoadAs<Vector<uint32_t>>(from);
    return {(Vector<float>)(both << 16), (Vector<float>)(both & 0xffff0000)};
  }
  R2CC_INLINE Value Join(Value a, Value b) { return {Op::Of(a.even, b.even), Op::Of(a.odd, b.odd)}; }
  R2CC_INLINE void Store(std::byte* to, Value v) { StoreAs(to, (RoundToUpperHalf(v.even) >> 16) | RoundToUpperHalf(v.odd)); }
};

// Minimum and maximum of floats are those of integers with the same order: the bits, with those below the sign inverted for negative
// numbers. A NaN becomes an integer beyond the infinity, which loses against everything.
template <typename Format, typename Op>
struct OrderedFloats {
  using U = Vector<typename Format::Bits>;
  using S = Vector<typename Format::Signed>;
  static constexpr bool kLeast = __is_same(Op, Least);
  static constexpr typename Format::Bits kLoser = static_cast<typename Format::Bits>(kLeast ? Format::kNan : Format::kNan | Format::kSign);
  static constexpr size_t kElementBytes = sizeof(typename Format::Bits), kBytes = kVectorBytes;
  using Value = S;

  R2CC_INLINE U Turned(U bits) { return bits ^ ((U)((S)bits < 0) & static_cast<typename Format::Bits>(~Format::kSign)); }
  R2CC_INLINE Value Load(const std::byte* from) {
    const U bits = LoadAs<U>(from);
    return (S)Turned(Select(IsNan<Format>(bits), U{} + kLoser, bits));
  }
  R2CC_INLINE Value Join(Value a, Value b) { return Op::Of(a, b); }
  R2CC_INLINE void Store(std::byte* to, Value v) {
    const U bits = Turned((U)v);
    StoreAs(to, Select(IsNan<Format>(bits), U{} + Format::kNan, bits));
  }
};

// ---- the loop ----

// Vectors that are processed together: enough to hide the latency of additions, with one pointer lookup for all of them.
constexpr size_t kTogether = 4;

template <typename Kind, size_t kVectors>
R2CC_INLINE void ReduceVectors(const std::byte* const* sources, size_t sources_count, std::byte* out, size_t at) {
  typename Kind::Value values[kVectors];
  for (size_t v = 0; v < kVectors; ++v) values[v] = Kind::Load(sources[0] + at + v * Kind::kBytes);
  for (size_t s = 1; s < sources_count; ++s) {
    const std::byte* const from = sources[s] + at;
    for (size_t v = 0; v < kVectors; ++v) values[v] = Kind::Join(values[v], Kind::Load(from + v * Kind::kBytes));
  }
  for (size_t v = 0; v < kVectors; ++v) Kind::Store(out + at + v * Kind::kBytes, values[v]);
}

// The remainder goes through a vector of its own, so that it is computed like everything else.
template <typename Kind>
R2CC_INLINE void ReduceTail(const std::byte* const* sources, size_t sources_count, std::byte* out, size_t at, size_t bytes) {
  std::byte padded[Kind::kBytes] = {};
  __builtin_memcpy(padded, sources[0] + at, bytes);
  typename Kind::Value value = Kind::Load(padded);
  for (size_t s = 1; s < sources_count; ++s) {
    __builtin_memcpy(padded, sources[s] + at, bytes);
    value = Kind::Join(value, Kind::Load(padded));
  }
  Kind::Store(padded, value);
  __builtin_memcpy(out + at, padded, bytes);
}

template <typename Kind>
void ReduceAll(const std::byte* const* sources, size_t sources_count, std::byte* out, size_t count) {
  const size_t bytes = count * Kind::kElementBytes;
  size_t at = 0;
  for (; bytes - at >= kTogether * Kind::kBytes; at += kTogether * Kind::kBytes)
    ReduceVectors<Kind, kTogether>(sources, sources_count, out, at);
  for (; bytes - at >= Kind::kBytes; at += Kind::kBytes) ReduceVectors<Kind, 1>(sources, sources_count, out, at);
  if (at < bytes) ReduceTail<Kind>(sources, sources_count, out, at, bytes - at);
}

// In the order of ncclDataType_t and of ncclRedOp_t: sum, product, maximum, minimum. Sums and products of signed integers are those of
// unsigned ones, which wrap around.
#define R2CC_INTEGER_KERNELS(U, S) \
  { ReduceAll<Integers<U, Add>>, ReduceAll<Integers<U, Multiply>>, ReduceAll<Integers<S, Greatest>>, ReduceAll<Integers<S, Least>> }
#define R2CC_FLOAT_KERNELS(T, Format)                                                                                      \
  {                                                                                                                        \
    ReduceAll<Floats<T, Format, Add>>, ReduceAll<Floats<T, Format, Multiply>>, ReduceAll<OrderedFloats<Format, Greatest>>, \
        ReduceAll<OrderedFloats<Format, Least>>                                                                            \
  }
#define R2CC_SMALL_FLOAT_KERNELS(Kind, Format) \
  { ReduceAll<Kind<Add>>, ReduceAll<Kind<Multiply>>, ReduceAll<OrderedFloats<Format, Greatest>>, ReduceAll<OrderedFloats<Format, Least>> }
constexpr ReduceTable kTable = {{
    R2CC_INTEGER_KERNELS(uint8_t, int8_t),
    R2CC_INTEGER_KERNELS(uint8_t, uint8_t),
    R2CC_INTEGER_KERNELS(uint32_t, int32_t),
    R2CC_INTEGER_KERNELS(uint32_t, uint32_t),
    R2CC_INTEGER_KERNELS(uint64_t, int64_t),
    R2CC_INTEGER_KERNELS(uint64_t, uint64_t),
    R2CC_SMALL_FLOAT_KERNELS(Float16s, Float16),
    R2CC_FLOAT_KERNELS(float, Float32),
    R2CC_FLOAT_KERNELS(double, Float64),
    R2CC_SMALL_FLOAT_KERNELS(Bfloat16s, Bfloat16),
}};

}  // namespace
}  // namespace r2cc::collnet

#endif  // R2CC_NETPLUGIN_COLLNET_REDUCE_KERNELS_H_
