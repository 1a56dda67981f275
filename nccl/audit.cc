// Makes this library the loader's audit library (LD_AUDIT=libr2cc-nccl.so) too, for programs that open NCCL with dlopen() and look its
// functions up with dlsym(). LD_PRELOAD cannot get in front of these, because a look-up in a library finds that library's own functions.
//
// The loader keeps an audit library apart from the program, with a C library of its own. So nothing of this copy runs but the functions
// here. They load the same file into the program, and answer each look-up of a function that this library has in front of NCCL's with the
// place of that function in the program's copy. NCCL itself and all its other functions stay as they are.
//
// Threads: the loader calls one at a time.
#include <dlfcn.h>
#include <link.h>
#include <sys/stat.h>

#include <cstdint>
#include <string_view>

namespace {

enum Kind : uintptr_t { kOther, kNccl, kProgramsCopy };

struct Copies {
  const char* path = nullptr;
  void* own = nullptr;         // what dlsym() takes
  uintptr_t own_base = 0;      // where this copy is
  uintptr_t program_base = 0;  // where the program's copy is; 0: it is not there
};

Copies& Found() {
  static Copies copies;
  return copies;
}

bool IsSameFile(const char* a, const char* b) {
  struct stat one;
  struct stat other;
  return stat(a, &one) == 0 && stat(b, &other) == 0 && one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

bool IsNccl(std::string_view path) {
  const size_t slash = path.rfind('/');
  const std::string_view name = slash == std::string_view::npos ? path : path.substr(slash + 1);
  return name.substr(0, 10) == "libnccl.so";
}

}  // namespace

#define R2CC_EXPORT __attribute__((visibility("default")))

extern "C" {

// Not in the program: no audit. The functions below are the same in every version of the interface.
R2CC_EXPORT unsigned int la_version(unsigned int version) {
  Dl_info info;
  link_map* map = nullptr;
  if (dladdr1(reinterpret_cast<void*>(&la_version), &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0) return 0;
  Copies& copies = Found();
  copies.path = map->l_name;
  copies.own = dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD);
  copies.own_base = map->l_addr;
  return copies.own == nullptr ? 0 : version;
}

R2CC_EXPORT unsigned int la_objopen(link_map* map, Lmid_t space, uintptr_t* cookie) {
  *cookie = kOther;
  if (space != LM_ID_BASE) return 0;
  if (IsNccl(map->l_name)) {
    *cookie = kNccl;
    return LA_FLG_BINDTO;
  }
  Copies& copies = Found();
  if (std::string_view(map->l_name).find("r2cc") != std::string_view::npos && IsSameFile(map->l_name, copies.path)) {
    *cookie = kProgramsCopy;
    copies.program_base = map->l_addr;
  }
  return 0;
}

// The program's own libraries are there, and it has not begun. Libraries that it loads later find these functions before NCCL's.
R2CC_EXPORT void la_preinit(uintptr_t*) { dlmopen(LM_ID_BASE, Found().path, RTLD_NOW | RTLD_GLOBAL); }

R2CC_EXPORT uintptr_t la_symbind64(Elf64_Sym* symbol, unsigned int, uintptr_t* from, uintptr_t* to, unsigned int*, const char* name) {
  const Copies& copies = Found();
  if (*to != kNccl || *from != kOther || copies.program_base == 0 || std::string_view(name).substr(0, 4) != "nccl") return symbol->st_value;
  const auto own = reinterpret_cast<uintptr_t>(dlsym(copies.own, name));
  return own == 0 ? symbol->st_value : own - copies.own_base + copies.program_base;
}

}  // extern "C"
