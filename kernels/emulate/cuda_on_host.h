// SPDX-License-Identifier: MIT OR Apache-2.0
// Emulates the execution of kernels on the host, for tests without a GPU. In: a grid, and a
// function that is run once per thread. Out: its effects on memory.
//
// Each thread of a block is a fiber with a stack of its own. A fiber runs until it waits for its
// warp (ballots, shuffles), waits for its block (barriers), or calls backoff; several blocks are
// resident at a time. The scheduler selects the next fiber at random, from a seed, and fibers yield
// at random at atomic operations and relaxed loads, so that tests fail for a kernel whose result
// depends on the order of threads. Shared memory is initialized with 0xa5, and a collective that
// not all lanes reach ends the process with a message. Memory is sequentially consistent and fences
// are no operations: errors of memory order, and in inline PTX, which has host versions, are not
// found here.
#pragma once

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <functional>
#include <memory>
#include <vector>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace cuda_on_host {

struct Index {
    uint32_t x = 1, y = 1, z = 1;
};

#if defined(__x86_64__)
// Saves the callee-saved registers on the current stack, and restores them from the other.
extern "C" void nmsfilter_switch_stacks(void **left, void *entered);
__asm__(R"(
    .text
    .weak nmsfilter_switch_stacks
    .type nmsfilter_switch_stacks, @function
nmsfilter_switch_stacks:
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
    .size nmsfilter_switch_stacks, . - nmsfilter_switch_stacks
)");
#endif

constexpr size_t STACK_BYTES = 64 * 1024;

struct Block;

struct Fiber {
    std::unique_ptr<char[]> stack{new char[STACK_BYTES]};
#if defined(__x86_64__)
    void *context = nullptr;
#else
    ucontext_t context;
#endif
    Block *block = nullptr;
    Index thread;
    uint32_t warp = 0, lane = 0;
    bool finished = true;
    uint32_t collectives = 0; // of its warp, that it has reached
    bool backs_off = false;   // it yielded in backoff
};

// A bit per lane in `lanes`, `ready`, `in_collective`, `at_barrier`, `arrived` and `votes`.
struct Warp {
    uint32_t lanes = 0;
    uint32_t ready = 0; // neither finished nor waiting
    uint32_t in_collective = 0, at_barrier = 0;
    uint32_t arrived[2] = {};
    uint32_t votes[2] = {}; // values other than 0
    uint64_t values[2][32] = {};
};

struct Block {
    Index index;
    std::vector<Fiber> fibers;
    std::vector<Warp> warps;
    uint32_t threads = 0; // fibers in use
    uint32_t live = 0, arrived = 0;
    uint64_t barriers = 0; // complete ones
    int all[2] = {1, 1};   // the conjunction of __syncthreads_and
    std::vector<char> shared;
};

// Its initializer is a constant and it is in static memory of the thread, so that access needs no call.
struct Device {
    Index grid, block;
    const std::function<void()> *body = nullptr;
    uint64_t random = 1;
    Fiber *running = nullptr;
#if defined(__x86_64__)
    void *context = nullptr;
#else
    ucontext_t context = {};
#endif
#if defined(__SANITIZE_ADDRESS__)
    void *fake_stack = nullptr;
    const void *stack = nullptr;
    size_t stack_bytes = 0;
#endif

    uint32_t draw(uint32_t below) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        return uint32_t((random >> 32) % below);
    }
};

inline __thread Device device __attribute__((tls_model("initial-exec")));
// The blocks of the thread's launches, which keep their fibers.
inline thread_local std::vector<std::unique_ptr<Block>> blocks;

[[noreturn]] inline void fail(const char *why) {
    fprintf(stderr, "emulated kernel: %s\n", why);
    abort();
}

// Switches from the running fiber to the scheduler.
inline void yield() {
    Fiber *self = device.running;
#if defined(__SANITIZE_ADDRESS__)
    void *fake = nullptr;
    __sanitizer_start_switch_fiber(self->finished ? nullptr : &fake, device.stack,
                                   device.stack_bytes);
#endif
#if defined(__x86_64__)
    nmsfilter_switch_stacks(&self->context, device.context);
#else
    swapcontext(&self->context, &device.context);
#endif
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(fake, &device.stack, &device.stack_bytes);
#endif
}

