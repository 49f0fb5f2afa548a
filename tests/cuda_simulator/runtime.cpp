// Runs the blocks of a launch one after the other, and the threads of a block as fibers that change over where they wait for one another.
//
// A fiber runs one thread after the other to its end; only when one waits does the next fiber take over the threads not yet begun. So a kernel
// without barriers runs as a loop in one fiber.
#include "launch.h"

#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#define UNCHECKED __attribute__((no_sanitize_address))
const size_t STACK = 512 << 10;
#else
#define UNCHECKED
const size_t STACK = 128 << 10;
#endif
#define EXPORTED extern "C" __attribute__((visibility("default")))
const size_t GUARD = 64 << 10;
const int MOST_THREADS = 1024, WARP = 32;

// ---- contexts ----

#if defined(__x86_64__) && !defined(CUDA_SIMULATOR_UCONTEXT)
struct Context { void* stack_pointer = nullptr; };
extern "C" void cuda_simulator_change(void** save, void* load) __attribute__((visibility("hidden")));
asm(R"(
    .text
    .hidden cuda_simulator_change
    .globl cuda_simulator_change
    .type cuda_simulator_change, @function
cuda_simulator_change:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size cuda_simulator_change, .-cuda_simulator_change
)");
static inline void change(Context& from, Context& to) { cuda_simulator_change(&from.stack_pointer, to.stack_pointer); }
static void prepare(Context& context, char* stack, size_t size, void (*begin)()) {
    uintptr_t* top = (uintptr_t*)(((uintptr_t)stack + size) & ~(uintptr_t)15);
    *--top = 0;  // where `begin` would return to
    *--top = (uintptr_t)begin;
    for (int k = 0; k < 6; k++) *--top = 0;
    context.stack_pointer = top;
}
#else
#include <ucontext.h>
struct Context { ucontext_t saved; };
static inline void change(Context& from, Context& to) { swapcontext(&from.saved, &to.saved); }
static void prepare(Context& context, char* stack, size_t size, void (*begin)()) {
    getcontext(&context.saved);
    context.saved.uc_stack.ss_sp = stack;
    context.saved.uc_stack.ss_size = size;
    context.saved.uc_link = nullptr;
    makecontext(&context.saved, begin, 0);
}
#endif

// ---- the state of the launch ----

struct Fiber {
    Context context;
    char* stack = nullptr;  // its first bytes are the guard
    bool prepared = false;
};

enum Wait : unsigned char { NOT, AT_BARRIER, IN_WARP };

struct Copy { void* to; const void* from; int bytes, given; };

struct Copies {  // of one thread, oldest first; the k-th group committed ends before `ends[k]`
    Copy* items = nullptr;
    int count = 0, room = 0, groups = 0;
    int* ends = nullptr;
};

struct Thread {
    Fiber* fiber;
    void* posted;
    cuda_simulator_resolve resolve;
    const char* name;
    unsigned int mask;
    int line, vote;
    Wait wait;
};

static const cuda_simulator_entry* entry;  // null while nothing runs
static cuda_simulator_state* state;
static Context main_context;
static Fiber fibers[MOST_THREADS + 1];
static Fiber* idle[MOST_THREADS + 1];
static int idle_count, fiber_count;
static Fiber* running;
static Thread threads[MOST_THREADS];
static unsigned int warp_arrived[MOST_THREADS / WARP];
static uint64_t ready[MOST_THREADS / 64];  // a bit for each rank: the thread of the least one runs next
static uint64_t ready_words;               // a bit for each word of `ready` that is not 0
static int waiting;     // threads that wait and are not ready
static int at_barrier;  // those of them at the barrier
static unsigned int votes;
static unsigned char ended[MOST_THREADS];
static int order[MOST_THREADS], rank_of[MOST_THREADS];  // the threads by rank, and each one's rank
static uint64_t phase, seed;
static bool inside;  // whether a fiber runs, and not the code that starts them
static bool failed, used_copies;
static char report[8192];
static Copies copies[MOST_THREADS];

