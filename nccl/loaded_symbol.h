// A symbol of R2CC's libraries that this process has opened, under any file name.
#ifndef R2CC_NCCL_LOADED_SYMBOL_H_
#define R2CC_NCCL_LOADED_SYMBOL_H_

namespace r2cc {

// Null: no library has it. A library that has it is never closed. Any thread; takes the dynamic linker's lock.
void* FindLoaded(const char* symbol);

}  // namespace r2cc

#endif  // R2CC_NCCL_LOADED_SYMBOL_H_
