// PageFiles: src/web/page and Chart.js in the binary.
//
// Thread: any. embed.cmake makes it at build time.
#ifndef NOWCALLS_WEB_PAGE_FILES_H_
#define NOWCALLS_WEB_PAGE_FILES_H_

#include <span>
#include <string_view>

namespace nowcalls::web {

struct PageFile {
  std::string_view name;  // "app.js"
  std::string_view content;
};

std::span<const PageFile> PageFiles();

}  // namespace nowcalls::web

#endif  // NOWCALLS_WEB_PAGE_FILES_H_
