#include "command/arguments.h"

#include <CLI/CLI.hpp>
#include <functional>
#include <set>
#include <sstream>
#include <string_view>

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
#include "nowcalls_version.h"

namespace nowcalls::command {
namespace {

constexpr char kExamples[] =
    "nowcalls exec --flow 1001 --wait 30s -- ./report.sh\n"
    "nowcalls exec --flow 1001 --flow 1002:2 --on-lost term -- make\n"
    "nowcalls top 1001";

constexpr char kFooter[] =
    "Exit codes: 0 done; 1 refused, or no such token or flow; 64 usage is wrong; 69 the server "
    "cannot be reached; 74 the output cannot be written.\n\n"
    "Environment: NOWCALLS_SERVER, NOWCALLS_NAMESPACE and NOWCALLS_CLIENT_ID stand for --server, "
    "--namespace and --client-id.\n";

constexpr char kExecFooter[] =
    "The command finds NOWCALLS_TOKEN_ID, NOWCALLS_FENCE and NOWCALLS_FLOW_ID in its environment, "
    "of several flows separated by commas; also NOWCALLS_SERVER and NOWCALLS_NAMESPACE. Signals "
    "are passed on, and end a wait. The token is released when the command ends.\n\n"
    "Exit codes: the command's own, and 128+N if signal N ended it; 120 refused; 121 no room "
    "within --wait; 122 the server cannot be reached; 123 the flow has no rule; 124 "
    "the token was lost and the command stopped (--on-lost); 125 the server does not permit it; "
    "126 the command cannot be run; 127 it is not found; 64 usage is wrong.\n";

// A duration of at most kWaitMsMax; "0" needs no unit.
CLI::Option* AddDuration(CLI::App* app, const std::string& name, const std::string& help,
                         const std::function<void(int64_t)>& set) {
  return app
      ->add_option_function<std::string>(
          name,
          [name, set](const std::string& text) {
            const int64_t ms = text == "0" ? 0 : RequireValue(name, ParseDuration(text));
            if (ms > kWaitMsMax) throw CLI::ValidationError(name, "must be at most 1h");
            set(ms);
          },
          help)
      ->type_name("DURATION");
}

// FLOW or FLOW:COUNT. Without a COUNT it is 0, for --count to set. A name may have colons: only a
// whole number behind the last one is a COUNT.
Result<FlowDemand> ParseDemand(std::string_view text) {
  FlowDemand demand{.flow = {}, .count = 0};
  const size_t colon = text.rfind(':');
  if (colon != std::string_view::npos) {
    const auto count = ParseInteger<uint32_t>(text.substr(colon + 1), 1, uint32_t{INT32_MAX});
    const Result<FlowId> before = client::ParseFlow(text.substr(0, colon));
    if (!count.ok() && before.ok() && before->value > 0) return count.status();
    if (count.ok()) {
      demand.count = *count;
      text = text.substr(0, colon);
    }
  }
  const Result<FlowId> flow = client::ParseFlow(text);
  if (!flow.ok()) return flow.status();
  demand.flow = *flow;
  return demand;
}

std::vector<std::string> Split(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
  return parts;
}

// CLI11 reports mistakes, help and version as exceptions. Parse turns them into text and exit code.
class Parser {
 public:
  explicit Parser(const Environment& environment) : environment_(environment) {
    app_.set_version_flag("--version", "nowcalls " NOWCALLS_VERSION);
    app_.footer(kFooter);
    app_.require_subcommand(1);
    AddExec();
    AddTokens();
    AddWatching();
  }

  ParsedArguments Parse(int argc, const char* const* argv) {
    ParsedArguments parsed;
    if (WantsManPage(argc, argv)) {
      parsed.ends = true;
      parsed.out = CommandManPage(app_, 1, kExamples);
      return parsed;
    }
    try {
      app_.parse(argc, argv);
      Finish();
      parsed.arguments = std::move(arguments_);
    } catch (const CLI::CallForHelp&) {
      const auto chosen = app_.get_subcommands();
      parsed.ends = true;
      parsed.out = Wrapped(chosen.empty() ? app_.help() : chosen.front()->help(), kHelpColumns);
    } catch (const CLI::CallForVersion& version) {
      parsed.ends = true;
      parsed.out = std::string(version.what()) + "\n";
    } catch (const CLI::ParseError& error) {
      parsed.ends = true;
      parsed.exit_code = kExitUsage;
      const auto hint = [](const std::string&) { return ""; };
      parsed.err = "nowcalls: " + ShownText(ExplainUsage(app_, error, hint)) + "\nRun '" +
                   CommandPath(app_) + " --help' to see usage.\n";
    }
    return parsed;
  }

