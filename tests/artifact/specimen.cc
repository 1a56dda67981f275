// Two small shared libraries for elf_test.py are made of this file: with and without what a plugin must not have.
#include <cstdio>

#define R2CC_SPECIMEN_EXPORT extern "C" __attribute__((visibility("default")))

R2CC_SPECIMEN_EXPORT int ncclNetPlugin_v8;
int ncclNetPlugin_v8 = 8;

#ifdef R2CC_SPECIMEN_BAD
R2CC_SPECIMEN_EXPORT int helper_data;
int helper_data = 1;
R2CC_SPECIMEN_EXPORT void helper_c() { std::puts("helper"); }
#else
R2CC_SPECIMEN_EXPORT int ncclNetPlugin_v11;
int ncclNetPlugin_v11 = 11;
extern "C" void helper_c() { std::puts("helper"); }
#endif
