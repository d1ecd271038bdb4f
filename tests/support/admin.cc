#include "support/admin.h"

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace nowcalls::testing {

namespace {

// The tool's own patience is for people, and ends before a disk that stalls twice does. A backup
// has more; verify and repair ask no server.
bool MayWaitLonger(const Source& source, const std::vector<std::string>& command) {
  const auto has = [&](const char* word) {
    return std::find(command.begin(), command.end(), word) != command.end();
  };
  return source.flag == "--server" && !has("--timeout") && !has("backup") && !has("verify") &&
         !has("repair");
}

}  // namespace

Finished RunAdmin(const Source& source, std::vector<std::string> command) {
  if (MayWaitLonger(source, command)) {
    command.insert(command.end(), {"--timeout", std::to_string(kPatienceMs)});
  }
  std::vector<std::string> argv = {ProductBinary("nowcalls-admin")};
  argv.insert(argv.end(), command.begin(), command.end());
  argv.insert(argv.end(), {source.flag, source.value});
  return RunProgram(std::move(argv));
}

std::vector<Json> AdminRows(const Source& source, std::vector<std::string> command) {
  command.insert(command.end(), {"--format", "jsonl"});
  const std::string name = command[0];
  const Finished finished = RunAdmin(source, std::move(command));
  if (finished.exit_code != 0) {
    throw std::runtime_error("nowcalls-admin " + name + " exits " +
                             std::to_string(finished.exit_code) + ": " + finished.err);
  }
  return ParseJsonLines(finished.out);
}

std::vector<Json> ParseJsonLines(const std::string& text) {
  std::vector<Json> rows;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    Json row = Json::parse(line);
    if (!row.is_object()) throw std::runtime_error("not a JSON object: " + line);
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<std::vector<std::string>> ParseCsv(const std::string& text) {
  std::vector<std::vector<std::string>> records;
  std::vector<std::string> record;
  std::string field;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '"' && i + 1 < text.size() && text[i + 1] == '"') {
      field += text[++i];
    } else if (c == '"') {
      quoted = !quoted;
    } else if (quoted || (c != ',' && c != '\n' && c != '\r')) {
      field += c;
    } else if (c != '\r') {
      record.push_back(std::exchange(field, {}));
      if (c == '\n') records.push_back(std::exchange(record, {}));
    }
  }
  return records;
}

}  // namespace nowcalls::testing
