#include "web/assets.h"

#include <doctest/doctest.h>

#include <map>
#include <string>

namespace nowcalls::web {
namespace {

Response GetAsset(const std::string& path, const std::string& if_none_match = "") {
  return ServeAsset({.path = path, .if_none_match = if_none_match});
}

std::string HeaderOf(const Response& response, const std::string& name) {
  for (const auto& [header, value] : response.headers) {
    if (header == name) return value;
  }
  return "";
}

TEST_CASE("the page and all that it loads are in the binary, with their types") {
  const std::map<std::string, std::string> types = {
      {"/", "text/html; charset=utf-8"},
      {"/app.js", "text/javascript; charset=utf-8"},
      {"/chart.min.js", "text/javascript; charset=utf-8"},
      {"/style.css", "text/css; charset=utf-8"},
      {"/licences.txt", "text/plain; charset=utf-8"},
  };
  for (const auto& asset : types) {
    const auto& path = asset.first;
    const auto& type = asset.second;
    CAPTURE(path);
    const Response response = GetAsset(path);
    CHECK(response.status == 200);
    CHECK(response.type == type);
    CHECK_FALSE(response.body.empty());
  }
  CHECK(GetAsset("/licences.txt").body.find("MIT License") != std::string::npos);
}

TEST_CASE("the page may run and load nothing but what this server serves") {
  const std::string policy = HeaderOf(GetAsset("/"), "Content-Security-Policy");
  CHECK(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self'; "));
  CHECK(policy.find("unsafe") == std::string::npos);
  // What the policy forbids is not there.
  const std::string page = GetAsset("/").body;
  CHECK(page.find("<style") == std::string::npos);
  CHECK(page.find(" style=") == std::string::npos);
  CHECK(page.find("https://") == std::string::npos);
}

TEST_CASE("a browser that has a file already is told so") {
  const Response first = GetAsset("/app.js");
  const std::string etag = HeaderOf(first, "ETag");
  CHECK(etag.starts_with('"'));
  CHECK(HeaderOf(first, "Cache-Control") == "no-cache");
  const Response again = GetAsset("/app.js", etag);
  CHECK(again.status == 304);
  CHECK(again.body.empty());
  CHECK(GetAsset("/app.js", "W/" + etag).status == 304);
  CHECK(HeaderOf(again, "ETag") == etag);
  CHECK(GetAsset("/style.css", etag).status == 200);
}

TEST_CASE("only the files of the page are served") {
  for (const char* path : {"/nothing", "/index.html/", "/../etc/passwd", "", "app.js"}) {
    CAPTURE(path);
    CHECK(GetAsset(path).status == 404);
  }
}

}  // namespace
}  // namespace nowcalls::web