static uint64_t mixed(uint64_t v) {
    v = (v ^ (v >> 30)) * 0xbf58476d1ce4e5b9u;
    v = (v ^ (v >> 27)) * 0x94d049bb133111ebu;
    return v ^ (v >> 31);
}

static void shuffle(int* list, int count) {
    uint64_t random = mixed(seed * 0x9e3779b97f4a7c15u + ++phase);
    for (int k = count - 1; k > 0; k--) {
        random = mixed(random + 0x9e3779b97f4a7c15u);
        int other = (int)(random % (uint64_t)(k + 1)), kept = list[k];
        list[k] = list[other];
        list[other] = kept;
    }
}

// The ranks of a block's threads: with seed 0 ascending, 1 descending, from 2 on permuted, odd ones warp by warp: then one warp runs ahead of others.
static void permute() {
    int count = state->count, warps = (count + WARP - 1) / WARP, list[MOST_THREADS / WARP];
    if (seed < 2) {
        for (int k = 0; k < count; k++) order[k] = seed ? count - 1 - k : k;
    } else if (seed & 1) {
        for (int k = 0; k < warps; k++) list[k] = k;
        shuffle(list, warps);
        int at = 0;
        for (int w = 0; w < warps; w++) {
            int first = at;
            for (int t = list[w] * WARP; t < count && t < (list[w] + 1) * WARP; t++) order[at++] = t;
            shuffle(order + first, at - first);
        }
    } else {
        for (int k = 0; k < count; k++) order[k] = k;
        shuffle(order, count);
    }
    for (int k = 0; k < count; k++) rank_of[order[k]] = k;
}

// ---- reports ----

static size_t add(size_t at, const char* format, ...) __attribute__((format(printf, 2, 3)));
static size_t add(size_t at, const char* format, ...) {
    if (at >= sizeof report - 1) return at;
    va_list arguments;
    va_start(arguments, format);
    int written = vsnprintf(report + at, sizeof report - at, format, arguments);
    va_end(arguments);
    return at + (written > 0 ? (size_t)written : 0);
}

static size_t add_thread(size_t at, int t) {
    unsigned int index = (unsigned int)t, row = index / state->threads.x;
    return add(at, "thread (%u, %u, %u)", index % state->threads.x, row % state->threads.y, row / state->threads.y);
}

static size_t add_place(size_t at) {
    return add(at, "kernel %s, block (%u, %u, %u), ", entry->name, state->block.x, state->block.y, state->block.z);
}

static void leave() __attribute__((noreturn));
static void leave() {
    failed = true;
    Context lost;
    change(lost, main_context);
    abort();
}

static void fail(const char* format, ...) {
    size_t at = add_thread(add_place(0), state->current);
    at = add(at, ": ");
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(report + at, sizeof report - at, format, arguments);
    va_end(arguments);
    leave();
}

// "thread (0, 0, 0) and 31 others <text>" for the threads that `chosen` picks.
template <class Chosen> static size_t add_threads(size_t at, const char* text, Chosen chosen) {
    int first = -1, others = -1;
    for (int t = 0; t < state->count; t++)
        if (chosen(t)) {
            if (first < 0) first = t;
            others++;
        }
    if (first < 0) return at;
    at = add_thread(add(at, "\n  "), first);
    if (others) at = add(at, " and %d other%s", others, others > 1 ? "s" : "");
    return add(at, " %s", text);
}

static void deadlock() __attribute__((noreturn));
static void deadlock() {
    size_t at = add_place(0);
    at = add(at, "%d of %d threads wait for others that never come:", waiting, state->count);
    bool told[MOST_THREADS] = {};
    for (int t = 0; t < state->count; t++) {
        if (told[t] || !threads[t].wait) continue;
        const Thread& like = threads[t];
        char text[200];
        if (like.wait == AT_BARRIER) snprintf(text, sizeof text, "at __syncthreads() in line %d", like.line);
        else snprintf(text, sizeof text, "at %s with mask 0x%08x in line %d", like.name, like.mask, like.line);
        at = add_threads(at, text, [&](int other) {
            const Thread& it = threads[other];
            bool same = it.wait == AT_BARRIER || (it.mask == like.mask && it.resolve == like.resolve && it.name == like.name);
            return same && it.wait == like.wait && it.line == like.line && (told[other] = true);
        });
    }
    add_threads(at, "ended", [](int t) { return ended[t] != 0; });
    leave();
}