 private:
  CLI::App* Add(Command command, const std::string& name, const std::string& help) {
    CLI::App* const sub = app_.add_subcommand(name, help);
    sub->callback([this, command] { arguments_.command = command; });
    sub->add_option("--server", server_, "HOST:PORT of the server, or several, with commas");
    sub->add_option("--namespace", name_space_, "The application")->type_name("NAME");
    sub->add_option("--client-id", arguments_.client.client_id, "The session's name")
        ->type_name("NAME");
    client::AddSecurityOptions(sub, &security_);
    AddDuration(sub, "--timeout", "What an answer may take, beside a wait [5s]",
                [this](int64_t ms) { arguments_.client.timeout = Milliseconds(ms); });
    return sub;
  }

  void AddAcquireOptions(CLI::App* sub) {
    sub->add_option_function<std::vector<std::string>>(
           "--flow",
           [this](const std::vector<std::string>& texts) {
             for (const std::string& text : texts) {
               arguments_.flows.push_back(RequireValue("--flow", ParseDemand(text)));
             }
           },
           "The rule's flowId or resource; several are taken together, all or none")
        ->type_name("FLOW[:COUNT]")
        ->expected(1)
        ->allow_extra_args(false)  // The next word may be exec's command.
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->required();
    AddInteger<uint32_t>(sub, "--count", "Calls of each flow without a COUNT [1]", 1, INT32_MAX,
                         [this](uint32_t count) { count_ = count; });
    AddDuration(sub, "--wait", "How long to wait for room, such as 30s or 5m; at most 1h [0]",
                [this](int64_t ms) { arguments_.acquire.wait = Milliseconds(ms); });
    sub->add_flag("--priority", arguments_.acquire.prioritized, "Wait before those without it");
    sub->add_option_function<std::string>(
           "--param", [this](const std::string& text) { param_ = text; },
           "The value of the rule's parameter, a str")
        ->type_name("VALUE");
    sub->add_option_function<int64_t>(
        "--param-int", [this](int64_t number) { param_ = number; }, "The same, an integer");
    AddDuration(sub, "--hold", "A shorter hold than the rule's",
                [this](int64_t ms) { arguments_.acquire.hold = Milliseconds(ms); });
    sub->add_option_function<std::string>(
           "--if-no-rule",
           [this](const std::string& text) { arguments_.needs_rule = text != "run"; },
           "A flow without a rule, which nothing limits: fail [default] or run")
        ->check(CLI::IsMember({"fail", "run"}))
        ->type_name("WHAT");
  }

  void AddExec() {
    CLI::App* const exec =
        Add(Command::kExec, "exec", "Runs a command while it holds a token, like flock");
    exec->footer(kExecFooter);
    arguments_.acquire.keep = KeepMode::kAlways;
    arguments_.client.fallback = Fallback::kByRule;
    AddAcquireOptions(exec);
    exec->add_option_function<std::string>(
            "--on-lost",
            [this](const std::string& text) {
              arguments_.on_lost = text == "term"   ? OnLost::kTerm
                                   : text == "kill" ? OnLost::kKill
                                                    : OnLost::kIgnore;
            },
            "When the token is lost: ignore [default]; kill: SIGKILL to the command and to all "
            "that it started; term: SIGTERM, and SIGKILL after 10 s. Under term and kill nothing "
            "of them outlives the token")
        ->check(CLI::IsMember({"ignore", "term", "kill"}))
        ->type_name("WHAT");
    exec->add_option_function<std::string>(
            "--forward-to",
            [this](const std::string& text) { arguments_.signals_to_all = text == "all"; },
            "Signals are passed on to the command [default], or to all that it started")
        ->check(CLI::IsMember({"command", "all"}))
        ->type_name("WHOM");
    exec->add_option_function<std::string>(
            "--fallback",
            [this](const std::string& text) {
              arguments_.client.fallback = text == "rule"   ? Fallback::kByRule
                                           : text == "pass" ? Fallback::kPass
                                                            : Fallback::kFail;
            },
            "No server answers: rule [default]: run without a token, or up to this process's share "
            "of the level, as the rule said when it was last seen; pass: run without one; fail: do "
            "not run")
        ->check(CLI::IsMember({"rule", "pass", "fail"}))
        ->type_name("WHAT");
    exec->add_option_function<std::string>(
            "--keep",
            [this](const std::string& text) {
              arguments_.acquire.keep = text == "rule"  ? KeepMode::kByRule
                                        : text == "off" ? KeepMode::kOff
                                                        : KeepMode::kAlways;
            },
            "The token is kept as long as the command runs: always [default]; rule: as its "
            "resourceTimeoutStrategy says; off: it is lost when its hold ends")
        ->check(CLI::IsMember({"always", "rule", "off"}))
        ->type_name("WHAT");
    AddInteger<int>(exec, "--refused-code", "Exit code in place of 120 and 121", 0, 255,
                    [this](int code) { arguments_.refused_code = code; })
        ->type_name("CODE");
    exec->add_flag("--quiet", arguments_.quiet, "Say nothing on stderr");
    exec->add_option("command", arguments_.argv, "The command and its arguments, behind --")
        ->required()
        ->type_name("-- COMMAND");
    exec->positionals_at_end();
  }

