#include "server/log_line.h"

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/hex.h"

namespace nowcalls::server {
namespace {

void AppendEscaped(std::string_view text, std::string* line) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f) {
      *line += c;
    } else {
      *line += "\\x" + ToHex({&c, 1});
    }
  }
}

}  // namespace

std::string_view LogLevelName(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug: return "debug";
    case LogLevel::kInfo: return "info";
    case LogLevel::kWarn: return "warn";
    case LogLevel::kError: return "error";
  }
  return "unknown";
}

std::string FormatLogLine(LogFormat format, int64_t wall_ms, LogLevel level,
                          std::string_view text) {
  if (format == LogFormat::kJson) {
    const nlohmann::ordered_json object = {
        {"ts", WallText(wall_ms)}, {"level", LogLevelName(level)}, {"msg", text}};
    using Handler = nlohmann::ordered_json::error_handler_t;
    return object.dump(-1, ' ', /*ensure_ascii=*/false, Handler::replace) + "\n";
  }
  std::string line = WallText(wall_ms) + " ";
  line += LogLevelName(level);
  line.resize(line.size() + 6 - LogLevelName(level).size(), ' ');
  AppendEscaped(text, &line);
  return line + "\n";
}

}  // namespace nowcalls::server
