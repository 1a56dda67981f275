// For fatbin_test.cc: the least kernel.
extern "C" __global__ void r2cc_specimen(int* to) { *to = 1; }
