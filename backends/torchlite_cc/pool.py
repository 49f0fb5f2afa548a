"""Threads for kernels, in a program of their own: to hand work on takes neither Python nor its lock.

A launch of a kernel lasts a tenth of a millisecond, and a thread of Python's begins with its part of it when it was
woken, was given the interpreter's lock, and went through the calls that lead to the kernel; what waits for it is woken
in the same way. Of 16 MiB, added up row by row, that took a quarter to a half of the time (two Zen 4 cores: 156 us
here, 200 to 230 by the threads of `torchlite_numpy.blocks`, 120 where threads spin).

Nothing spins here: threads sleep until there is work, and who waits for the last of them sleeps too. Who comes too late
finds nothing to do and is not waited for. Calls of several user threads are served side by side, by as many threads as
the largest of them was granted. A forked child begins without any.
"""

from __future__ import annotations

import ctypes
import functools

from . import build

TEXT = r"""
#include <pthread.h>
#include <signal.h>

typedef int (*Share)(const void* given, const int* sizes, long long count, long long parts, int* taken);
struct Job {
    Share share;
    const void* given;
    const int* sizes;
    long long count, parts;
    int taken, wanted, running, failed;
    pthread_cond_t done;
    Job* next;
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
static Job* first = nullptr;  // jobs that want more threads, the oldest first
static int threads = 0, watched = 0;

static void unlink(Job* job) {
    for (Job** at = &first; *at; at = &(*at)->next) {
        if (*at == job) {
            *at = job->next;
            return;
        }
    }
}

static int go(Job* job) { return job->share(job->given, job->sizes, job->count, job->parts, &job->taken); }

static void* serve(void*) {
    pthread_mutex_lock(&lock);
    for (;;) {
        while (!first) pthread_cond_wait(&work, &lock);
        Job* job = first;
        if (!--job->wanted) unlink(job);
        job->running++;
        pthread_mutex_unlock(&lock);
        const int failed = go(job);
        pthread_mutex_lock(&lock);
        job->failed |= failed;
        if (!--job->running) pthread_cond_signal(&job->done);
    }
}

static void in_child() {
    static const pthread_mutex_t fresh_lock = PTHREAD_MUTEX_INITIALIZER;
    static const pthread_cond_t fresh_work = PTHREAD_COND_INITIALIZER;
    __builtin_memcpy(&lock, &fresh_lock, sizeof lock);
    __builtin_memcpy(&work, &fresh_work, sizeof work);
    first = nullptr;
    threads = 0;
}

// Have so many threads there, or as many as the system gives. Signals stay the callers'.
static void start(int wanted) {
    if (threads >= wanted) return;
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
    pthread_mutex_lock(&lock);
    start(others);
    Job** at = &first;
    while (*at) at = &(*at)->next;
    *at = &job;
    pthread_mutex_unlock(&lock);
    if (others > 1) pthread_cond_broadcast(&work);
    else pthread_cond_signal(&work);
    const int failed = go(&job);
    pthread_mutex_lock(&lock);
    if (job.wanted) unlink(&job);
    while (job.running) pthread_cond_wait(&job.done, &lock);
    pthread_mutex_unlock(&lock);
    pthread_cond_destroy(&job.done);
    return failed | job.failed;
}
"""


@functools.cache
def sharing(may_build: bool):
    """`share_with` above, as a function of ctypes."""
    function = build.load(TEXT, may_build)["share_with"]
    function.argtypes = (
        ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_longlong, ctypes.c_longlong, ctypes.c_int,
    )  # fmt: skip
    return function