inline void complete_barrier(Block &block) {
    if (block.live != 0 && block.arrived == block.live) {
        block.arrived = 0;
        block.barriers++;
        block.all[block.barriers % 2] = 1;
        for (Warp &warp : block.warps) {
            warp.ready |= warp.at_barrier;
            warp.at_barrier = 0;
        }
    }
}

inline void fiber_main() {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(nullptr, &device.stack, &device.stack_bytes);
#endif
    (*device.body)();
    Fiber *self = device.running;
    self->finished = true;
    self->block->warps[self->warp].ready &= ~(1u << self->lane);
    self->block->live--;
    complete_barrier(*self->block);
    yield();
    fail("a finished thread was resumed");
}

inline void resume(Fiber &fiber) {
    device.running = &fiber;
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(&device.fake_stack, fiber.stack.get(), STACK_BYTES);
#endif
#if defined(__x86_64__)
    nmsfilter_switch_stacks(&device.context, fiber.context);
#else
    swapcontext(&device.context, &fiber.context);
#endif
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(device.fake_stack, nullptr, nullptr);
#endif
}

inline void prepare(Fiber &fiber) {
#if defined(__SANITIZE_ADDRESS__)
    // The stack frames of a finished fiber are still poisoned.
    __asan_unpoison_memory_region(fiber.stack.get(), STACK_BYTES);
#endif
#if defined(__x86_64__)
    // The stack as nmsfilter_switch_stacks leaves it: six registers, then the return address, with
    // the alignment that it has after a call.
    uintptr_t top = (uintptr_t)(fiber.stack.get() + STACK_BYTES) & ~uintptr_t(15);
    void **at = (void **)top;
    *--at = nullptr;
    *--at = (void *)fiber_main;
    for (int i = 0; i < 6; i++) {
        *--at = nullptr;
    }
    fiber.context = at;
#else
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.get();
    fiber.context.uc_stack.ss_size = STACK_BYTES;
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, fiber_main, 0);
#endif
}

inline void begin(Block &block, uint64_t number) {
    const Index size = device.block, grid = device.grid;
    const uint32_t threads = size.x * size.y * size.z;
    block.index.x = uint32_t(number % grid.x);
    block.index.y = uint32_t(number / grid.x % grid.y);
    block.index.z = uint32_t(number / grid.x / grid.y);
    block.threads = threads;
    if (block.fibers.size() < threads) {
        block.fibers = std::vector<Fiber>(threads);
    }
    block.warps.assign((threads + 31) / 32, Warp());
    block.live = threads;
    block.arrived = 0;
    block.barriers = 0;
    block.all[0] = block.all[1] = 1;
    block.shared = std::vector<char>();
    for (uint32_t i = 0; i < threads; i++) {
        Fiber &fiber = block.fibers[i];
        fiber.block = &block;
        fiber.thread.x = i % size.x;
        fiber.thread.y = i / size.x % size.y;
        fiber.thread.z = i / size.x / size.y;
        fiber.warp = i / 32;
        fiber.lane = i % 32;
        fiber.finished = false;
        fiber.collectives = 0;
        block.warps[fiber.warp].lanes |= 1u << fiber.lane;
        prepare(fiber);
    }
    for (Warp &warp : block.warps) {
        warp.ready = warp.lanes;
    }
}

