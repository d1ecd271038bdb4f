// JSON as answers carry it.
//
// Thread: any.
#ifndef NOWCALLS_WEB_JSON_TEXT_H_
#define NOWCALLS_WEB_JSON_TEXT_H_

#include <nlohmann/json.hpp>
#include <string>

namespace nowcalls::web {

// One line. U+FFFD replaces bytes that are not UTF-8.
inline std::string JsonText(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace nowcalls::web

#endif  // NOWCALLS_WEB_JSON_TEXT_H_
