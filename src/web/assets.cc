#include "web/assets.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>

#include "base/fingerprint.h"
#include "base/text.h"
#include "web/page_files.h"

namespace nowcalls::web {
namespace {

constexpr std::string_view kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

struct Asset {
  std::string_view content;
  std::string_view type;
  std::string etag;
};

using AssetMap = std::map<std::string, Asset, std::less<>>;

std::string_view TypeOf(std::string_view name) {
  if (name.ends_with(".html")) return "text/html; charset=utf-8";
  if (name.ends_with(".js")) return "text/javascript; charset=utf-8";
  if (name.ends_with(".css")) return "text/css; charset=utf-8";
  return kPlainText;
}

// By path.
const AssetMap& Assets() {
  // Made at the first request. The contents stay in the binary.
  static const AssetMap assets = [] {
    AssetMap made;
    for (const PageFile& file : PageFiles()) {
      const Asset asset{.content = file.content,
                        .type = TypeOf(file.name),
                        .etag = '"' + std::to_string(Fingerprint(file.content)) + '"'};
      const bool first = file.name == "index.html";
      made[first ? "/" : "/" + std::string(file.name)] = asset;
    }
    return made;
  }();
  return assets;
}

}  // namespace

Response ServeAsset(const Request& request) {
  const auto found = Assets().find(request.path);
  if (found == Assets().end()) {
    return ErrorResponse(404, "nothing is at " + Quoted(request.path) +
                                  "; see /, /api/, /metrics, /healthz and /readyz");
  }
  const Asset& asset = found->second;
  // With no-cache a browser keeps the file, and asks by ETag before it uses it.
  Response response{.type = std::string(asset.type),
                    .headers = {{"Cache-Control", "no-cache"},
                                {"Content-Security-Policy", std::string(kPolicy)},
                                {"ETag", asset.etag},
                                {"Referrer-Policy", "no-referrer"}}};
  if (HasEtag(request, asset.etag)) {
    response.status = 304;
  } else {
    response.body = asset.content;
  }
  return response;
}

}  // namespace nowcalls::web
