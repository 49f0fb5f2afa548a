// Barriers of a block, and the functions of a warp.
#pragma once

static inline void __syncthreads(int line = __builtin_LINE()) { cuda_simulator.runtime->barrier(line, 0); }
static inline int __syncthreads_count(int vote, int line = __builtin_LINE()) { return (int)cuda_simulator.runtime->barrier(line, vote); }
static inline int __syncthreads_or(int vote, int line = __builtin_LINE()) { return cuda_simulator.runtime->barrier(line, vote) != 0; }
static inline int __syncthreads_and(int vote, int line = __builtin_LINE()) { return cuda_simulator.runtime->barrier(line, !vote) == 0; }

static inline unsigned int cuda_simulator_lane() { return (unsigned int)cuda_simulator.current % 32; }

static void cuda_simulator_resolve_sync(void**, unsigned int) {}
static inline void __syncwarp(unsigned int mask = 0xffffffffu, int line = __builtin_LINE()) {
    int nothing = 0;
    cuda_simulator.runtime->collective(mask, &nothing, cuda_simulator_resolve_sync, line, "__syncwarp");
}
// Which threads of the warp run together is not defined; the calling one does.
static inline unsigned int __activemask() { return 1u << cuda_simulator_lane(); }

// ---- shuffles: a lane that is not among the threads of the mask gives a value that nobody wrote ----

