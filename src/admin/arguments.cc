#include "admin/arguments.h"

#include <CLI/CLI.hpp>
#include <functional>
#include <sstream>
#include <string_view>

#include "admin/access_arguments.h"
#include "admin/argument_checks.h"
#include "admin/cluster_arguments.h"
#include "base/duration.h"
#include "base/exit_codes.h"
#include "base/limits.h"
#include "base/man_page.h"
#include "base/option_values.h"
#include "base/shown_text.h"
#include "base/text.h"
#include "base/usage_errors.h"
#include "client/flow_text.h"
#include "net/endpoint.h"
#include "nowcalls/flow_name.h"
#include "nowcalls_version.h"

namespace nowcalls::admin {
namespace {

constexpr size_t kLimitMax = 1'000'000;
constexpr int64_t kTimeoutMsMax = 3'600'000;
constexpr int64_t kBackupTimeoutMs = kTimeoutMsMax;
constexpr uint64_t kTokenIdMax = INT64_MAX;
constexpr char kReasonHelp[] = "Why, for the server's log and the history";
constexpr char kKindHelp[] = "Only its rule of the flow (flow) or by value (value) [both]";
constexpr char kKindOfTokensHelp[] = "Only tokens without a parameter (flow) or with one (value)";

constexpr char kExamples[] =
    "nowcalls-admin stat\n"
    "nowcalls-admin tokens --flow 1001\n"
    "nowcalls-admin verify --data-dir /var/lib/nowcalls";

constexpr char kFooter[] =
    "The source is a running server (--server HOST:PORT or the path of its socket; else the "
    "environment's NOWCALLS_SERVER; else 127.0.0.1:18730) or the ledger on disk (--data-dir DIR), "
    "which is read without its "
    "server; if that is running or hung, it is left alone and the ledger is read beside it.\n\n"
    "Formats: table, jsonl (one JSON object a line), csv. A terminal gets a table, a file or pipe "
    "jsonl, unless --format or the environment's NOWCALLS_FORMAT says otherwise. A table fits the "
    "terminal (else the environment's COLUMNS) by leaving out columns and shortening text; --wide "
    "shows all. Times in jsonl and csv are milliseconds of the ledger clock.\n\n"
    "Exit codes: 0 done; 1 the request was refused; 64 usage, rules or a directory are wrong; 65 "
    "the ledger is damaged; 69 the server cannot be reached; 74 input or output failed.\n";

ParsedArguments UsageError(const std::string& what, const std::string& path) {
  ParsedArguments parsed;
  parsed.exit_code = kExitUsage;
  parsed.err = "nowcalls-admin: " + ShownText(what) + "\nRun '" + path + " --help' to see usage.\n";
  return parsed;
}

class Parser {
 public:
  explicit Parser(const Environment& environment)
      : app_("Looks into a nowcalls ledger, live or on disk.", "nowcalls-admin"),
        environment_(environment) {
    app_.set_version_flag("--version", "nowcalls-admin " NOWCALLS_VERSION);
    app_.footer(kFooter);
    app_.require_subcommand(1);
    AddListings();
    AddVerify();
    AddRules();
    AddReclaim();
    AddPurge();
    AddDrain();
    AddBackup();
    AddAccess();
    AddCluster();
  }

  ParsedArguments Parse(int argc, const char* const* argv) {
    ParsedArguments parsed;
    if (WantsManPage(argc, argv)) {
      parsed.out = CommandManPage(app_, 8, kExamples);
      return parsed;
    }
    std::ostringstream out;
    std::ostringstream err;
    try {
      app_.parse(argc, argv);
      Complete();
      parsed.arguments = arguments_;
    } catch (const CLI::Success& help_or_version) {
      parsed.exit_code = app_.exit(help_or_version, out, err);
    } catch (const CLI::ParseError& error) {
      const auto hint = [this](const std::string& option) { return Hint(option); };
      return UsageError(ExplainUsage(app_, error, hint), CommandPath(app_));
    }
    parsed.out = Wrapped(out.str(), kHelpColumns);
    parsed.err = err.str();
    return parsed;
  }

