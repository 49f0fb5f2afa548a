"""Native thread pool: starts kernels on several threads without Python or its GIL.

A kernel launch lasts a tenth of a millisecond. A Python thread starts its part only after it was woken, got the GIL,
and made its calls; the waiting thread is woken the same way. For a row sum of 16 MiB that took a quarter to a half of
the time (two Zen 4 cores: 156 us here, 200 to 230 by the threads of `torchlite_backends.numpy.cache_blocking`, 120 with
spinning threads).

Threads sleep until there is work, but spin first: an idle core of a virtual machine takes 30 to 60 us to wake, and
programs launch again and again. For `SPAN` after its last part a thread polls for the next one and yields its core all
the while. If another thread took the core, or there are more threads than cores, polling stops for a while. The thread
that waits for the last part does the same. A thread that comes too late finds no work and is not waited for. Calls of
several user threads run concurrently, on as many threads as the largest of them was granted. A forked child starts
without threads.
"""

from __future__ import annotations

import ctypes
import functools

from . import program_build

SOURCE = r"""
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

typedef int (*Share)(const void* given, const int* sizes, long long count, long long parts, int* taken);
struct Job {
    Share share;
    const void* given;
    const int* sizes;
    long long count, parts;
    int taken, wanted, failed;
    int running;  // read without the lock
    pthread_cond_t done;
    Job* next;
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
static Job* first = nullptr;  // jobs that want more threads, the oldest first; read without the lock
static int threads = 0, watched = 0;
static int looking = 0;  // threads that look for work and do not sleep
static int cores = 0;
static long long crowded = 0;  // until then another process wants the cores

// Nanoseconds for which who has nothing to do looks for more, after which an offer of the core was taken (a slice of
// another process lasts a millisecond or more, an interrupt or a host of a virtual machine takes 20 to 100 us), and
// for which nobody looks then.
static const long long SPAN = 100000, TAKEN = 300000, PAUSE = 20000000;

static long long now() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static inline void rest() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

// The lock is held for some instructions: who finds it taken does not sleep for that.
static void hold() {
    for (int k = 0; k < 100; k++) {
        if (!pthread_mutex_trylock(&lock)) return;
        rest();
    }
    pthread_mutex_lock(&lock);
}

// Waits without sleeping until there is what is waited for, a while at most.
template <class There> static void look(There there) {
    long long time = now();
    if (time < __atomic_load_n(&crowded, __ATOMIC_RELAXED)) return;
    const long long end = time + SPAN;
    do {
        for (int k = 0; k < 32; k++) {
            if (there()) return;
            rest();
        }
        const long long offered = now();
        sched_yield();
        time = now();
        if (time - offered > TAKEN) {
            __atomic_store_n(&crowded, time + PAUSE, __ATOMIC_RELAXED);
            return;
        }
    } while (time < end);
}

static void unlink(Job* job) {
    for (Job** at = &first; *at; at = &(*at)->next) {
        if (*at == job) {
            __atomic_store_n(at, job->next, __ATOMIC_RELEASE);
            return;
        }
    }
}

static int go(Job* job) { return job->share(job->given, job->sizes, job->count, job->parts, &job->taken); }

static void* serve(void*) {
    hold();
    for (;;) {
        if (!first && threads < cores) {
            looking++;
            pthread_mutex_unlock(&lock);
            look([] { return __atomic_load_n(&first, __ATOMIC_ACQUIRE) != nullptr; });
            hold();
            looking--;
        }
        while (!first) pthread_cond_wait(&work, &lock);
        Job* job = first;
        if (!--job->wanted) unlink(job);
        __atomic_add_fetch(&job->running, 1, __ATOMIC_RELAXED);
        pthread_mutex_unlock(&lock);
        const int failed = go(job);
        hold();
        job->failed |= failed;
        if (!__atomic_sub_fetch(&job->running, 1, __ATOMIC_RELEASE)) pthread_cond_signal(&job->done);
    }
}

static void in_child() {
    static const pthread_mutex_t fresh_lock = PTHREAD_MUTEX_INITIALIZER;
    static const pthread_cond_t fresh_work = PTHREAD_COND_INITIALIZER;
    __builtin_memcpy(&lock, &fresh_lock, sizeof lock);
    __builtin_memcpy(&work, &fresh_work, sizeof work);
    first = nullptr;
    threads = looking = 0;
}

static int available() {
#if defined(__linux__)
    cpu_set_t set;
    if (!sched_getaffinity(0, sizeof set, &set)) return CPU_COUNT(&set);
#endif
    return (int)sysconf(_SC_NPROCESSORS_ONLN);
}

// Have so many threads there, or as many as the system gives. Signals stay the callers'.
static void start(int wanted) {
    if (threads >= wanted) return;
    cores = available();
    if (!watched) watched = !pthread_atfork(nullptr, nullptr, in_child);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t made;
    while (threads < wanted && !pthread_create(&made, nullptr, serve, nullptr)) {
        pthread_detach(made);
        threads++;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// Runs all parts of a launch, with the help of up to `others` threads; not 0 when the kernel refused.
extern "C" __attribute__((visibility("default"))) int share_with(Share share, const void* given, const int* sizes,
    long long count, long long parts, int others) {
    Job job = {share, given, sizes, count, parts, 0, others, 0, 0, PTHREAD_COND_INITIALIZER, nullptr};
    hold();
    start(others);
    Job** at = &first;
    int sleepers = others - looking;
    for (; *at; at = &(*at)->next) sleepers += (*at)->wanted;
    __atomic_store_n(at, &job, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lock);
    if (sleepers > 1) pthread_cond_broadcast(&work);
    else if (sleepers == 1) pthread_cond_signal(&work);
    const int failed = go(&job);
    hold();
    if (job.wanted) unlink(&job);
    if (job.running && threads < cores) {
        pthread_mutex_unlock(&lock);
        look([&] { return !__atomic_load_n(&job.running, __ATOMIC_ACQUIRE); });
        hold();
    }
    while (job.running) pthread_cond_wait(&job.done, &lock);
    pthread_mutex_unlock(&lock);
    pthread_cond_destroy(&job.done);
    return failed | job.failed;
}
"""


@functools.cache
def parallel_runner(may_build: bool):
    """Return the program's `share_with` as a ctypes function."""
    function = program_build.load_program(SOURCE, may_build)["share_with"]
    function.argtypes = (
        ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_longlong, ctypes.c_longlong, ctypes.c_int,
    )  # fmt: skip
    return function
