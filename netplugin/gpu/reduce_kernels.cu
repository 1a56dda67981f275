// What netplugin/collnet/reduce_kernels.h does, on a GPU and with the same bits: the rules are those of netplugin/collnet/reduce.h.
// Additions and multiplications name their rounding: the compiler makes no fused ones of them. Denormal numbers are kept as nvcc does
// unless it is told otherwise.
//
// One kernel for each type and operation, r2cc_reduce_TYPE_OPERATION by NCCL's numbers.
#include <cstdint>

#include "netplugin/gpu/reduce_parameters.h"

namespace r2cc::gpu {
namespace {

// How floats lie in memory, and the integers of their width.
template <typename B, typename S, B kInfinityBits>
struct FloatBits {
  using Bits = B;
  using Signed = S;
  static constexpr B kInfinity = kInfinityBits;
  static constexpr B kSign = static_cast<B>(B{1} << (8 * sizeof(B) - 1));
  static constexpr B kNan = static_cast<B>(kInfinityBits | ((kInfinityBits & (~kInfinityBits + 1)) >> 1));  // the fraction's first bit
  __device__ static bool IsNan(B bits) { return static_cast<B>(bits & static_cast<B>(~kSign)) > kInfinity; }
};
using Float16 = FloatBits<uint16_t, int16_t, 0x7c00>;
using Bfloat16 = FloatBits<uint16_t, int16_t, 0x7f80>;
using Float32 = FloatBits<uint32_t, int32_t, 0x7f800000>;
using Float64 = FloatBits<uint64_t, int64_t, 0x7ff0000000000000>;

struct Add {
  template <typename T>
  __device__ static T Of(T a, T b) {
    return static_cast<T>(a + b);
  }
  __device__ static float Of(float a, float b) { return __fadd_rn(a, b); }
  __device__ static double Of(double a, double b) { return __dadd_rn(a, b); }
};
struct Multiply {
  template <typename T>
  __device__ static T Of(T a, T b) {
    return static_cast<T>(a * b);
  }
  __device__ static float Of(float a, float b) { return __fmul_rn(a, b); }
  __device__ static double Of(double a, double b) { return __dmul_rn(a, b); }
};
struct Least {
  template <typename T>
  __device__ static T Of(T a, T b) {
    return a < b ? a : b;
  }
};
struct Greatest {
  template <typename T>
  __device__ static T Of(T a, T b) {
    return a > b ? a : b;
  }
};

// Element: as it lies in memory. Value: as it is accumulated.

template <typename T, typename Op>
struct Integers {
  using Element = T;
  using Value = T;
  __device__ static Value Load(Element element) { return element; }
  __device__ static Value Join(Value a, Value b) { return Op::Of(a, b); }
  __device__ static Element Store(Value value) { return value; }
};

template <typename Op>
struct Float32s {
  using Element = uint32_t;
  using Value = float;
  __device__ static Value Load(Element element) { return __uint_as_float(element); }
  __device__ static Value Join(Value a, Value b) { return Op::Of(a, b); }
  __device__ static Element Store(Value value) {
    const Element bits = __float_as_uint(value);
    return Float32::IsNan(bits) ? Float32::kNan : bits;
  }
};

template <typename Op>
struct Float64s {
  using Element = uint64_t;
  using Value = double;
  __device__ static Value Load(Element element) { return __longlong_as_double(static_cast<long long>(element)); }
  __device__ static Value Join(Value a, Value b) { return Op::Of(a, b); }
  __device__ static Element Store(Value value) {
    const auto bits = static_cast<Element>(__double_as_longlong(value));
    return Float64::IsNan(bits) ? Float64::kNan : bits;
  }
};

template <typename Op>
struct Float16s {
  using Element = uint16_t;
  using Value = float;
  __device__ static Value Load(Element element) {
    Value value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(element));
    return value;
  }
  __device__ static Value Join(Value a, Value b) { return Op::Of(a, b); }
  __device__ static Element Store(Value value) {
    Element bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return Float16::IsNan(bits) ? Float16::kNan : bits;
  }
};

template <typename Op>
struct Bfloat16s {
  using Element = uint16_t;
  using Value = float;
  __device__ static Value Load(Element element) { return __uint_as_float(static_cast<uint32_t>(element) << 16); }
  __device__ static Value Join(Value a, Value b) { return Op::Of(a, b); }
  __device__ static Element Store(Value value) {
    const uint32_t bits = __float_as_uint(value);
    const uint32_t rounded = bits + 0x7fff + ((bits >> 16) & 1);
    return Float32::IsNan(bits) ? Bfloat16::kNan : static_cast<Element>(rounded >> 16);
  }
};

// Floats in their order as integers; a NaN is one that everything wins against.
template <typename Format, typename Op>
struct OrderedFloats {
  using Element = typename Format::Bits;
  using Value = typename Format::Signed;
  static constexpr Element kLoser = static_cast<Element>(__is_same(Op, Least) ? Format::kNan : Format::kNan | Format::kSign);