// Runs a warp's lanes for some steps. Returns whether any of them ran.
inline bool run_warp(Block &block, uint32_t warp) {
    Fiber *const fibers = &block.fibers[warp * 32];
    const uint32_t count = block.threads - warp * 32 < 32 ? block.threads - warp * 32 : 32;
    const uint32_t &ready = block.warps[warp].ready;
    bool any = false;
    for (uint32_t turn = 0, turns = 1 + device.draw(16); turn < turns; turn++) {
        const uint32_t start = device.draw(count);
        bool moved = false, backed_off = false;
        // Each lane from `start` on, then those before it, unless it waits when it is its turn.
        for (uint32_t part : {~0u << start, (1u << start) - 1}) {
            for (uint32_t lanes; (lanes = ready & part) != 0;) {
                const uint32_t lane = uint32_t(__builtin_ctz(lanes));
                Fiber &fiber = fibers[lane];
                fiber.backs_off = false;
                resume(fiber);
                moved = true;
                backed_off |= fiber.backs_off;
                part &= ~1u << lane;
            }
        }
        any |= moved;
        if (!moved || backed_off) {
            break;
        }
    }
    return any;
}

// Runs `body` once for every thread of `grid` blocks of `block` threads, at most `resident` blocks
// at a time.
inline void launch(Index grid, Index block, uint32_t resident, uint64_t seed,
                   const std::function<void()> &body) {
    device.grid = grid;
    device.block = block;
    device.body = &body;
    device.random = seed * 0x9e3779b97f4a7c15u | 1;
    const uint64_t count = uint64_t(grid.x) * grid.y * grid.z;
    uint64_t next = 0;
    size_t active = 0;
    for (; active < resident && next < count; active++) {
        if (blocks.size() == active) {
            blocks.emplace_back(new Block);
        }
        begin(*blocks[active], next++);
    }
    while (active != 0) {
        bool any = false;
        for (size_t i = 0; i < active; i++) {
            Block &one = *blocks[(i + device.draw(uint32_t(active))) % active];
            const uint32_t warps = uint32_t(one.warps.size()), start = device.draw(warps);
            for (uint32_t w = 0; w < warps && one.live != 0; w++) {
                any |= run_warp(one, (start + w) % warps);
            }
        }
        bool finished = false;
        for (size_t i = 0; i < active;) {
            if (blocks[i]->live != 0) {
                i++;
            } else if (finished = true; next < count) {
                begin(*blocks[i++], next++);
            } else {
                std::swap(blocks[i], blocks[--active]);
            }
        }
        if (!any && !finished) {
            for (size_t i = 0; i < active; i++) {
                for (uint32_t w = 0; w < blocks[i]->warps.size(); w++) {
                    any |= run_warp(*blocks[i], w);
                }
            }
            if (!any) {
                fail("deadlock");
            }
        }
    }
}

// The warp's next collective: its slot in `values` and `votes`.
inline uint32_t gather(Warp &warp, uint32_t mask, uint64_t value) {
    Fiber *self = device.running;
    if (mask != warp.lanes) {
        fail("a collective without all lanes of the warp");
    }
    const uint32_t slot = self->collectives++ % 2, lane = 1u << self->lane;
    if (warp.arrived[slot] == 0) {
        warp.votes[slot] = 0;
    }
    warp.values[slot][self->lane] = value;
    warp.votes[slot] |= value != 0 ? lane : 0;
    warp.arrived[slot] |= lane;
    if (warp.arrived[slot] == warp.lanes) {
        warp.arrived[slot] = 0;
        warp.ready |= warp.in_collective;
        warp.in_collective = 0;
    } else {
        warp.in_collective |= lane;
        warp.ready &= ~lane;
        yield();
    }
    return slot;
}

inline Warp &own_warp() { return device.running->block->warps[device.running->warp]; }

inline int barrier(int value) {
    Fiber *self = device.running;
    Block &block = *self->block;
    const uint64_t reached = block.barriers;
    block.all[reached % 2] &= value != 0;
    block.arrived++;
    // complete_barrier resets the other slot; this one keeps its value until the next barrier.
    complete_barrier(block);
    if (block.barriers == reached) {
        Warp &warp = own_warp();
        warp.at_barrier |= 1u << self->lane;
        warp.ready &= ~(1u << self->lane);
        yield();
    }
    return block.all[reached % 2];
}

inline void backoff() {
    device.running->backs_off = true;
    yield();
}

// Called where the order of threads can matter.
inline void interrupt() {
    if (device.draw(8) == 0) {
        yield();
    }
}

