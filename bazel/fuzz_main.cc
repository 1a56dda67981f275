// main() of a fuzz target where there is no libFuzzer: every input of the corpus as it is, then so many mutations of them from a fixed
// seed. The same inputs each time, so that what fails once fails again.
//   PROGRAM [--runs=N] [--seed=N] [--max_bytes=N] FILE|FOLDER...
// An input that ends the process is written to a file first, which the last line on standard error names; PROGRAM FILE replays it.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
// Sanitizers end the process without a signal that we could catch, and call this before.
extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)());

namespace {

using Input = std::vector<uint8_t>;

struct Options {
  uint64_t runs = 10'000;
  uint64_t seed = 1;
  size_t max_bytes = 4096;
  std::vector<std::string> paths;
};

// ---- what to keep of a run that ends the process ----

const Input* running = nullptr;
uint64_t run_number = 0;
char crash_path[512];

// Async-signal-safe.
void KeepInput() {
  const Input* input = running;
  running = nullptr;
  if (input == nullptr) return;
  const int fd = open(crash_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return;
  const bool written = write(fd, input->data(), input->size()) == static_cast<ssize_t>(input->size());
  close(fd);
  char line[640];
  const int length = std::snprintf(line, sizeof(line), "fuzz: run %llu, %zu bytes, %s %s\n", static_cast<unsigned long long>(run_number),
                                   input->size(), written ? "kept in" : "could not be written to", crash_path);
  if (length > 0) [[maybe_unused]]
    const ssize_t written = write(STDERR_FILENO, line, std::min(static_cast<size_t>(length), sizeof(line) - 1));
}

void OnSignal(int signal) {
  KeepInput();
  std::signal(signal, SIG_DFL);
  raise(signal);
}

void Arm() {
  // Where Bazel collects what a test leaves behind, else beside the caller.
  const char* folder = std::getenv("TEST_UNDECLARED_OUTPUTS_DIR");
  std::snprintf(crash_path, sizeof(crash_path), "%s/fuzz-crash-%d", folder == nullptr ? "." : folder, getpid());
  if (__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(KeepInput);
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTERM, SIGALRM}) std::signal(signal, OnSignal);
}

void Run(const Input& input) {
  constexpr unsigned kHangS = 30;
  ++run_number;
  running = &input;
  alarm(kHangS);
  // A buffer of just this size: a sanitizer sees the first byte beyond it.
  const std::unique_ptr<uint8_t[]> exact(new uint8_t[input.size()]);
  std::copy(input.begin(), input.end(), exact.get());
  LLVMFuzzerTestOneInput(exact.get(), input.size());
  alarm(0);
  running = nullptr;
}

// ---- mutations ----

class Mutator {
 public:
  Mutator(const std::vector<Input>& corpus, const Options& options)
      : corpus_(corpus), max_bytes_(options.max_bytes), random_(options.seed) {}

  Input Next() {
    Input input = corpus_[Below(corpus_.size())];
    for (size_t i = 0, steps = size_t{1} << Below(5); i < steps; ++i) Mutate(&input);
    if (input.size() > max_bytes_) input.resize(max_bytes_);
    return input;
  }

 private:
  size_t Below(size_t end) { return end == 0 ? 0 : random_() % end; }

  void Mutate(Input* input) {
    if (input->empty()) return Insert(input);
    switch (Below(8)) {
      case 0: (*input)[Below(input->size())] ^= static_cast<uint8_t>(1u << Below(8)); return;
      case 1: (*input)[Below(input->size())] = static_cast<uint8_t>(random_()); return;
      case 2: return Insert(input);
      case 3: {
        const size_t at = Below(input->size());
        const size_t end = at + 1 + Below(std::min<size_t>(input->size() - at, 16));
        input->erase(input->begin() + static_cast<ptrdiff_t>(at), input->begin() + static_cast<ptrdiff_t>(end));
        return;
      }
      case 4: return Interesting(input);
      case 5: {  // a piece of it again, somewhere else
        const size_t from = Below(input->size());
        const Input piece(input->begin() + static_cast<ptrdiff_t>(from),
                          input->begin() + static_cast<ptrdiff_t>(from + 1 + Below(std::min<size_t>(input->size() - from, 64))));
        input->insert(input->begin() + static_cast<ptrdiff_t>(Below(input->size())), piece.begin(), piece.end());
        return;
      }
      case 6: {  // the head of one and the tail of another
        const Input& other = corpus_[Below(corpus_.size())];
        input->resize(1 + Below(input->size()));
        input->insert(input->end(), other.begin() + static_cast<ptrdiff_t>(Below(other.size())), other.end());
        return;
      }
      default: input->resize(Below(input->size())); return;
    }
  }

  void Insert(Input* input) {
    Input bytes(1 + Below(16));
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random_());
    input->insert(input->begin() + static_cast<ptrdiff_t>(Below(input->size() + 1)), bytes.begin(), bytes.end());
  }

  // The numbers that limits are made of, one, two, four or eight bytes wide.
  void Interesting(Input* input) {
    uint64_t value = uint64_t{1} << Below(64);
    value += random_() % 3 - 1;
    if (Below(4) == 0) value = ~value;
    const size_t bytes = std::min(size_t{1} << Below(4), input->size());
    std::memcpy(input->data() + Below(input->size() - bytes + 1), &value, bytes);
  }

  const std::vector<Input>& corpus_;
  const size_t max_bytes_;
  std::mt19937_64 random_;
};

bool Flag(const std::string& argument, const std::string& name, uint64_t* value) {
  const std::string head = "--" + name + "=";
  if (argument.rfind(head, 0) != 0) return false;
  *value = std::strtoull(argument.c_str() + head.size(), nullptr, 10);
  return true;
}

Input ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "fuzz: cannot read %s\n", path.c_str());
    std::exit(1);
  }
  return Input(std::istreambuf_iterator<char>(file), {});
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    uint64_t bytes = options.max_bytes;
    if (Flag(argument, "runs", &options.runs) || Flag(argument, "seed", &options.seed)) continue;
    if (Flag(argument, "max_bytes", &bytes)) {
      options.max_bytes = bytes;
      continue;
    }
    options.paths.push_back(argument);
  }
  std::vector<std::filesystem::path> files;
  bool folders = false;
  for (const std::string& path : options.paths) {
    if (!std::filesystem::is_directory(path)) {
      files.emplace_back(path);
      continue;
    }
    folders = true;
    for (const auto& entry : std::filesystem::directory_iterator(path)) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());  // the same order on every machine
  if (files.empty()) {
    std::fprintf(stderr, "fuzz: no input: name files or folders that have some\n");
    return 2;
  }
  Arm();
  std::vector<Input> corpus;
  for (const std::filesystem::path& file : files) Run(corpus.emplace_back(ReadFile(file)));
  // A single file is a replay.
  if (folders) {
    Mutator mutator(corpus, options);
    for (uint64_t i = 0; i < options.runs; ++i) Run(mutator.Next());
  }
  std::printf("fuzz: %zu inputs of the corpus, %llu runs in all\n", corpus.size(), static_cast<unsigned long long>(run_number));
  return 0;
}
