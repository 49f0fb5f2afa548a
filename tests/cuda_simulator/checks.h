// What g++ calls where a program does what -fsanitize=alignment,bounds,shift-exponent look for; a GPU would trap, or give something else than this processor.
#pragma once

struct cuda_simulator_place { const char* file; unsigned int line, column; };
struct cuda_simulator_type { unsigned short kind, information; char name[1]; };
struct cuda_simulator_access { cuda_simulator_place place; const cuda_simulator_type* type; unsigned char alignment, kind; };
struct cuda_simulator_index { cuda_simulator_place place; const cuda_simulator_type *array, *index; };
struct cuda_simulator_shift { cuda_simulator_place place; const cuda_simulator_type *left, *right; };

extern "C" __attribute__((visibility("hidden"))) void __ubsan_handle_type_mismatch_v1(const cuda_simulator_access* it, size_t address) {
    cuda_simulator.runtime->fail("line %d: address %p of %s is no multiple of %d", it->place.line, (void*)address, it->type->name, 1 << it->alignment);
}
extern "C" __attribute__((visibility("hidden"))) void __ubsan_handle_out_of_bounds(const cuda_simulator_index* it, size_t index) {
    cuda_simulator.runtime->fail("line %d: index %lld is out of range of %s", it->place.line, (long long)index, it->array->name);
}
extern "C" __attribute__((visibility("hidden"))) void __ubsan_handle_shift_out_of_bounds(const cuda_simulator_shift* it, size_t, size_t bits) {
    cuda_simulator.runtime->fail("line %d: shift of %s by %lld bits", it->place.line, it->left->name, (long long)bits);
}
