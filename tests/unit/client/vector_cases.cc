#include "unit/client/vector_cases.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>

#include "test_paths.h"

namespace nowcalls::client {

const std::filesystem::path& VectorDirectory() {
  static const std::filesystem::path directory = NOWCALLS_SOURCE_DIR "/data/golden/sessions";
  return directory;
}

ClientOptions Shop(Fallback fallback) {
  ClientOptions options;
  options.addresses = {"a:1"};
  options.name_space = "shop";
  options.client_id = "worker-1";
  options.fallback = fallback;
  return options;
}

VectorScript Begin(const char* name, ClientOptions options) {
  return {name, std::move(options), 7};
}

Json Terms(int strategy, int64_t offline_ms) { return Json::array({strategy, 2000, offline_ms}); }

Json Granted(const Json& terms, uint64_t token, uint64_t hold_ms) {
  return Json::array({0, token, 13, 1, 2, hold_ms, nullptr, nullptr, terms});
}

Json KeptUnder(const Json& terms) { return Json::array({0, 4000, terms}); }

Json Blocked(const char* limit) { return Json::array({1, 0, 0, 2, 2, 0, limit}); }

const Json kReleased = Json::array({6});

Json Rules(int64_t flow, double count, bool local, const char* kind, Json config) {
  config.update(Json{{"flowId", flow}, {"fallbackToLocalWhenFail", local}, {"thresholdType", 1}});
  Json rule = Json{{"count", count}, {"kind", kind}, {"clusterConfig", config}};
  if (std::string(kind) == "value") rule["paramIdx"] = 0;
  return Json::array({Json::array({rule}), nullptr});
}

void Check(const VectorScript& script) {
  std::string file;
  for (const char c : script.name()) file += c == ' ' ? '_' : c;
  std::erase(file, ',');
  const std::filesystem::path path = VectorDirectory() / (file + ".json");
  if (std::getenv("NOWCALLS_WRITE_VECTORS") != nullptr) {
    std::ofstream(path) << script.Text();
  }
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  CHECK_MESSAGE(text.str() == script.Text(), path.string(),
                " is not what the session does; NOWCALLS_WRITE_VECTORS=1 writes it");
}

}  // namespace nowcalls::client