  __device__ static Element Turned(Element bits) {
    return static_cast<Value>(bits) < 0 ? static_cast<Element>(bits ^ static_cast<Element>(~Format::kSign)) : bits;
  }
  __device__ static Value Load(Element element) { return static_cast<Value>(Turned(Format::IsNan(element) ? kLoser : element)); }
  __device__ static Value Join(Value a, Value b) { return Op::Of(a, b); }
  __device__ static Element Store(Value value) {
    const Element bits = Turned(static_cast<Element>(value));
    return Format::IsNan(bits) ? Format::kNan : bits;
  }
};

template <typename Element>
struct alignas(kReduceVectorBytes) Vector {
  static constexpr uint32_t kElements = kReduceVectorBytes / sizeof(Element);
  Element elements[kElements];
};

template <typename Kind>
__device__ void Reduce(const ReduceParameters& p) {
  using Element = typename Kind::Element;
  using V = Vector<Element>;
  const uint64_t first = static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x, step = static_cast<uint64_t>(gridDim.x) * blockDim.x;
  const uint64_t vectors = p.aligned != 0 ? p.count / V::kElements : 0;
  for (uint64_t at = first; at < vectors; at += step) {
    const V begin = reinterpret_cast<const V*>(p.source[0])[at];
    typename Kind::Value values[V::kElements];
#pragma unroll
    for (uint32_t i = 0; i < V::kElements; ++i) values[i] = Kind::Load(begin.elements[i]);
    // So many loads are under way together.
#pragma unroll 4
    for (uint32_t s = 1; s < p.sources; ++s) {
      const V next = reinterpret_cast<const V*>(p.source[s])[at];
#pragma unroll
      for (uint32_t i = 0; i < V::kElements; ++i) values[i] = Kind::Join(values[i], Kind::Load(next.elements[i]));
    }
    V end;
#pragma unroll
    for (uint32_t i = 0; i < V::kElements; ++i) end.elements[i] = Kind::Store(values[i]);
    reinterpret_cast<V*>(p.out)[at] = end;
  }
  for (uint64_t at = vectors * V::kElements + first; at < p.count; at += step) {
    typename Kind::Value value = Kind::Load(reinterpret_cast<const Element*>(p.source[0])[at]);
    for (uint32_t s = 1; s < p.sources; ++s) value = Kind::Join(value, Kind::Load(reinterpret_cast<const Element*>(p.source[s])[at]));
    reinterpret_cast<Element*>(p.out)[at] = Kind::Store(value);
  }
}

}  // namespace

// In the order of ncclDataType_t and of ncclRedOp_t: sum, product, maximum, minimum.
#define R2CC_KERNEL(type, op, ...) \
  extern "C" __global__ void r2cc_reduce_##type##_##op(const __grid_constant__ ReduceParameters p) { Reduce<__VA_ARGS__>(p); }
#define R2CC_INTEGER_KERNELS(type, U, S)       \
  R2CC_KERNEL(type, 0, Integers<U, Add>)       \
  R2CC_KERNEL(type, 1, Integers<U, Multiply>)  \
  R2CC_KERNEL(type, 2, Integers<S, Greatest>)  \
  R2CC_KERNEL(type, 3, Integers<S, Least>)
#define R2CC_FLOAT_KERNELS(type, Kind, Format)           \
  R2CC_KERNEL(type, 0, Kind<Add>)                        \
  R2CC_KERNEL(type, 1, Kind<Multiply>)                   \
  R2CC_KERNEL(type, 2, OrderedFloats<Format, Greatest>)  \
  R2CC_KERNEL(type, 3, OrderedFloats<Format, Least>)

R2CC_INTEGER_KERNELS(0, uint8_t, int8_t)
R2CC_INTEGER_KERNELS(1, uint8_t, uint8_t)
R2CC_INTEGER_KERNELS(2, uint32_t, int32_t)
R2CC_INTEGER_KERNELS(3, uint32_t, uint32_t)
R2CC_INTEGER_KERNELS(4, uint64_t, int64_t)
R2CC_INTEGER_KERNELS(5, uint64_t, uint64_t)
R2CC_FLOAT_KERNELS(6, Float16s, Float16)
R2CC_FLOAT_KERNELS(7, Float32s, Float32)
R2CC_FLOAT_KERNELS(8, Float64s, Float64)
R2CC_FLOAT_KERNELS(9, Bfloat16s, Bfloat16)

}  // namespace r2cc::gpu