 private:
  // What one option alone does not tell.
  void Complete() {
    if (arguments_.online.has_value() && !arguments_.data_dir.empty()) {
      throw CLI::ValidationError(*arguments_.online ? "--online" : "--offline",
                                 "a ledger on disk does not tell who is online; ask the server");
    }
    const HistoryFilter& history = arguments_.history_filter;
    if (history.max_age_ms.has_value() && *history.max_age_ms < history.min_age_ms) {
      throw CLI::ValidationError("--since", "is later than --until, so nothing lies between them");
    }
    if (!arguments_.format.has_value() && !environment_.format.empty() &&
        DeepestCommand(app_).get_option_no_throw("--format") != nullptr) {
      arguments_.format = RequireValue(kFormatVariable, ParseFormat(environment_.format));
    }
    if (!arguments_.data_dir.empty() || arguments_.command == Command::kRulesCheck) return;
    if (IsOfAccessFile(arguments_.command)) return;
    auto security = client::ReadSecurity(security_, environment_.security);
    if (!security.ok()) throw CLI::ValidationError(security.status().message());
    arguments_.security = *std::move(security);
    if (!arguments_.server.empty()) return;
    const std::string server(environment_.server);
    if (!server.empty()) Require(kServerVariable, net::ParseServers(server).status());
    arguments_.server = server.empty() ? kDefaultServer : server;
  }

  // What an option that the command does not take was meant to say.
  std::string Hint(const std::string& option) const {
    const std::string path = CommandPath(app_);
    if (option == "--data-dir") return "'" + path + "' asks a running server, not a ledger on disk";
    if (option == "--server") return "'" + path + "' asks no server";
    return "";
  }

  CLI::App* AddCommand(CLI::App* parent, Command command, const std::string& name,
                       const std::string& help) {
    CLI::App* app = parent->add_subcommand(name, help);
    app->footer("");
    app->callback([this, command] { arguments_.command = command; });
    return app;
  }

  // All that only a server needs.
  std::vector<CLI::Option*> AddServer(CLI::App* app) {
    CLI::Option* const server =
        app->add_option_function<std::string>(
               "--server",
               [this](const std::string& address) {
                 Require("--server", net::ParseServers(address).status());
                 arguments_.server = address;
               },
               "Ask the server that listens there [$NOWCALLS_SERVER, else 127.0.0.1:18730]")
            ->type_name("HOST:PORT[,...]");
    std::vector<CLI::Option*> options = client::AddSecurityOptions(app, &security_);
    options.insert(options.begin(), server);
    return options;
  }

  static void Exclude(const std::vector<CLI::Option*>& options, CLI::Option* other) {
    for (CLI::Option* const option : options) option->excludes(other);
  }

  void AddTimeout(CLI::App* app) {
    AddInteger<int64_t>(app, "--timeout",
                        "How long to wait for the connection and for each answer [5000]", 1,
                        kTimeoutMsMax, [this](int64_t ms) { arguments_.timeout_ms = ms; })
        ->type_name("MS");
  }

  void AddLiveServer(CLI::App* app) {
    AddServer(app);
    AddTimeout(app);
  }

  CLI::Option* AddDataDir(CLI::App* app) {
    return AddPath(app, "--data-dir", "Read the ledger in this directory", &arguments_.data_dir);
  }

  void AddSource(CLI::App* app) {
    const std::vector<CLI::Option*> of_server = AddServer(app);
    Exclude(of_server, AddDataDir(app));
    AddTimeout(app);
  }

  void AddFormat(CLI::App* app, const std::string& default_format) {
    app->add_option_function<std::string>(
           "--format",
           [this](const std::string& text) {
             arguments_.format = RequireValue("--format", ParseFormat(text));
           },
           "table, jsonl or csv [$NOWCALLS_FORMAT, else " + default_format + "]")
        ->type_name("FORMAT");
    app->add_flag("--wide", arguments_.wide,
                  "Tables show every column, and text in full, however long lines get");
  }

  void AddNamespaceFilter(CLI::App* app, const std::string& help) {
    app->add_option_function<std::string>(
           "--namespace",
           [this](const std::string& name) {
             Require("--namespace", CheckNamespace(name));
             arguments_.filter.name_space = name;
           },
           help)
        ->type_name("NS");
  }

