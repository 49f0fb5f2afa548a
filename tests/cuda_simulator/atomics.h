// Atomic functions, of the types that CUDA has them for. Threads change over only where they wait, so that plain access is atomic.
#pragma once

template <class T> static inline T cuda_simulator_swap(T* place, T value) {
    T old = *place;
    *place = value;
    return old;
}
#define CUDA_SIMULATOR_ATOMIC(name, type, value) \
    static inline type name(type* p, type v) { return cuda_simulator_swap<type>(p, (type)(value)); }
#define CUDA_SIMULATOR_ATOMICS(type)                          \
    CUDA_SIMULATOR_ATOMIC(atomicExch, type, v)                \
    CUDA_SIMULATOR_ATOMIC(atomicMin, type, *p < v ? *p : v)   \
    CUDA_SIMULATOR_ATOMIC(atomicMax, type, *p > v ? *p : v)   \
    CUDA_SIMULATOR_ATOMIC(atomicAnd, type, *p & v)            \
    CUDA_SIMULATOR_ATOMIC(atomicOr, type, *p | v)             \
    CUDA_SIMULATOR_ATOMIC(atomicXor, type, *p ^ v)            \
    CUDA_SIMULATOR_CAS(type)
#define CUDA_SIMULATOR_CAS(type) \
    static inline type atomicCAS(type* p, type seen, type v) { return cuda_simulator_swap<type>(p, *p == seen ? v : *p); }

CUDA_SIMULATOR_ATOMICS(int)
CUDA_SIMULATOR_ATOMICS(unsigned int)
CUDA_SIMULATOR_ATOMICS(unsigned long long)
CUDA_SIMULATOR_CAS(unsigned short)
CUDA_SIMULATOR_ATOMIC(atomicMin, long long, *p < v ? *p : v)
CUDA_SIMULATOR_ATOMIC(atomicMax, long long, *p > v ? *p : v)
CUDA_SIMULATOR_ATOMIC(atomicExch, float, v)
CUDA_SIMULATOR_ATOMIC(atomicAdd, int, (unsigned int)*p + (unsigned int)v)
CUDA_SIMULATOR_ATOMIC(atomicAdd, unsigned int, *p + v)
CUDA_SIMULATOR_ATOMIC(atomicAdd, unsigned long long, *p + v)
CUDA_SIMULATOR_ATOMIC(atomicAdd, float, *p + v)
CUDA_SIMULATOR_ATOMIC(atomicAdd, double, *p + v)
CUDA_SIMULATOR_ATOMIC(atomicSub, int, (unsigned int)*p - (unsigned int)v)
CUDA_SIMULATOR_ATOMIC(atomicSub, unsigned int, *p - v)
CUDA_SIMULATOR_ATOMIC(atomicInc, unsigned int, *p >= v ? 0 : *p + 1)
CUDA_SIMULATOR_ATOMIC(atomicDec, unsigned int, *p == 0 || *p > v ? v : *p - 1)
#undef CUDA_SIMULATOR_ATOMIC
#undef CUDA_SIMULATOR_ATOMICS
#undef CUDA_SIMULATOR_CAS

static inline void __threadfence() {}
static inline void __threadfence_block() {}
static inline void __threadfence_system() {}
