#include "server/config/settings_page.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/man_page.h"
#include "server/config/config.h"
#include "server/config/settings.h"

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

A configuration file, /etc/nowcalls/server.toml:

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

Flags that are no settings: `--config FILE`, `--check-config`, `--help` (`-h`), `--help=man`,
`--help=markdown`, `--version` (`-V`).
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

constexpr char kHelpIntroduction[] =
    "Each setting is a flag, an environment variable and a key of the TOML file\n"
    "(--data-dir is data_dir there). Flags beat the environment, the environment\n"
    "beats the file, the file beats the default in [brackets].\n";
constexpr char kHelpNotes[] =
    "Signals: SIGTERM and SIGINT finish the requests that were read and exit with 0;\n"
    "a second one ends the server at once, like kill -9, and loses nothing that was\n"
    "acknowledged. SIGHUP reads the configuration and the rule files again; all of\n"
    "them are watched anyway.\n"
    "Exit codes: 0 orderly end, 1 ended at once by a second signal, 64 wrong flags,\n"
    "configuration or rules, 65 damaged or unknown ledger, 74 disk, lock or socket.\n";

struct HelpRow {
  std::string_view group;
  std::string flag;
  std::string values;  // "NOWCALLS_LISTEN  [127.0.0.1:18730]"
  std::string_view doc;
};

// The settings, then the flags that are none.
std::vector<HelpRow> HelpRows() {
  const ServerConfig defaults;
  std::vector<HelpRow> rows;
  for (const Setting& setting : Settings()) {
    const bool is_switch = setting.kind == SettingKind::kSwitch;
    const std::string value = is_switch ? "" : setting.get(defaults);
    rows.push_back(
        {setting.group,
         setting.flag() + (setting.value_name.empty() ? "" : " ") + std::string(setting.value_name),
         setting.environment() + (value.empty() ? "" : "  [" + value + "]"), setting.doc});
  }
  constexpr std::string_view kGroup = "Program";
  rows.push_back({kGroup, "--config FILE", kConfigEnvironment, "Read settings from a TOML file."});
  rows.push_back({kGroup, "--check-config", "",
                  "Check settings and rule files, print the settings in effect and exit."});
  rows.push_back({kGroup, "-h, --help", "",
                  "Print this and exit; =man: as a man page; =markdown: the manual's page."});
  rows.push_back({kGroup, "-V, --version", "", "Print the version and exit."});
  return rows;
}

}  // namespace

std::string HelpText() {
  constexpr size_t kFlagColumns = 32;
  std::string text =
      "nowcalls-server: a durable server of concurrency tokens\n\n"
      "usage: nowcalls-server [FLAG...]\n\n";
  text += kHelpIntroduction;
  std::string_view group;
  for (const HelpRow& row : HelpRows()) {
    if (row.group != group) text += "\n" + std::string(row.group) + "\n";
    group = row.group;
    std::string line = "  " + row.flag;
    if (!row.values.empty()) {
      line.resize(std::max(line.size() + 1, kFlagColumns), ' ');
      line += row.values;
    }
    text += line + "\n      " + std::string(row.doc) + "\n";
  }
  return text + "\n" + kHelpNotes;
}

std::string HelpManPage() {
  ManPage page("nowcalls-server", 8, "a durable server of concurrency tokens",
               "nowcalls-server [FLAG...]");
  page.Section("OPTIONS");
  page.Paragraphs(kHelpIntroduction);
  std::string_view group;
  for (const HelpRow& row : HelpRows()) {
    if (row.group != group) page.Part(std::string(row.group));
    group = row.group;
    page.Option(row.flag, row.values + (row.values.empty() ? "" : "\n") + std::string(row.doc));
  }
  page.Section("NOTES");
  page.Paragraphs(kHelpNotes);
  return page.Finished(
      "nowcalls-server --data-dir /var/lib/nowcalls --rules shop=/etc/nowcalls/shop.json");
}

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