  void AddTokens() {
    CLI::App* const acquire =
        Add(Command::kAcquire, "acquire",
            "Takes a token and leaves it with the session of --client-id, for the rule's "
            "clientOfflineTime unless `nowcalls keep` or another client of that id comes");
    AddAcquireOptions(acquire);
    acquire->add_flag("--json", arguments_.json, "One JSON object instead of words");
    for (const bool keep : {false, true}) {
      CLI::App* const sub =
          keep ? Add(Command::kKeep, "keep", "Renews the hold of a token of --client-id")
               : Add(Command::kRelease, "release", "Gives back a token of --client-id");
      AddInteger<uint64_t>(sub, "token", "The token's id", 1, uint64_t{INT64_MAX},
                           [this](uint64_t token) { arguments_.token = token; })
          ->required();
    }
  }

  void AddWatching() {
    CLI::App* const flow = Add(Command::kFlow, "flow", "Shows one flow");
    AddFlowOf(flow)->required();
    flow->add_flag("--json", arguments_.json, "One JSON object instead of words");
    CLI::App* const ping = Add(Command::kPing, "ping", "Measures round trips, like ping(8)");
    AddInteger<uint64_t>(ping, "--count", "How many [until interrupted]", 1, UINT32_MAX,
                         [this](uint64_t count) { arguments_.count = count; });
    AddInterval(ping);
    CLI::App* const top =
        Add(Command::kTop, "top", "Shows flows, holders and waiters, again and again");
    AddFlowOf(top);
    AddInterval(top);
    top->add_flag("--once", arguments_.once, "Print one frame and end");
  }

  CLI::Option* AddFlowOf(CLI::App* sub) {
    return sub
        ->add_option_function<std::string>(
            "flow",
            [this](const std::string& text) {
              arguments_.flows = {{.flow = RequireValue("flow", client::ParseFlow(text))}};
            },
            "The rule's flowId or resource")
        ->type_name("FLOW");
  }

  void AddInterval(CLI::App* sub) {
    AddDuration(sub, "--interval", "Time between two of them [1s]", [this](int64_t ms) {
      if (ms < 10) throw CLI::ValidationError("--interval", "must be at least 10ms");
      arguments_.interval_ms = ms;
    });
  }

  // Checks that need all options. Throws CLI::ValidationError.
  void Finish() {
    // 1. The server: the command line, else the environment, else the default.
    ClientOptions& options = arguments_.client;
    if (server_.empty()) server_ = environment_.server;
    if (!server_.empty()) options.addresses = Split(server_);
    for (const std::string& address : options.addresses) {
      Require("--server", net::ParseServer(address).status());
    }
    auto security = client::ReadSecurity(security_, environment_.security);
    if (!security.ok()) throw CLI::ValidationError(security.status().message());
    options.tls = std::move(security->tls);
    options.secret = std::move(security->secret);
    if (name_space_.empty()) name_space_ = environment_.name_space;
    if (!name_space_.empty()) options.name_space = name_space_;
    Require("--namespace", CheckNamespace(options.name_space));
    if (options.client_id.empty()) options.client_id = environment_.client_id;
    if (!options.client_id.empty()) Require("--client-id", CheckClientId(options.client_id));
    if (options.timeout < Milliseconds(1)) {
      throw CLI::ValidationError("--timeout", "must be at least 1ms");
    }
    // 2. acquire, release and keep share a session over processes, so they need its client id.
    const bool by_session = arguments_.command == Command::kAcquire ||
                            arguments_.command == Command::kRelease ||
                            arguments_.command == Command::kKeep;
    if (by_session) {
      options.rejoin = true;               // Each command is a process of its own.
      options.fallback = Fallback::kFail;  // A token that no server knows helps no later command.
    }
    if (by_session && options.client_id.empty()) {
      throw CLI::ValidationError("--client-id",
                                 "is required: the token belongs to the session of that name");
    }
    // 3. Flows: counts and the parameter. A flow twice would be refused by the server.
    for (FlowDemand& demand : arguments_.flows) {
      if (demand.count == 0) demand.count = count_;
      if (arguments_.flows.size() == 1) demand.param = param_;
    }
    std::set<FlowId> flows;
    for (const FlowDemand& demand : arguments_.flows) {
      if (flows.insert(demand.flow).second) continue;
      const std::string flow = client::FlowWord(demand.flow);
      throw CLI::ValidationError("--flow", flow + " is given twice; write " + flow + ":COUNT");
    }
    if (arguments_.flows.size() > 1 && param_.index() != 0) {
      throw CLI::ValidationError("--param", "goes with one --flow alone");
    }
  }

  CLI::App app_{"Takes tokens of a nowcalls server for scripts and people.", "nowcalls"};
  const Environment environment_;
  Arguments arguments_;
  std::string server_;
  std::string name_space_;
  client::SecuritySettings security_;
  uint32_t count_ = 1;  // Of a flow without one.
  Value param_{};
};

}  // namespace

ParsedArguments ParseArguments(int argc, const char* const* argv, const Environment& environment) {
  return Parser(environment).Parse(argc, argv);
}

}  // namespace nowcalls::command