  void AddClientFilter(CLI::App* app, const std::string& help) {
    CLI::Option* client =
        AddFilter(app, "--client", "ID", help, &arguments_.filter.client_id,
                  [](const std::string& id) { return CheckText(id, kClientIdBytesMax); });
    AddInstance(app, "Of them only those of this instance", &arguments_.filter.instance)
        ->needs(client);
  }

  CLI::Option* AddInstance(CLI::App* app, const std::string& help, std::optional<uint64_t>* out) {
    return AddInteger<uint64_t>(app, "--instance", help, 0, INT64_MAX,
                                [out](uint64_t instance) { *out = instance; })
        ->type_name("N");
  }

  void AddTokenFilters(CLI::App* app) {
    AddFlowOption(app, "--flow", "Only tokens of this flow",
                  [this](int64_t id) { arguments_.filter.flow_id = id; });
    AddKind(app, kKindOfTokensHelp, &arguments_.filter.kind);
    AddClientFilter(app, "Only tokens of this client id");
    AddNamespaceFilter(app, "Only tokens of clients in this namespace");
    AddAge(app, "--min-age", "Only tokens issued at least this long ago, e.g. 500ms, 10s, 5m, 2h",
           [this](int64_t ms) { arguments_.filter.min_age_ms = ms; });
  }

  CLI::App* AddListing(CLI::App* parent, Command command, const std::string& name,
                       const std::string& help) {
    CLI::App* app = AddCommand(parent, command, name, help);
    AddSource(app);
    AddFormat(app, "table on a terminal, jsonl otherwise");
    return app;
  }

  void AddLimit(CLI::App* app, size_t most = kLimitMax) {
    AddInteger<size_t>(app, "--limit", "How many at most [100]", 1, most, [this](size_t limit) {
      arguments_.limit = limit;
    })->type_name("N");
  }

  void AddListings() {
    AddTokenFilters(AddListing(&app_, Command::kDump, "dump",
                               "Print every live token, in no particular order"));
    CLI::App* stat = AddListing(&app_, Command::kStat, "stat",
                                "Print one row a flow: nowCalls, level, tokens, counters");
    AddNamespaceFilter(stat, "Only flows whose rule is in this namespace");
    stat->add_flag("--busy", arguments_.busy, "Only flows with live tokens or waiters");
    CLI::App* flow = AddListing(&app_, Command::kFlow, "flow", "Show one flow in detail");
    AddFlowOption(flow, "FLOW", "The flow", [this](int64_t id) {
      arguments_.flow_id = id;
    })->required();
    AddKind(flow, kKindHelp, &arguments_.kind);
    CLI::App* params = AddListing(&app_, Command::kParams, "params",
                                  "Print the values of a flow's parameter that are used most");
    AddFlow(params, "The flow")->required();
    AddLimit(params, kListRowsMax);
    params->add_flag("--minute", arguments_.by_minute,
                     "Order by the calls of the last minute, not of the rule's interval");
    CLI::App* tokens =
        AddListing(&app_, Command::kTokens, "tokens", "Print the oldest live tokens, oldest first");
    AddLimit(tokens);
    AddTokenFilters(tokens);
    CLI::App* waiters =
        AddLiveListing(Command::kWaiters, "waiters", "Print the acquires that wait, by flow");
    AddFlow(waiters, "Only waiters of this flow");
    AddKind(waiters, "Only of rules of the flow (flow) or by value (value)", &arguments_.kind);
    AddClientFilter(waiters, "Only waiters of this client id");
    AddLimit(waiters, kListRowsMax);
    AddSessions();
    AddHistory();
    AddInfo();
  }

  CLI::App* AddLiveListing(Command command, const std::string& name, const std::string& help) {
    CLI::App* app = AddCommand(&app_, command, name, help);
    AddLiveServer(app);
    AddFormat(app, "table on a terminal, jsonl otherwise");
    return app;
  }

  void AddSessions() {
    CLI::App* sessions = AddListing(&app_, Command::kSessions, "sessions",
                                    "Print the sessions of clients and what they hold");
    AddClientFilter(sessions, "Only sessions of this client id, or of @HOST:PORT");
    AddNamespaceFilter(sessions, "Only sessions of this namespace");
    CLI::Option* online = sessions->add_flag_callback(
        "--online", [this] { arguments_.online = true; },
        "Only clients that are connected; asks a running server");
    sessions
        ->add_flag_callback(
            "--offline", [this] { arguments_.online = false; },
            "Only clients that are not connected; asks a running server")
        ->excludes(online);
  }