// ---- changing over ----

static void change_fiber(Fiber* from, Fiber* to) {
    if (from == to) return;
    running = to;
    change(from->context, to->context);
}

static void fiber_begin();

static Fiber* idle_fiber() {
    Fiber* fiber;
    if (idle_count) fiber = idle[--idle_count];
    else {
        fiber = &fibers[fiber_count++];
        if (!fiber->stack) {
            void* stack = mmap(nullptr, GUARD + STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            if (stack == MAP_FAILED) abort();
            mprotect(stack, GUARD, PROT_NONE);
            fiber->stack = (char*)stack;
        }
    }
    if (!fiber->prepared) {
        fiber->prepared = true;
        // Stacks that begin at different places of a page do not compete for the same cache lines.
        size_t shift = (size_t)(fiber - fibers) * 192 % 4096;
        prepare(fiber->context, fiber->stack + GUARD, STACK - shift, fiber_begin);
    }
    return fiber;
}

static void resolve_warp(int warp, unsigned int mask, int by);

// Threads that ended may be all that a warp's threads wait for: warp functions need the threads of the mask that have not ended.
static bool release_warps() {
    bool released = false;
    for (int t = 0; t < state->count; t++) {
        if (threads[t].wait != IN_WARP) continue;
        int warp = t / WARP;
        unsigned int mask = threads[t].mask;
        bool all = true;
        for (int lane = 0; lane < WARP; lane++) {
            int other = warp * WARP + lane;
            if (!(mask >> lane & 1)) continue;
            if (other >= state->count || ended[other]) mask &= ~(1u << lane);
            else all &= threads[other].wait == IN_WARP && threads[other].mask == threads[t].mask && threads[other].resolve == threads[t].resolve;
        }
        if (all) {
            resolve_warp(warp, mask, -1);
            released = true;
        }
    }
    return released;
}

// Leaves the running fiber for whatever can run. With seeds that permute thread by thread all begin before one goes on.
static void schedule(Fiber* self) {
    for (;;) {
        bool begin = state->next < state->count;
        if (ready_words && !(begin && seed > 1 && !(seed & 1))) {
            int word = __builtin_ctzll(ready_words), rank = word * 64 + __builtin_ctzll(ready[word]);
            ready[word] &= ready[word] - 1;
            if (!ready[word]) ready_words &= ready_words - 1;
            return change_fiber(self, threads[order[rank]].fiber);
        }
        if (begin) return change_fiber(self, idle_fiber());
        if (!waiting) {
            change(self->context, main_context);
            return;
        }
        if (!release_warps()) deadlock();
    }
}

static void fiber_begin() {
    for (;;) {
        entry->run();
        Fiber* self = running;
        idle[idle_count++] = self;
        schedule(self);
    }
}

// The running thread waits until it is made ready.
static void wait_here(int t) {
    threads[t].fiber = running;
    schedule(running);
    state->enter(t);
}

static void make_ready(int t) {
    threads[t].wait = NOT;
    waiting--;
    int rank = rank_of[t];
    ready[rank / 64] |= (uint64_t)1 << rank % 64;
    ready_words |= (uint64_t)1 << rank / 64;
}

// ---- what kernels call ----

static unsigned int barrier(int line, int vote) {
    int t = state->current;
    threads[t].wait = AT_BARRIER;
    threads[t].line = line;
    threads[t].vote = vote;
    waiting++;
    if (++at_barrier < state->count) {
        wait_here(t);
        return votes;
    }
    votes = 0;
    for (int k = 0; k < state->count; k++) {
        if (threads[k].line != line) deadlock();
        votes += threads[k].vote != 0;
    }
    at_barrier = 0;
    if (seed > 1) permute();
    for (int k = 0; k < state->count; k++) make_ready(k);
    unsigned int result = votes;
    wait_here(t);
    return result;
}

static void resolve_warp(int warp, unsigned int mask, int by) {
    void* lanes[WARP] = {};
    int first = __builtin_ctz(mask);
    for (int lane = 0; lane < WARP; lane++)
        if (mask >> lane & 1) lanes[lane] = threads[warp * WARP + lane].posted;
    threads[warp * WARP + first].resolve(lanes, mask);
    warp_arrived[warp] &= ~mask;
    for (int lane = 0; lane < WARP; lane++)
        if ((mask >> lane & 1) && warp * WARP + lane != by) make_ready(warp * WARP + lane);
}

static void collective(unsigned int mask, void* mine, cuda_simulator_resolve resolve, int line, const char* name) {
    int t = state->current, warp = t / WARP, lane = t % WARP;
    if (!(mask >> lane & 1)) fail("%s in line %d with mask 0x%08x, which lacks the calling lane %d", name, line, mask, lane);
    int lanes = state->count - warp * WARP;
    unsigned int there = lanes < WARP ? mask & ((1u << lanes) - 1) : mask;
    Thread& self = threads[t];
    self.posted = mine;
    self.resolve = resolve;
    self.name = name;
    self.mask = mask;
    self.line = line;
    warp_arrived[warp] |= 1u << lane;
    bool all = (warp_arrived[warp] & there) == there;
    for (int k = 0; all && k < WARP; k++) {
        const Thread& other = threads[warp * WARP + k];
        if (there >> k & 1) all = other.mask == mask && other.resolve == resolve;
    }
    if (all) return resolve_warp(warp, there, t);
    self.wait = IN_WARP;
    waiting++;
    wait_here(t);
}

// Asynchronous copies are made as late as they may be, with odd seeds as soon as they may be.

static void copy_now(const Copy& copy) {
    memcpy(copy.to, copy.from, (size_t)copy.given);
    memset((char*)copy.to + copy.given, 0, (size_t)(copy.bytes - copy.given));
}

static void make_room(Copies& mine) {
    if (mine.count < mine.room && mine.groups < mine.room) return;
    mine.room = mine.room ? 2 * mine.room : 16;
    mine.items = (Copy*)realloc(mine.items, (size_t)mine.room * sizeof(Copy));
    mine.ends = (int*)realloc(mine.ends, (size_t)mine.room * sizeof(int));
}

static void copy_later(void* to, const void* from, int bytes, int given) {
    bool aligned = ((uintptr_t)to | (uintptr_t)from) % (unsigned)bytes == 0;
    if (!aligned) fail("an asynchronous copy of %d bytes from %p to %p, which must be multiples of it", bytes, from, to);
    if (given < 0 || given > bytes) fail("an asynchronous copy of %d of %d bytes", given, bytes);
    Copy copy = {to, from, bytes, given};
    if (seed & 1) return copy_now(copy);
    used_copies = true;
    Copies& mine = copies[state->current];
    make_room(mine);
    mine.items[mine.count++] = copy;
}

static void copies_commit() {
    if (seed & 1) return;
    used_copies = true;
    Copies& mine = copies[state->current];
    make_room(mine);
    mine.ends[mine.groups++] = mine.count;
}

// Finishes all groups but the `pending` newest; -1: everything, committed or not.
static void copies_wait(int pending) {
    Copies& mine = copies[state->current];
    int finished = pending < 0 ? mine.groups : mine.groups - pending;
    int last = pending < 0 ? mine.count : finished > 0 ? mine.ends[finished - 1] : 0;
    for (int k = 0; k < last; k++) copy_now(mine.items[k]);
    if (finished <= 0 && last == 0) return;
    memmove(mine.items, mine.items + last, (size_t)(mine.count - last) * sizeof(Copy));
    mine.count -= last;
    for (int k = finished; k < mine.groups; k++) mine.ends[k - finished] = mine.ends[k] - last;
    mine.groups -= finished;
}

static const cuda_simulator_runtime functions = {barrier, collective, copy_later, copies_commit, copies_wait, fail};

// ---- faults ----

#ifndef __SANITIZE_ADDRESS__
static struct sigaction previous[NSIG];

static void on_fault(int number, siginfo_t* info, void*) {
    if (!inside) {
        sigaction(number, &previous[number], nullptr);
        return;  // and fault again
    }
    char* address = (char*)info->si_addr;
    for (int k = 0; k < fiber_count; k++)
        if (address >= fibers[k].stack && address < fibers[k].stack + GUARD) fail("its stack of %zu KiB overflowed", STACK >> 10);
    if (number == SIGFPE) fail("division of an integer by zero, or of the lowest by -1");
    if (number == SIGILL) fail("access to an address that is no multiple of the type's alignment, or another trap");
    fail("access to address %p, which is not mapped or not aligned", (void*)address);
}
#endif

// A kernel whose threads wait for one another by looking at memory never ends here. The signal comes for each second of the process's own time.
EXPORTED int cuda_simulator_patience = 300;
static int seconds_inside;
static pthread_t launching;

static struct sigaction other_second;  // of a second runtime in the same process

static void on_second(int number) {
    if (!inside && other_second.sa_handler != SIG_DFL && other_second.sa_handler != SIG_IGN) return other_second.sa_handler(number);
    if (!inside || ++seconds_inside < cuda_simulator_patience) return;
    if (!pthread_equal(pthread_self(), launching)) pthread_kill(launching, number);
    else fail("the launch has taken %d seconds: does it wait for a thread that does not run?", seconds_inside);
}

static void count_seconds() {
    launching = pthread_self();
    seconds_inside = 0;
    static bool begun;
    if (begun) return;
    begun = true;
    struct sigaction action = {};
    action.sa_handler = on_second;
    action.sa_flags = SA_ONSTACK | SA_NODEFER | SA_RESTART;
    sigaction(SIGVTALRM, &action, &other_second);
    itimerval each = {{1, 0}, {1, 0}};
    setitimer(ITIMER_VIRTUAL, &each, nullptr);
}

static void catch_faults() {
#ifdef __SANITIZE_ADDRESS__
    static bool asked;
    if (asked) return;
    asked = true;
    __asan_set_error_report_callback([](const char*) {
        if (!entry) return;
        add_thread(add_place(0), state->current);
        fprintf(stderr, "CUDA simulator: %s\n", report);
    });
#else
    static thread_local char* stack;
    if (stack) return;
    const size_t size = 64 << 10;
    stack = (char*)malloc(size);
    stack_t alternate = {};
    alternate.ss_sp = stack;
    alternate.ss_size = size;
    sigaltstack(&alternate, nullptr);
    struct sigaction action = {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    for (int number : faults) sigaction(number, &action, &previous[number]);
#endif
}

// ---- launching ----

// Odd seeds leave other values than even ones: NaN in every type of floating-point number, and -1; or large numbers.
UNCHECKED static void spoil(char* from, char* to) {
    char value = seed & 1 ? 0x7b : (char)0xff;
    for (volatile char* p = from; p < to && ((uintptr_t)p & 7); p++) *p = value;
    char* aligned = (char*)(((uintptr_t)from + 7) & ~(uintptr_t)7);
    uint64_t values = seed & 1 ? 0x7b7b7b7b7b7b7b7bu : ~(uint64_t)0;
    for (; aligned + 8 <= to; aligned += 8) *(volatile uint64_t*)aligned = values;
    for (; aligned < to; aligned++) *(volatile char*)aligned = value;
}

static void run_block() {
    if (entry->shared_begin) spoil(entry->shared_begin, entry->shared_end);
    memset(ended, 0, (size_t)state->count);
    state->next = 0;
    if (seed > 1) permute();
    running = idle_fiber();
    inside = true;
    change(main_context, running->context);
    inside = false;
    if (!used_copies) return;
    for (int t = 0; t < state->count; t++) copies[t].count = copies[t].groups = 0;
}

// After an error the fibers are left where they are.
static void forget() {
    for (int k = 0; k < fiber_count; k++) {
        fibers[k].prepared = false;
#ifdef __SANITIZE_ADDRESS__
        __asan_unpoison_memory_region(fibers[k].stack + GUARD, STACK);
#endif
    }
    fiber_count = idle_count = 0;
    ready_words = waiting = at_barrier = 0;
    memset(ready, 0, sizeof ready);
    for (int t = 0; t < MOST_THREADS; t++) {
        threads[t].wait = NOT;
        copies[t].count = copies[t].groups = 0;
    }
    memset(warp_arrived, 0, sizeof warp_arrived);
}

EXPORTED const char* cuda_simulator_launch(const cuda_simulator_entry* kernel, void** parameters, const unsigned int* sizes, uint64_t with_seed,
                                           size_t shared) {
    void* memory = nullptr;
    if (shared && posix_memalign(&memory, 1024, shared)) return "no memory";
    catch_faults();
    count_seconds();
    state = kernel->state;
    state->runtime = &functions;
    state->parameters = parameters;
    state->blocks = dim3(sizes[0], sizes[1], sizes[2]);
    state->threads = dim3(sizes[3], sizes[4], sizes[5]);
    state->count = (int)(sizes[3] * sizes[4] * sizes[5]);
    state->flat = sizes[4] == 1 && sizes[5] == 1;
    state->ended = ended;
    entry = kernel;
    seed = with_seed;
    phase = 0;
    failed = used_copies = false;
    state->order = seed ? order : nullptr;
    char* dynamic = (char*)memory;
    state->dynamic_shared = dynamic;
    permute();
    uint64_t plane = (uint64_t)sizes[0] * sizes[1], count = plane * sizes[2];
    for (uint64_t k = 0; k < count && !failed; k++) {
        uint64_t b = seed & 1 ? count - 1 - k : k;
        state->block = uint3{(unsigned int)(b % sizes[0]), (unsigned int)(b % plane / sizes[0]), (unsigned int)(b / plane)};
        if (dynamic) spoil(dynamic, dynamic + shared);
        run_block();
    }
    if (failed) forget();
    free(dynamic);
    state->dynamic_shared = nullptr;
    entry = nullptr;
    return failed ? report : nullptr;
}

// ---- global memory ----

// The address sanitizer sees every access beside a piece of memory. Without it, the bytes before and after are looked at when the piece is freed.
#ifdef __SANITIZE_ADDRESS__
const size_t ZONE = 0;
#else
const size_t ZONE = 256;
#endif
const unsigned char UNTOUCHED = 0xc3;

EXPORTED void* cuda_simulator_allocate(size_t bytes, int value) {
    void* memory;
    if (posix_memalign(&memory, 256, bytes + 2 * ZONE)) return nullptr;
    char* begin = (char*)memory + ZONE;
    if (ZONE) {
        memset(memory, UNTOUCHED, ZONE);
        memcpy(memory, &bytes, sizeof bytes);
        memset(begin + bytes, UNTOUCHED, ZONE);
    }
    memset(begin, value, bytes);
    return begin;
}

// How far before or behind the piece the first byte is that was written; 0: none.
EXPORTED int64_t cuda_simulator_free(char* begin) {
    char* memory = begin - ZONE;
    int64_t touched = 0;
    if (ZONE) {
        size_t bytes;
        memcpy(&bytes, memory, sizeof bytes);
        for (size_t k = ZONE - 1; k >= sizeof bytes; k--)
            if ((unsigned char)memory[k] != UNTOUCHED && !touched) touched = (int64_t)k - (int64_t)ZONE;
        for (size_t k = 0; k < ZONE && !touched; k++)
            if ((unsigned char)begin[bytes + k] != UNTOUCHED) touched = (int64_t)k + 1;
    }
    free(memory);
    return touched;
}
