// Names the directories of r2ccd's files of one run. Containers of jobs mount the run directory; nobody mounts the control directory, which
// is only for this machine's operators.
#ifndef R2CC_BASE_RUN_DIRS_H_
#define R2CC_BASE_RUN_DIRS_H_

#include <string>
#include <string_view>

namespace r2cc {

constexpr std::string_view kControlDirSuffix = "-control";

// "/run/r2cc-control" for "/run/r2cc": a sibling, so that a mount of the one does not hold the other.
inline std::string ControlDir(std::string run_dir) {
  while (run_dir.size() > 1 && run_dir.back() == '/') run_dir.pop_back();
  return run_dir.append(kControlDirSuffix);
}
inline std::string ControlSocket(const std::string& run_dir) { return ControlDir(run_dir) + "/r2ccd.sock"; }
// Release 0.2.0 has the socket here. From 0.3.0 on this is a link, by which r2ccctl of 0.2.0 finds the socket.
inline std::string OldControlSocket(const std::string& run_dir) { return run_dir + "/r2ccd.sock"; }
inline std::string AttachSocket(const std::string& run_dir) { return run_dir + "/attach.sock"; }

// The run directory of a control socket of either kind.
inline std::string RunDirOf(std::string_view control_socket) {
  const size_t slash = control_socket.rfind('/');
  std::string_view folder = slash == std::string_view::npos ? "." : slash == 0 ? "/" : control_socket.substr(0, slash);
  if (folder.size() > kControlDirSuffix.size() && folder.ends_with(kControlDirSuffix)) folder.remove_suffix(kControlDirSuffix.size());
  return std::string(folder);
}

}  // namespace r2cc

#endif  // R2CC_BASE_RUN_DIRS_H_