template <typename T> T &shared() {
    Block &block = *device.running->block;
    if (block.shared.empty()) {
        block.shared.assign(sizeof(T), char(0xa5));
    } else if (block.shared.size() != sizeof(T)) {
        fail("a kernel has one object in shared memory");
    }
    return *(T *)block.shared.data();
}

template <typename T> T from_bits(uint64_t bits) {
    T value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
template <typename T> uint64_t to_bits(T value) {
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    return bits;
}

} // namespace cuda_on_host

#define KERNEL(threads, blocks_per_multiprocessor) static void
#define DEVICE inline
#define BLOCK_SHARED(type, name) type &name = cuda_on_host::shared<type>()
#define YIELD_POINT() cuda_on_host::interrupt()

#define threadIdx (cuda_on_host::device.running->thread)
#define blockIdx (cuda_on_host::device.running->block->index)
#define blockDim (cuda_on_host::device.block)
#define gridDim (cuda_on_host::device.grid)

struct alignas(16) float4 {
    float x, y, z, w;
};

inline uint64_t device_clock() { return 0; }
inline void backoff() { cuda_on_host::backoff(); }

inline uint32_t __float_as_uint(float a) { return uint32_t(cuda_on_host::to_bits(a)); }
inline float __uint_as_float(uint32_t a) { return cuda_on_host::from_bits<float>(a); }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fsqrt_rn(float a) { return sqrtf(a); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline uint16_t float_to_half(float a) { return uint16_t(cuda_on_host::to_bits(_Float16(a))); }
inline int __popc(uint32_t a) { return __builtin_popcount(a); }
inline int __ffs(uint32_t a) { return __builtin_ffs(int(a)); }
inline uint32_t min(uint32_t a, uint32_t b) { return a < b ? a : b; }
inline uint32_t max(uint32_t a, uint32_t b) { return a > b ? a : b; }
template <typename T> T __ldg(const T *at) { return *at; }

inline void __syncthreads() { cuda_on_host::barrier(1); }
inline int __syncthreads_and(int value) { return cuda_on_host::barrier(value); }
inline void __syncwarp() { cuda_on_host::gather(cuda_on_host::own_warp(), ~0u, 0); }
inline void __threadfence_system() {}

inline uint32_t __ballot_sync(uint32_t mask, bool value) {
    cuda_on_host::Warp &warp = cuda_on_host::own_warp();
    return warp.votes[cuda_on_host::gather(warp, mask, value)];
}
inline bool __any_sync(uint32_t mask, bool value) { return __ballot_sync(mask, value) != 0; }
template <typename T> T __shfl_sync(uint32_t mask, T value, uint32_t lane) {
    cuda_on_host::Warp &warp = cuda_on_host::own_warp();
    const uint32_t slot = cuda_on_host::gather(warp, mask, cuda_on_host::to_bits(value));
    return cuda_on_host::from_bits<T>(warp.values[slot][lane]);
}
template <typename T> T __shfl_xor_sync(uint32_t mask, T value, uint32_t distance) {
    const uint32_t lane = cuda_on_host::device.running->lane;
    return __shfl_sync(mask, value, lane ^ distance);
}
template <typename T> T __shfl_up_sync(uint32_t mask, T value, uint32_t distance) {
    const uint32_t lane = cuda_on_host::device.running->lane;
    return __shfl_sync(mask, value, lane < distance ? lane : lane - distance);
}

inline uint32_t atomicAdd(uint32_t *at, uint32_t value) {
    cuda_on_host::interrupt();
    const uint32_t old = *at;
    *at += value;
    return old;
}
inline uint32_t atomicOr(uint32_t *at, uint32_t value) {
    cuda_on_host::interrupt();
    const uint32_t old = *at;
    *at |= value;
    return old;
}
inline uint32_t atomicMax(uint32_t *at, uint32_t value) {
    cuda_on_host::interrupt();
    const uint32_t old = *at;
    *at = value > old ? value : old;
    return old;
}
