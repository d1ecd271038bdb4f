// Assets: the page and its files.
//
// Thread: any. The Content-Security-Policy allows these files alone.
#ifndef NOWCALLS_WEB_ASSETS_H_
#define NOWCALLS_WEB_ASSETS_H_

#include "web/http.h"

namespace nowcalls::web {

// "/" is index.html, "/app.js" a file of src/web/page. 304: the browser has it. 404: no such file.
Response ServeAsset(const Request& request);

}  // namespace nowcalls::web

#endif  // NOWCALLS_WEB_ASSETS_H_
