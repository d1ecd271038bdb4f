#include "server/log/log_line.h"

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/shown_text.h"

namespace nowcalls::server {
namespace {

std::string JsonLine(int64_t wall_ms, Severity severity, std::string_view text,
                     const LogFields& fields) {
  using nlohmann::ordered_json;
  ordered_json object = {
      {"ts", WallText(wall_ms)}, {"level", SeverityName(severity)}, {"msg", text}};
  for (const LogField& field : fields) {
    // A number stays a number; token ids come as text, which jq does not round.
    object[field.name] =
        field.number ? ordered_json::parse(field.value) : ordered_json(field.value);
  }
  return ShownJson(
             object.dump(-1, ' ', /*ensure_ascii=*/false, ordered_json::error_handler_t::replace)) +
         "\n";
}

}  // namespace

std::string_view SeverityName(Severity severity) {
  switch (severity) {
    case Severity::kDebug: return "debug";
    case Severity::kInfo: return "info";
    case Severity::kWarn: return "warn";
    case Severity::kError: return "error";
  }
  return "unknown";
}

std::string FormatLogLine(LogFormat format, int64_t wall_ms, Severity severity,
                          std::string_view text, const LogFields& fields) {
  if (format == LogFormat::kJson) return JsonLine(wall_ms, severity, text, fields);
  std::string line = WallText(wall_ms) + " ";
  line += SeverityName(severity);
  // Severities are padded to one width, so that messages begin in one column.
  line.resize(line.size() + 6 - SeverityName(severity).size(), ' ');
  return line + ShownText(text) + "\n";
}

}  // namespace nowcalls::server
