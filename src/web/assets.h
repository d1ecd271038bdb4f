// Assets: serves the page and what it loads, from the binary.
//
// Thread: any. The page loads nothing from elsewhere and runs no script but its own files: its
// Content-Security-Policy says so to the browser.
#ifndef NOWCALLS_WEB_ASSETS_H_
#define NOWCALLS_WEB_ASSETS_H_

#include "web/http.h"

namespace nowcalls::web {

// "/" is index.html, "/app.js" and so on the files of src/web/page. 304 when the browser has it
// already, 404 for all other paths.
Response ServeAsset(const Request& request);

}  // namespace nowcalls::web

#endif  // NOWCALLS_WEB_ASSETS_H_