  void AddInfo() {
    AddLiveListing(Command::kInfo, "info",
                   "Print what a running server says of itself: version, ledger, counts, totals "
                   "and limits");
    CLI::App* ping = AddCommand(&app_, Command::kPing, "ping",
                                "Say whether a server answers; exit 0 or 69: a readiness probe");
    AddLiveServer(ping);
  }

  void AddVerify() {
    CLI::App* verify = AddCommand(&app_, Command::kVerify, "verify",
                                  "Check a ledger on disk: every record, and that all of them "
                                  "belong together; exit 0 or 65");
    AddDataDir(verify)->required();
    AddFormat(verify, "table: lines for people");
    AddInteger<uint64_t>(verify, "--max-problems", "Print this many, count the others [100]", 0,
                         UINT64_MAX, [this](uint64_t max) { arguments_.problems_max = max; })
        ->type_name("N");
    CLI::App* repair = AddCommand(&app_, Command::kRepair, "repair",
                                  "Salvage what can be read of a refused ledger into a new data "
                                  "directory, and say what was lost");
    AddDataDir(repair)->required();
    repair->add_option("--to", arguments_.to, "The new data directory; it must not exist")
        ->type_name("NEWDIR")
        ->required();
    AddOwner(repair);
  }

  void AddOwner(CLI::App* app) {
    app->add_option("--owner", arguments_.owner,
                    "Whose the new files are, for root: the user of the service")
        ->type_name("USER[:GROUP]");
  }

  void AddRules() {
    CLI::App* rules = app_.add_subcommand("rules", "List, load, compare or check rules");
    rules->footer("");
    rules->require_subcommand(1);
    AddNamespaceFilter(AddListing(rules, Command::kRulesList, "list",
                                  "Print the rules; as jsonl in Sentinel's form"),
                       "Only rules of this namespace");
    CLI::App* load = AddCommand(rules, Command::kRulesLoad, "load",
                                "Replace the rules of a namespace on a running server");
    AddLiveServer(load);
    CLI::App* diff = AddListing(rules, Command::kRulesDiff, "diff",
                                "Show what a load would change; exit 0: nothing, 1: something");
    constexpr char kOfFile[] = "The namespace whose rules the file holds";
    AddNamespace(load, kOfFile)->required();
    AddNamespace(diff, kOfFile)->required();
    AddNamespaceFilter(AddListing(rules, Command::kRulesSources, "sources",
                                  "Print where the rules of each namespace come from"),
                       "Only this namespace");
    CLI::App* check = AddCommand(rules, Command::kRulesCheck, "check",
                                 "Say whether a file of rules could be loaded; needs no server");
    check->add_flag("--strict", arguments_.strict, "Exit with 1 if anything is warned of");
    AddNamespace(check, kOfFile);
    for (CLI::App* app : {load, diff, check}) {
      app->add_option("FILE", arguments_.file,
                      "Sentinel's JSON array of rules; '-': standard input")
          ->required();
    }
  }

  CLI::Option* AddNamespace(CLI::App* app, const std::string& help) {
    return app
        ->add_option_function<std::string>(
            "--namespace",
            [this](const std::string& name) {
              Require("--namespace", CheckNamespace(name));
              arguments_.name_space = name;
            },
            help)
        ->type_name("NS");
  }

  CLI::Option* AddKind(CLI::App* app, const std::string& help, std::optional<FlowKind>* kind) {
    return app
        ->add_option_function<std::string>(
            "--kind",
            [kind](const std::string& name) {
              *kind = FlowKindNamed(name);
              if (!kind->has_value()) {
                throw CLI::ValidationError("--kind", "must be flow or value, got " + Quoted(name));
              }
            },
            help)
        ->type_name("KIND");
  }

  CLI::Option* AddFlow(CLI::App* app, const std::string& help) {
    return AddFlowOption(app, "--flow", help, [this](int64_t id) { arguments_.flow_id = id; });
  }

