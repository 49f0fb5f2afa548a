// What a compiled program and the runtime share. No header is included: a program sees no name that NVRTC would not give it.
#pragma once

typedef __SIZE_TYPE__ size_t;

struct uint3 { unsigned int x, y, z; };
struct dim3 {
    unsigned int x, y, z;
    constexpr dim3(unsigned int x = 1, unsigned int y = 1, unsigned int z = 1) : x(x), y(y), z(z) {}
    constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
    constexpr operator uint3() const { return uint3{x, y, z}; }
};

typedef void (*cuda_simulator_resolve)(void** lanes, unsigned int mask);

// The functions by which a thread waits for others or reports an error.
struct cuda_simulator_runtime {
    unsigned int (*barrier)(int line, int vote);  // the number of threads whose vote is not 0
    void (*collective)(unsigned int mask, void* mine, cuda_simulator_resolve, int line, const char* name);
    void (*copy_later)(void* to, const void* from, int bytes, int given);
    void (*copies_commit)();
    void (*copies_wait)(int pending);
    void (*fail)(const char* format, ...) __attribute__((noreturn));
};

// The state of a program: its threads' built-in variables, and where the running launch stands.
struct cuda_simulator_state {
    uint3 thread, block;
    dim3 threads, blocks;
    void* dynamic_shared;
    const cuda_simulator_runtime* runtime;
    void** parameters;
    const int* order;      // of the threads of a block; null for ascending
    unsigned char* ended;  // one for each thread of the block
    int count, next;       // threads of a block; the place in `order` of the next one to start
    int current;           // the thread that runs
    bool flat;             // blocks of one dimension

    void enter(int thread_index) {
        current = thread_index;
        thread.x = (unsigned int)thread_index;
        thread.y = thread.z = 0;
        if (flat) return;
        thread.y = thread.x / threads.x % threads.y;
        thread.z = thread.x / threads.x / threads.y;
        thread.x %= threads.x;
    }
};

// One kernel of a program.
struct cuda_simulator_entry {
    const char* name;
    void (*run)();  // runs the threads from `next` on, each to its end
    int parameters;
    const int* sizes;
    int most_threads;  // __launch_bounds__
    cuda_simulator_state* state;
    char *shared_begin, *shared_end;
};
