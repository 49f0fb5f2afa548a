// CUDA's built-in vector types: structures without operators, made by make_<type>.
#pragma once

#define CUDA_SIMULATOR_VECTORS(type, name, a1, a2, a3, a4)                                                      \
    struct alignas(a1) name##1 { type x; };                                                                     \
    struct alignas(a2) name##2 { type x, y; };                                                                  \
    struct alignas(a3) name##3 { type x, y, z; };                                                               \
    struct alignas(a4) name##4 { type x, y, z, w; };                                                            \
    static inline name##1 make_##name##1(type x) { return name##1{x}; }                                         \
    static inline name##2 make_##name##2(type x, type y) { return name##2{x, y}; }                              \
    static inline name##3 make_##name##3(type x, type y, type z) { return name##3{x, y, z}; }                   \
    static inline name##4 make_##name##4(type x, type y, type z, type w) { return name##4{x, y, z, w}; }

CUDA_SIMULATOR_VECTORS(signed char, char, 1, 2, 1, 4)
CUDA_SIMULATOR_VECTORS(unsigned char, uchar, 1, 2, 1, 4)
CUDA_SIMULATOR_VECTORS(short, short, 2, 4, 2, 8)
CUDA_SIMULATOR_VECTORS(unsigned short, ushort, 2, 4, 2, 8)
CUDA_SIMULATOR_VECTORS(int, int, 4, 8, 4, 16)
CUDA_SIMULATOR_VECTORS(long, long, 8, 16, 8, 16)
CUDA_SIMULATOR_VECTORS(unsigned long, ulong, 8, 16, 8, 16)
CUDA_SIMULATOR_VECTORS(long long, longlong, 8, 16, 8, 16)
CUDA_SIMULATOR_VECTORS(unsigned long long, ulonglong, 8, 16, 8, 16)
CUDA_SIMULATOR_VECTORS(float, float, 4, 8, 4, 16)
CUDA_SIMULATOR_VECTORS(double, double, 8, 16, 8, 16)
// uint3 is in launch.h.
struct uint1 { unsigned int x; };
struct alignas(8) uint2 { unsigned int x, y; };
struct alignas(16) uint4 { unsigned int x, y, z, w; };
static inline uint1 make_uint1(unsigned int x) { return uint1{x}; }
static inline uint2 make_uint2(unsigned int x, unsigned int y) { return uint2{x, y}; }
static inline uint3 make_uint3(unsigned int x, unsigned int y, unsigned int z) { return uint3{x, y, z}; }
static inline uint4 make_uint4(unsigned int x, unsigned int y, unsigned int z, unsigned int w) { return uint4{x, y, z, w}; }
#undef CUDA_SIMULATOR_VECTORS