  CLI::Option* AddFlowOption(CLI::App* app, const std::string& name, const std::string& help,
                             const std::function<void(int64_t)>& set) {
    return app
        ->add_option_function<std::string>(
            name,
            [this, name, set](const std::string& text) {
              const FlowId flow = RequireValue(name, client::ParseFlow(text));
              arguments_.flow_name = NameOfFlow(flow);
              if (arguments_.flow_name.empty()) set(flow.value);
            },
            help + ": its number or its resource")
        ->type_name(name == "--flow" ? "FLOW" : "");
  }

  bool has_flow() const { return arguments_.flow_id != 0 || !arguments_.flow_name.empty(); }

  void AddYes(CLI::App* app) {
    app->add_flag("--yes", arguments_.yes, "Do not ask whether many tokens are to be taken back");
  }

  CLI::Option* AddReason(CLI::App* app, const std::string& help) {
    return app
        ->add_option_function<std::string>(
            "--reason",
            [this](const std::string& text) {
              Require("--reason", CheckText(text, kReasonBytesMax));
              arguments_.reason = text;
            },
            help)
        ->type_name("TEXT");
  }

  // One token, or those of a client or flow.
  void AddReclaim() {
    CLI::App* reclaim = AddCommand(&app_, Command::kReclaim, "reclaim",
                                   "Take back a token, or all of a client, a flow or a namespace");
    AddLiveServer(reclaim);
    AddInteger<uint64_t>(reclaim, "TOKEN_ID", "The token", 1, kTokenIdMax,
                         [this](uint64_t id) { arguments_.token_id = id; });
    CLI::Option* client =
        reclaim
            ->add_option_function<std::string>(
                "--client",
                [this](const std::string& id) {
                  Require("--client", CheckText(id, kClientIdBytesMax));
                  arguments_.client_id = id;
                },
                "All tokens of this client id, or of @HOST:PORT as sessions shows it")
            ->type_name("ID");
    client->needs(
        AddNamespace(reclaim, "The namespace of the client; alone: all tokens of its rules"));
    AddInstance(reclaim, "Of the client only the tokens of this instance", &arguments_.instance)
        ->needs(client);
    CLI::Option* flow = AddFlow(reclaim, "All tokens of this flow");
    AddKind(reclaim, kKindHelp, &arguments_.kind)->needs(flow);
    AddReason(reclaim, kReasonHelp)->required();
    AddYes(reclaim);
    reclaim->callback([this] { arguments_.command = WhichReclaim(); });
  }

  Command WhichReclaim() const {
    const bool client = !arguments_.client_id.empty();
    const bool flow = has_flow();
    const bool name_space = !arguments_.name_space.empty() && !client;
    const int kinds = (arguments_.token_id != 0 ? 1 : 0) + (client ? 1 : 0) + (flow ? 1 : 0) +
                      (name_space ? 1 : 0);
    if (kinds != 1) {
      throw CLI::ValidationError("reclaim",
                                 "takes one of TOKEN_ID, --client ID with --namespace NS, "
                                 "--flow FLOW, and --namespace NS");
    }
    if (client) return Command::kReclaimClient;
    if (name_space) return Command::kReclaimNamespace;
    return flow ? Command::kReclaimFlow : Command::kReclaim;
  }

  void AddPurge() {
    CLI::App* purge = AddCommand(&app_, Command::kPurge, "purge",
                                 "Take back all tokens of a flow whose rule was removed");
    AddLiveServer(purge);
    AddFlow(purge, "The flow")->required();
    AddKind(purge, kKindHelp, &arguments_.kind);
    AddReason(purge, kReasonHelp);
    AddYes(purge);
  }

  void AddDrain() {
    CLI::App* drain = AddCommand(
        &app_, Command::kDrain, "drain",
        "Stop the grants of a flow, or of all rules of a namespace, until `drain --off`; tokens "
        "that are out stay");
    AddLiveServer(drain);
    CLI::Option* flow = AddFlow(drain, "The flow");
    AddNamespace(drain, "All rules that this namespace has in force")->excludes(flow);
    AddKind(drain, kKindHelp, &arguments_.kind)->needs(flow);
    drain->add_flag("--off", arguments_.off, "Let it grant again");
    AddReason(drain, "Why, for the server's log");
    drain->callback([this] {
      const bool flow_given = has_flow();
      if (!flow_given && arguments_.name_space.empty()) {
        throw CLI::ValidationError("drain", "takes one of --flow FLOW and --namespace NS");
      }
      arguments_.command = flow_given ? Command::kDrain : Command::kDrainNamespace;
    });
  }

