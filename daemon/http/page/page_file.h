// The page at /: its files, as they are in this binary.
#ifndef R2CC_DAEMON_HTTP_PAGE_PAGE_FILE_H_
#define R2CC_DAEMON_HTTP_PAGE_PAGE_FILE_H_

#include <string_view>

namespace r2cc::daemon {

struct PageFile {
  std::string_view path;  // "/page/main.js"
  std::string_view type;  // as in Content-Type
  std::string_view body;
};

// Null: the page has no such file. Valid for as long as the process. embed.py makes it.
const PageFile* FindPageFile(std::string_view path);

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_HTTP_PAGE_PAGE_FILE_H_
