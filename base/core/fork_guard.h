// Closes descriptors that a forked child must not keep: a process-wide set, closed in every child right after fork().
//
// Reason: a job's process forks without exec (data loaders do), and the copies of its sockets stay open as long as the child sleeps.
// Without this, the kernel ends no connection and frees no port when the process itself dies, and its peers wait for nothing.
//
// The child only calls close(): a shutdown() there would end the parent's connections. The set has numbers, not owners, so keep to
// the order: Add() right after the descriptor was made, Remove() right before it is closed or handed over. A fork that falls
// between a system call and its Add() or Remove() leaves one copy behind; nobody closes a descriptor that is not guarded at that moment.
// A child that execs is covered by O_CLOEXEC; posix_spawn() and vfork() run no handlers and need none.
#ifndef R2CC_BASE_CORE_FORK_GUARD_H_
#define R2CC_BASE_CORE_FORK_GUARD_H_

namespace r2cc::fork_guard {

// Descriptors from here on cannot be guarded.
constexpr int kFdsMax = 65'536;

// Registers the handler that closes the set in children, once per process; until then the set has no effect. False if the C library has
// no memory for it. Thread-safe. The code must stay mapped as long as the process runs.
bool InstallOnce();

// Thread-safe, lock-free and async-signal-safe. False, with nothing changed, if `fd` is not in 0..kFdsMax-1.
bool Add(int fd);
bool Remove(int fd);

// True in a process that fork() made after InstallOnce(): the set was closed there, and the threads that owned it do not exist.
bool InForkedChild();

}  // namespace r2cc::fork_guard

#endif  // R2CC_BASE_CORE_FORK_GUARD_H_