  void AddBackup() {
    CLI::App* backup = AddCommand(&app_, Command::kBackup, "backup",
                                  "Copy the ledger, verify the copy, and say what it holds");
    const std::vector<CLI::Option*> of_server = AddServer(backup);
    Exclude(of_server, AddPath(backup, "--data-dir",
                               "Copy the ledger in this directory, which no server has open",
                               &arguments_.data_dir));
    CLI::Option* timeout =
        AddInteger<int64_t>(backup, "--timeout", "How long to wait for the backup [3600000]", 1,
                            kTimeoutMsMax, [this](int64_t ms) { arguments_.timeout_ms = ms; })
            ->type_name("MS");
    AddPath(backup, "--to",
            "Where to: a path on the machine of the ledger that does not exist yet, absolute for "
            "one that a server has open",
            &arguments_.to)
        ->required();
    backup->callback([this, timeout] {
      arguments_.command = Command::kBackup;
      if (timeout->empty()) arguments_.timeout_ms = kBackupTimeoutMs;
    });
    CLI::App* restore = AddCommand(&app_, Command::kRestore, "restore",
                                   "Make a new ledger of a backup, after checking every file");
    AddPath(restore, "--from", "The backup", &arguments_.from)->required();
    AddPath(restore, "--data-dir", "The new data directory: absent or empty", &arguments_.data_dir)
        ->required();
    AddOwner(restore);
  }

  void AddAccess() {
    const auto [list, test] = AddAccessCommands(&app_, &arguments_);
    AddLiveServer(test);
    for (CLI::App* app : {list, test}) AddFormat(app, "table on a terminal, jsonl otherwise");
  }

  void AddCluster() {
    CLI::App* cluster = AddLiveListing(Command::kCluster, "cluster",
                                       "Print the members of a cluster: who writes, and how far "
                                       "the others are");
    AddServer(AddHandover(cluster, &arguments_));
  }

  void AddHistory() {
    CLI::App* history = AddListing(&app_, Command::kHistory, "history",
                                   "Print how tokens ended that were not released in time, the "
                                   "newest first");
    AddLimit(history);
    HistoryFilter* filter = &arguments_.history_filter;
    AddFlowOption(history, "--flow", "Only tokens of this flow",
                  [filter](int64_t id) { filter->flow_id = id; });
    AddKind(history, kKindOfTokensHelp, &filter->kind);
    AddFilter(history, "--client", "ID", "Only tokens of this client id", &filter->client_id,
              [](const std::string& id) { return CheckText(id, kClientIdBytesMax); });
    AddFilter(history, "--namespace", "NS", "Only tokens of clients in this namespace",
              &filter->name_space, CheckNamespace);
    AddFilter(history, "--reason", "REASON",
              "Only ends for this reason: released, released_late, client_offline, "
              "resource_timeout, rule_removed or admin",
              &filter->reason, CheckEndReason);
    AddAge(history, "--since", "Only ends of at most this long ago, e.g. 500ms, 10s, 5m, 2h",
           [filter](int64_t ms) { filter->max_age_ms = ms; });
    AddAge(history, "--until", "Only ends of at least this long ago",
           [filter](int64_t ms) { filter->min_age_ms = ms; });
  }

  template <typename Check>
  static CLI::Option* AddFilter(CLI::App* app, const std::string& name, const std::string& type,
                                const std::string& help, std::optional<std::string>* value,
                                Check check) {
    return app
        ->add_option_function<std::string>(
            name,
            [name, value, check](const std::string& text) {
              Require(name, check(text));
              *value = text;
            },
            help)
        ->type_name(type);
  }

  CLI::App app_;
  const Environment environment_;
  Arguments arguments_;
  client::SecuritySettings security_;
};

}  // namespace

ParsedArguments ParseArguments(int argc, const char* const* argv, const Environment& environment) {
  if (const auto empty = EmptyOption(argc, argv)) return UsageError(*empty, "nowcalls-admin");
  return Parser(environment).Parse(argc, argv);
}

}  // namespace nowcalls::admin
