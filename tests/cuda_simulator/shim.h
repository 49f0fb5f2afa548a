// CUDA's language on the CPU: what NVRTC gives a program without headers, as far as the kernels here need it.
//
// A program and this header share a namespace without a name, so that overloads of both are found, and what no kernel calls is not compiled.
#pragma once
#include "launch.h"

extern "C" char __start_cuda_shared[] __attribute__((weak, visibility("hidden")));
extern "C" char __stop_cuda_shared[] __attribute__((weak, visibility("hidden")));
extern "C" int printf(const char*, ...);
extern "C" void* memcpy(void*, const void*, size_t) noexcept;
extern "C" void* memset(void*, int, size_t) noexcept;

#define CUDA_SIMULATOR 1
namespace {
static cuda_simulator_state cuda_simulator;

#define __global__ static
#define __device__
#define __host__
#define __constant__ static
#define __managed__ static
#define __shared__ static __attribute__((section("cuda_shared")))
#define __restrict__ __restrict
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...)
#define __grid_constant__

static uint3& threadIdx = cuda_simulator.thread;
static uint3& blockIdx = cuda_simulator.block;
static dim3& blockDim = cuda_simulator.threads;
static dim3& gridDim = cuda_simulator.blocks;
constexpr int warpSize = 32;

#define assert(what) ((what) ? (void)0 : cuda_simulator.runtime->fail("assertion in line %d: %s", __LINE__, #what))

#include "checks.h"
#include "vectors.h"
#include "maths.h"
#include "atomics.h"
#include "warps.h"
#include "tensor_cores.h"

// ---- entries ----

template <class A> inline A cuda_simulator_read(const void* from) {
    A value;
    __builtin_memcpy((void*)&value, from, sizeof value);
    return value;
}
template <class A> struct cuda_simulator_plain { typedef A type; };
template <class A> struct cuda_simulator_plain<const A> { typedef A type; };
template <class> struct cuda_simulator_signature;
template <class... A> struct cuda_simulator_signature<void (*)(A...)> {
    static constexpr int count = sizeof...(A);
    static constexpr int sizes[sizeof...(A) + 1] = {(int)sizeof(A)..., 0};
    template <void (*kernel)(A...), int... I> static inline void threads() {
        cuda_simulator_state& s = cuda_simulator;
        while (s.next < s.count) {
            int place = s.next++, t = s.order ? s.order[place] : place;
            s.enter(t);
            kernel(cuda_simulator_read<typename cuda_simulator_plain<A>::type>(s.parameters[I])...);
            s.ended[t] = 1;
        }
    }
    template <void (*kernel)(A...)> static void run() { indexed<kernel>(indices<__integer_pack(sizeof...(A))...>()); }
    template <int...> struct indices {};
    template <void (*kernel)(A...), int... I> static inline void indexed(indices<I...>) { threads<kernel, I...>(); }
};
#define CUDA_SIMULATOR_ENTRY(kernel, most_threads) CUDA_SIMULATOR_ENTRY_(kernel, most_threads)
#define CUDA_SIMULATOR_ENTRY_(kernel, most_threads)                                                                          \
    extern "C" __attribute__((visibility("default"))) const cuda_simulator_entry cuda_simulator_entry_##kernel = {           \
        #kernel, &cuda_simulator_signature<decltype(&kernel)>::run<&kernel>, cuda_simulator_signature<decltype(&kernel)>::count, \
        cuda_simulator_signature<decltype(&kernel)>::sizes, most_threads, &cuda_simulator, __start_cuda_shared, __stop_cuda_shared};
}  // namespace