struct cuda_simulator_shuffled { unsigned long long value, result; int from; };
static void cuda_simulator_resolve_shuffle(void** lanes, unsigned int mask) {
    for (int lane = 0; lane < 32; lane++) {
        if (!(mask >> lane & 1)) continue;
        cuda_simulator_shuffled* it = (cuda_simulator_shuffled*)lanes[lane];
        it->result = mask >> it->from & 1 ? ((cuda_simulator_shuffled*)lanes[it->from])->value : 0x7b7b7b7b7b7b7b7bull;
    }
}
template <class T> static inline T cuda_simulator_shuffle(unsigned int mask, T value, int from, int line, const char* name) {
    cuda_simulator_shuffled it = {0, 0, from};
    __builtin_memcpy(&it.value, &value, sizeof value);
    cuda_simulator.runtime->collective(mask, &it, cuda_simulator_resolve_shuffle, line, name);
    __builtin_memcpy((void*)&value, &it.result, sizeof value);
    return value;
}
static inline void cuda_simulator_check_width(int width, int line, const char* name) {
    if (width < 1 || width > 32 || (width & (width - 1))) cuda_simulator.runtime->fail("%s in line %d with a width of %d", name, line, width);
}
#define CUDA_SIMULATOR_SHUFFLE(name, type, operand, source)                                                                    \
    static inline type name(unsigned int mask, type value, operand, int width = 32, int line = __builtin_LINE()) {           \
        cuda_simulator_check_width(width, line, #name);                                                                        \
        int lane = (int)cuda_simulator_lane(), first = lane & -width;                                                          \
        (void)first;                                                                                                           \
        return cuda_simulator_shuffle<type>(mask, value, source, line, #name);                                                 \
    }
#define CUDA_SIMULATOR_SHUFFLES(type)                                                                                            \
    CUDA_SIMULATOR_SHUFFLE(__shfl_sync, type, int from, first + (from & (width - 1)))                                            \
    CUDA_SIMULATOR_SHUFFLE(__shfl_up_sync, type, unsigned int delta, lane - (int)delta < first ? lane : lane - (int)delta)       \
    CUDA_SIMULATOR_SHUFFLE(__shfl_down_sync, type, unsigned int delta, lane + (int)delta >= first + width ? lane : lane + (int)delta) \
    CUDA_SIMULATOR_SHUFFLE(__shfl_xor_sync, type, int bits, (lane ^ bits) >= first + width ? lane : (lane ^ bits) & 31)
CUDA_SIMULATOR_SHUFFLES(int)
CUDA_SIMULATOR_SHUFFLES(unsigned int)
CUDA_SIMULATOR_SHUFFLES(long)
CUDA_SIMULATOR_SHUFFLES(unsigned long)
CUDA_SIMULATOR_SHUFFLES(long long)
CUDA_SIMULATOR_SHUFFLES(unsigned long long)
CUDA_SIMULATOR_SHUFFLES(float)
CUDA_SIMULATOR_SHUFFLES(double)
#undef CUDA_SIMULATOR_SHUFFLE
#undef CUDA_SIMULATOR_SHUFFLES

// ---- votes and reductions ----

struct cuda_simulator_voted { unsigned int vote, result; };
static void cuda_simulator_resolve_ballot(void** lanes, unsigned int mask) {
    unsigned int bits = 0;
    for (int lane = 0; lane < 32; lane++)
        if (mask >> lane & 1 && ((cuda_simulator_voted*)lanes[lane])->vote) bits |= 1u << lane;
    for (int lane = 0; lane < 32; lane++)
        if (mask >> lane & 1) ((cuda_simulator_voted*)lanes[lane])->result = bits;
}
static inline unsigned int cuda_simulator_vote(unsigned int mask, unsigned int vote, cuda_simulator_resolve resolve, int line, const char* name) {
    cuda_simulator_voted it = {vote, 0};
    cuda_simulator.runtime->collective(mask, &it, resolve, line, name);
    return it.result;
}
static inline unsigned int __ballot_sync(unsigned int mask, int vote, int line = __builtin_LINE()) {
    return cuda_simulator_vote(mask, vote != 0, cuda_simulator_resolve_ballot, line, "__ballot_sync");
}
static inline int __any_sync(unsigned int mask, int vote, int line = __builtin_LINE()) {
    return cuda_simulator_vote(mask, vote != 0, cuda_simulator_resolve_ballot, line, "__any_sync") != 0;
}
static inline int __all_sync(unsigned int mask, int vote, int line = __builtin_LINE()) {
    return cuda_simulator_vote(mask, vote == 0, cuda_simulator_resolve_ballot, line, "__all_sync") == 0;
}
static void cuda_simulator_resolve_match(void** lanes, unsigned int mask) {
    for (int lane = 0; lane < 32; lane++) {
        if (!(mask >> lane & 1)) continue;
        cuda_simulator_shuffled* mine = (cuda_simulator_shuffled*)lanes[lane];
        mine->result = 0;
        for (int other = 0; other < 32; other++)
            if (mask >> other & 1 && ((cuda_simulator_shuffled*)lanes[other])->value == mine->value) mine->result |= 1ull << other;
    }
}
template <class T> static inline unsigned int __match_any_sync(unsigned int mask, T value, int line = __builtin_LINE()) {
    cuda_simulator_shuffled it = {0, 0, 0};
    __builtin_memcpy(&it.value, &value, sizeof value);
    cuda_simulator.runtime->collective(mask, &it, cuda_simulator_resolve_match, line, "__match_any_sync");
    return (unsigned int)it.result;
}
#define CUDA_SIMULATOR_REDUCE(name, type, combined)                                                              \
    static void cuda_simulator_resolve##name(void** lanes, unsigned int mask) {                                  \
        bool first = true;                                                                                       \
        type a = 0;                                                                                              \
        for (int lane = 0; lane < 32; lane++) {                                                                  \
            if (!(mask >> lane & 1)) continue;                                                                   \
            type b = (type)((cuda_simulator_voted*)lanes[lane])->vote;                                           \
            a = first ? b : (type)(combined);                                                                    \
            first = false;                                                                                       \
        }                                                                                                        \
        for (int lane = 0; lane < 32; lane++)                                                                    \
            if (mask >> lane & 1) ((cuda_simulator_voted*)lanes[lane])->result = (unsigned int)a;                \
    }
#define CUDA_SIMULATOR_REDUCED(name, type, resolver)                                                             \
    static inline type name(unsigned int mask, type value, int line = __builtin_LINE()) {                        \
        return (type)cuda_simulator_vote(mask, (unsigned int)value, cuda_simulator_resolve##resolver, line, #name); \
    }
CUDA_SIMULATOR_REDUCE(_add, unsigned int, a + b)
CUDA_SIMULATOR_REDUCE(_min_int, int, a < b ? a : b)
CUDA_SIMULATOR_REDUCE(_max_int, int, a > b ? a : b)
CUDA_SIMULATOR_REDUCE(_min, unsigned int, a < b ? a : b)
CUDA_SIMULATOR_REDUCE(_max, unsigned int, a > b ? a : b)
CUDA_SIMULATOR_REDUCE(_and, unsigned int, a & b)
CUDA_SIMULATOR_REDUCE(_or, unsigned int, a | b)
CUDA_SIMULATOR_REDUCE(_xor, unsigned int, a ^ b)
CUDA_SIMULATOR_REDUCED(__reduce_add_sync, int, _add)
CUDA_SIMULATOR_REDUCED(__reduce_add_sync, unsigned int, _add)
CUDA_SIMULATOR_REDUCED(__reduce_min_sync, int, _min_int)
CUDA_SIMULATOR_REDUCED(__reduce_max_sync, int, _max_int)
CUDA_SIMULATOR_REDUCED(__reduce_min_sync, unsigned int, _min)
CUDA_SIMULATOR_REDUCED(__reduce_max_sync, unsigned int, _max)
CUDA_SIMULATOR_REDUCED(__reduce_and_sync, unsigned int, _and)
CUDA_SIMULATOR_REDUCED(__reduce_or_sync, unsigned int, _or)
CUDA_SIMULATOR_REDUCED(__reduce_xor_sync, unsigned int, _xor)
#undef CUDA_SIMULATOR_REDUCE
#undef CUDA_SIMULATOR_REDUCED
