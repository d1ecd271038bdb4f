#include "server/settings_page.h"

#include <string_view>
#include <vector>

#include "server/config.h"
#include "server/settings.h"

namespace nowcalls::server {
namespace {

constexpr size_t kLineBytesMax = 118;

constexpr std::string_view kIntroduction = R"(# Configuration

`nowcalls-server --help=markdown` prints this page; `--help` prints the short form for a terminal.

## Three ways to set a value

Every setting is a flag, an environment variable and a key of a TOML file: `--data-dir`,
`NOWCALLS_DATA_DIR` and `data_dir`.

- Flags beat the environment, the environment beats the file, and the file beats the default.
- A list or a table replaces the whole one below it: one `--rules` flag replaces all rule files of
  the TOML file.
- An empty environment variable counts as unset.
- The server warns of a variable `NOWCALLS_...` that it does not know, and ignores it.
  `NOWCALLS_SERVER` and `NOWCALLS_FORMAT` are the admin tool's.
- A switch is a flag without a value. The environment and the TOML file say `true` or `false`.
- Relative paths start at the working directory of the server.

A configuration file, /etc/nowcalls/nowcalls.toml:

    data_dir = "/var/lib/nowcalls"
    rules = ["shop=/etc/nowcalls/shop.json", "llm-gateway=/etc/nowcalls/llm-gateway.json"]
    log_format = "json"
    sweep_interval_ms = 50

    [namespace_guard]
    shop = 50_000

`--config FILE` or `NOWCALLS_CONFIG` names it. The server refuses an unknown key, a wrong type, a
value out of range and an invalid rule, and names the place:

    nowcalls-server: nowcalls.toml:2: unknown key 'duribility'; did you mean durability?

## Changing a configuration

A setting marked *live* below changes while the server runs. The server reads flags, environment and
file again about a second after the last write of the file, and at SIGHUP. The file may be renamed
into place, or be a link that changes, as in a Kubernetes ConfigMap.

- The log has a line for each setting that changed: `sweep-interval-ms is 50 now, and was 100`.
- A changed setting that is not live keeps its value. A warning names it: it needs a restart.
- A configuration that is invalid changes nothing, and a warning says why.
- Flags and environment are those of the start, and still beat the file.
- A lower limit ends nothing that exceeds it: new calls are refused until there is room again.

## Checking a configuration

`--check-config` reads the settings and the rule files, prints each value with its origin, and
exits: 0 when all is valid, 64 when not. It looks neither at the ledger nor at the directories.
The rule files must exist here; a real start can fall back to the rules of the ledger.

    $ NOWCALLS_DURABILITY=interval:20 nowcalls-server --config nowcalls.toml --check-config
    listen                    127.0.0.1:18730                 default
    insecure-listen           false                           default
    no-io-uring               false                           default
    port-file                 -                               default
    data-dir                  /var/lib/nowcalls               nowcalls.toml:1: data_dir
    require-ledger            false                           default
    durability                interval:20                     environment NOWCALLS_DURABILITY
    ...
    The configuration is valid.

Flags that are no settings: `--config FILE`, `--check-config`, `--help` (`-h`), `--help=markdown`,
`--version` (`-V`).
)";

// Appends `text`, broken at blanks; the first line begins with "- ", the others with two blanks.
void AppendItem(std::string_view text, std::string* page) {
  std::string line = "-";
  while (!text.empty()) {
    const size_t end = text.find(' ');
    const std::string_view word = text.substr(0, end);
    if (line.size() + 1 + word.size() > kLineBytesMax) {
      *page += line + "\n";
      line = " ";
    }
    line += " " + std::string(word);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
  *page += line + "\n";
}

// "- `--tokens-max N` (default 20000000; 1 to 1000000000; live): Live tokens."
void AppendSetting(const Setting& setting, const ServerConfig& defaults, std::string* page) {
  std::string item = "`" + setting.flag();
  if (!setting.value_name.empty()) item += " " + std::string(setting.value_name);
  const std::string value = setting.get(defaults);
  const bool is_switch = setting.kind == SettingKind::kSwitch;
  item += is_switch ? "` (switch" : "` (default " + (value.empty() ? "none" : value);
  if (!setting.range.empty()) item += "; " + setting.range;
  if (setting.is_live()) item += "; live";
  item += "): " + std::string(setting.doc);
  if (!setting.more.empty()) item += " " + std::string(setting.more);
  AppendItem(item, page);
}

}  // namespace

std::string SettingsPage() {
  std::string page(kIntroduction);
  const ServerConfig defaults;
  std::string_view group;
  for (const Setting& setting : Settings()) {
    if (setting.group != group) page += "\n## " + std::string(setting.group) + "\n\n";
    group = setting.group;
    AppendSetting(setting, defaults, &page);
  }
  return page;
}

}  // namespace nowcalls::server
