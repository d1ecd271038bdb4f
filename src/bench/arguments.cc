#include "bench/arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <sstream>
#include <string_view>

#include "base/exit_codes.h"
#include "base/limits.h"
#include "base/man_page.h"
#include "base/option_values.h"
#include "base/shown_text.h"
#include "base/text.h"
#include "base/usage_errors.h"
#include "nowcalls_version.h"

namespace nowcalls::bench {
namespace {

constexpr uint32_t kConnectionsMax = 100'000;
constexpr uint32_t kInFlightMax = 10'000;
// Of an open loop unless told otherwise: what a nowcalls server takes of a connection by default,
// but not memory without end for very many connections.
constexpr uint32_t kOpenInFlight = 1000;
constexpr uint32_t kOpenInFlightTotal = 1'000'000;
constexpr uint32_t kFlowsMax = 100'000;
constexpr uint32_t kValuesMax = 1'000'000;
constexpr double kRateMax = 10e6;
constexpr uint64_t kTokensMax = 1'000'000'000;
constexpr double kSecondsMax = 86'400;
constexpr int64_t kHoldMsMax = 3'600'000;
constexpr int64_t kFillHoldMsDefault = 3'600'000;
constexpr int64_t kBehindMsMax = 90'000;  // What the histograms can tell.
// Of all connections together: 2 GB of memory.
constexpr double kLanesMax = 50e6;
constexpr uint32_t kReplicasMax = 100;
constexpr size_t kSuffixBytesMax = 8;  // ".39", see bench/nowcalls_target.h.

constexpr char kExamples[] =
    "nowcalls-bench --connections 50 --rate 20000 --hold-ms 50\n"
    "nowcalls-bench fill --tokens 1000000";

constexpr char kFooter[] =
    "Without a command it puts a load on the server: acquires and releases tokens, as fast as the "
    "answers come (closed loop), or with --rate on a fixed schedule (open loop), where latencies "
    "count from when a request was due. An acquire and its release are two operations.\n\n"
    "A terminal gets a table, a file or pipe one JSON object; --format table|json says "
    "otherwise.\n\n"
    "Exit codes: 0 done; 1 the server refused (the rules, every acquire of a load, one of fill), "
    "could not keep up, or answered errors; 64 usage is wrong; 69 the server cannot be reached, "
    "was lost, or hung at the end; 74 input or output failed.\n\n"
    "SIGINT or SIGTERM while a run counts: it shows its figures and exits as if its time were "
    "over. Before that it exits with 1, as fill always does if it has not all its tokens.\n";

std::string Shown(double value) {
  std::ostringstream text;
  text << std::fixed;
  text.precision(value == std::floor(value) ? 0 : 3);
  text << value;
  return text.str();
}
template <typename T>
std::string Shown(T value) {
  return std::to_string(value);
}

template <typename T>
Result<T> ParseNumber(std::string_view text, T min, T max) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (whole && value >= min && value <= max) return value;
  return Status::InvalidArgument(Quoted(text) + " is not a " +
                                 (std::is_integral_v<T> ? "whole " : "") + "number from " +
                                 Shown(min) + " to " + Shown(max));
}

Result<FlowDistribution> ParseDistribution(std::string_view text) {
  if (text == "round-robin") return FlowDistribution::kRoundRobin;
  if (text == "uniform") return FlowDistribution::kUniform;
  return Status::InvalidArgument(Quoted(text) + " is neither round-robin nor uniform");
}

Result<Format> ParseFormat(std::string_view text) {
  if (text == "table") return Format::kTable;
  if (text == "json") return Format::kJson;
  return Status::InvalidArgument(Quoted(text) + " is neither table nor json");
}

Result<Language> ParseLanguage(std::string_view text) {
  for (const Language language : {Language::kMessagePackRpc, Language::kSentinel}) {
    if (text == LanguageName(language)) return language;
  }
  return Status::InvalidArgument(Quoted(text) + " is neither messagepack-rpc nor sentinel");
}

Result<Operation> ParseOperation(std::string_view text) {
  for (const Operation operation :
       {Operation::kAcquire, Operation::kRequest, Operation::kRequestParam}) {
    if (text == OperationName(operation)) return operation;
  }
  return Status::InvalidArgument(Quoted(text) + " is none of acquire, request, request-param");
}

uint32_t OpenInFlight(const Options& options) {
  return std::min(kOpenInFlight, std::max(kOpenInFlightTotal / options.connections, 1U));
}

// What single options cannot tell. Empty: all is well.
std::string Contradiction(const Options& options) {
  const double lanes = static_cast<double>(options.connections) * options.in_flight;
  if (lanes > kLanesMax) {
    return "--connections times --in-flight is " + Shown(lanes) + ", more than " + Shown(kLanesMax);
  }
  // Half of the operations are acquires, and each holds for hold_ms.
  const double held = options.rate / 2 * static_cast<double>(options.hold_ms) / 1000;
  if (held > kLanesMax) {
    return "--rate and --hold-ms would hold " + Shown(held) + " tokens at a time, more than " +
           Shown(kLanesMax);
  }
  if (!options.request_ids && options.target.kind != TargetKind::kNowcalls) {
    return "--no-request-ids is for a nowcalls:// target: Redis has no token without an id";
  }
  const bool redis = options.target.kind == TargetKind::kRedis;
  if (redis && options.language == Language::kSentinel) {
    return "--protocol sentinel is for a nowcalls:// target";
  }
  if (!redis && options.replicas > 0) return "--redis-replicas is for a redis:// target";
  if (options.keys > 0 && (redis || options.language != Language::kMessagePackRpc ||
                           options.operation != Operation::kAcquire)) {
    return "--keys are of acquires in MessagePack-RPC";
  }
  if (redis && options.operation != Operation::kAcquire) {
    return "--operation " + std::string(OperationName(options.operation)) +
           " is for a nowcalls:// target";
  }
  if (options.operation != Operation::kAcquire &&
      (options.hold_ms > 0 || options.expire_rate > 0)) {
    return "--hold-ms and --expire-rate are about tokens, and --operation " +
           std::string(OperationName(options.operation)) + " takes none";
  }
  return "";
}

class Parser {
 public:
  Parser(bool out_is_terminal, const client::SecuritySettings& environment)
      : app_("Measures a nowcalls server, or Redis used as one, under load.", "nowcalls-bench"),
        environment_(environment) {
    options_.format = out_is_terminal ? Format::kTable : Format::kJson;
    app_.set_version_flag("--version", "nowcalls-bench " NOWCALLS_VERSION);
    app_.footer(kFooter);
    app_.require_subcommand(0, 1);
    AddCommon(&app_);
    AddFlows(&app_);
    AddLoad();
    AddFill();
    AddIdle();
  }

  ParsedArguments Parse(int argc, const char* const* argv) {
    ParsedArguments parsed;
    if (WantsManPage(argc, argv)) {
      parsed.out = CommandManPage(app_, 1, kExamples);
      return parsed;
    }
    std::ostringstream out;
    std::ostringstream err;
    try {
      // First an empty --name=, which CLI11 would fill with the next word; then CLI11's own checks;
      // then places, companions, and last contradictions between values.
      if (const auto empty = EmptyOption(argc, argv)) throw CLI::ValidationError(*empty);
      app_.parse(argc, argv);
      RequirePlaces();
      RequireCompanions();
      const bool in_flight_given = app_.get_option("--in-flight")->count() > 0;
      if (options_.rate > 0 && !in_flight_given) options_.in_flight = OpenInFlight(options_);
      const std::string contradiction = Contradiction(options_);
      if (!contradiction.empty()) throw CLI::ValidationError(contradiction);
      ReadSecurity();
      parsed.options = options_;
    } catch (const CLI::Success& help_or_version) {
      parsed.exit_code = app_.exit(help_or_version, out, err);
    } catch (const CLI::ParseError& error) {
      // That of nowcalls-admin.
      const auto hint = [this](const std::string& option) {
        return option != "--server" ? ""
                                    : "'--server' is no option of '" + CommandPath(app_) +
                                          "'; name the server with --target nowcalls://HOST:PORT";
      };
      parsed.exit_code = kExitUsage;
      err << "nowcalls-bench: " << ShownText(ExplainUsage(app_, error, hint)) << "\nRun '"
          << CommandPath(app_) << " --help' to see usage.\n";
    }
    parsed.out = Wrapped(out.str(), kHelpColumns);
    parsed.err = err.str();
    return parsed;
  }

 private:
  // Options before a command would be those of a load, and could contradict those behind it.
  void RequirePlaces() const {
    if (app_.get_subcommands().empty()) return;
    for (const CLI::Option* option : app_.get_options()) {
      if (option->count() == 0) continue;
      throw CLI::ValidationError(
          option->get_name() + " belongs behind the command, if it takes it: " + CommandPath(app_) +
          " " + option->get_name() + " ...");
    }
  }

  void RequireCompanions() const {
    const auto given = [this](const char* name) { return app_.get_option(name)->count() > 0; };
    if (given("--expire-after-ms") && options_.expire_rate == 0) {
      throw CLI::ValidationError(
          "--expire-after-ms is about the tokens of --expire-rate: add --expire-rate N, 1 or more");
    }
    if (given("--behind-max-ms") && options_.rate == 0 && options_.expire_rate == 0) {
      throw CLI::ValidationError(
          "--behind-max-ms is about a schedule: add --rate N, or --expire-rate N, 1 or more");
    }
  }

  void ReadSecurity() {
    const bool is_redis = options_.target.kind == TargetKind::kRedis;
    if (is_redis && !security_.secret_file.empty()) {
      throw CLI::ValidationError("--secret-file", "is for a nowcalls:// target");
    }
    auto security =
        client::ReadSecurity(security_, is_redis ? client::SecuritySettings{} : environment_);
    if (!security.ok()) throw CLI::ValidationError(security.status().message());
    options_.security = *std::move(security);
  }

  template <typename T, typename U>
  void AddNumber(CLI::App* app, const std::string& name, const std::string& type,
                 const std::string& help, T min, T max, U* value) {
    app->add_option_function<std::string>(
           name,
           [name, min, max, value](const std::string& text) {
             *value = static_cast<U>(RequireValue(name, ParseNumber<T>(text, min, max)));
           },
           help)
        ->type_name(type);
  }

  void AddSeconds(CLI::App* app, const std::string& name, const std::string& help, double min,
                  int64_t* ms) {
    app->add_option_function<std::string>(
           name,
           [name, min, ms](const std::string& text) {
             const double s = RequireValue(name, ParseNumber<double>(text, min, kSecondsMax));
             *ms = std::llround(s * 1000);
           },
           help)
        ->type_name("SECONDS");
  }

  void AddCommon(CLI::App* app) {
    app->add_option_function<std::string>(
           "--target",
           [this](const std::string& text) {
             options_.target = RequireValue("--target", ParseTarget(text));
           },
           "nowcalls://HOST:PORT, with commas those of a cluster, or redis://HOST:PORT "
           "[nowcalls://127.0.0.1:18730]")
        ->type_name("URL");
    client::AddSecurityOptions(app, &security_);
    AddNumber<uint32_t>(app, "--connections", "N", "Connections [16]", 1, kConnectionsMax,
                        &options_.connections);
    app->add_option_function<std::string>(
           "--format",
           [this](const std::string& text) {
             options_.format = RequireValue("--format", ParseFormat(text));
           },
           "table or json [table on a terminal, json otherwise]")
        ->type_name("FORMAT");
    AddNumber<int64_t>(app, "--server-pid", "PID",
                       "Also show what this process, the server on this machine, uses", 1,
                       INT32_MAX, &options_.server_pid);
  }

  void AddFlows(CLI::App* app) {
    app->add_option_function<std::string>(
           "--namespace",
           [this](const std::string& name) {
             const Status checked = CheckName(name, kNamespaceBytesMax - kSuffixBytesMax);
             if (!checked.ok()) throw CLI::ValidationError("--namespace", checked.message());
             options_.name_space = name;
           },
           "Where the rules are loaded, replacing those that are there [bench]")
        ->type_name("NS");
    AddNumber<uint32_t>(app, "--flows", "N", "Flows that are acquired [1]", 1, kFlowsMax,
                        &options_.flows);
    AddNumber<int64_t>(app, "--first-flow", "ID", "Id of the first flow [1000001]", 1,
                       int64_t{1} << 53, &options_.first_flow);
    AddNumber<int64_t>(app, "--level", "N", "Level of each flow [2147483647]", 0, INT32_MAX,
                       &options_.level);
    AddNumber<uint32_t>(app, "--in-flight", "N",
                        std::string("Requests of a connection that are in flight at most [16") +
                            (app == &app_ ? "; with --rate 1000]" : "]"),
                        1, kInFlightMax, &options_.in_flight);
    app->add_flag_callback(
        "--no-request-ids", [this] { options_.request_ids = false; },
        "Acquires of a nowcalls server carry no request_id: none can be asked again");
  }

  void AddLoad() {
    AddNumber<double>(&app_, "--rate", "N",
                      "Open loop: operations a second in total, whatever the server does", 0.1,
                      kRateMax, &options_.rate);
    app_.add_option_function<std::string>(
            "--flow-distribution",
            [this](const std::string& text) {
              options_.flow_distribution =
                  RequireValue("--flow-distribution", ParseDistribution(text));
            },
            "round-robin or uniform [round-robin]")
        ->type_name("NAME");
    AddNumber<uint64_t>(&app_, "--seed", "N", "Of uniform [1]", 0, UINT64_MAX, &options_.seed);
    AddNumber<int64_t>(&app_, "--hold-ms", "MS", "How long a token is held [0]", 0, kHoldMsMax,
                       &options_.hold_ms);
    app_.add_option_function<std::string>(
            "--protocol",
            [this](const std::string& text) {
              options_.language = RequireValue("--protocol", ParseLanguage(text));
            },
            "What a nowcalls server is asked in: messagepack-rpc or sentinel [messagepack-rpc]")
        ->type_name("NAME");
    app_.add_option_function<std::string>(
            "--operation",
            [this](const std::string& text) {
              options_.operation = RequireValue("--operation", ParseOperation(text));
            },
            "acquire (and release), request (calls a second; Sentinel's FLOW) or request-param "
            "(of one value of a parameter; PARAM_FLOW) [acquire]")
        ->type_name("NAME");
    AddNumber<uint32_t>(&app_, "--values", "N", "Values of the parameter of request-param [1000]",
                        1, kValuesMax, &options_.values);
    AddNumber<uint32_t>(&app_, "--keys", "N",
                        "Let each acquire name one of N values of a parameter, in turn [0: none]",
                        0, kValuesMax, &options_.keys);
    AddNumber<uint32_t>(&app_, "--redis-replicas", "N",
                        "Redis: WAIT for N replicas behind each command [0: no WAIT]", 0,
                        kReplicasMax, &options_.replicas);
    AddSeconds(&app_, "--duration", "How long is counted [10]", 0.1, &options_.duration_ms);
    AddSeconds(&app_, "--warm-up", "Load before that is not counted [1]", 0, &options_.warm_up_ms);
    AddNumber<int64_t>(
        &app_, "--behind-max-ms", "MS",
        "Open loop: give up when a request is not answered so long after it was due [10000]", 1,
        kBehindMsMax, &options_.behind_ms_max);
    AddNumber<uint32_t>(&app_, "--expire-rate", "N",
                        "Besides, acquire N tokens a second that expire [0]", 0, kInFlightMax,
                        &options_.expire_rate);
    AddNumber<int64_t>(&app_, "--expire-after-ms", "MS", "How long those live [2000]", 2,
                       kHoldMsMax, &options_.expire_after_ms);
    app_.add_flag("--keep-rules", options_.keep_rules, "Leave the rules loaded at the end");
  }

  void AddFill() {
    CLI::App* fill = app_.add_subcommand(
        "fill", "Acquire tokens and leave them, for measuring memory and recovery");
    fill->footer(
        "The rules stay. The tokens belong to the client id nowcalls-bench-fill and outlive its\n"
        "connections. A load of the same flows replaces their rules, and the tokens end within\n"
        "seconds; one with another --first-flow leaves them alone.\n");
    AddCommon(fill);
    AddFlows(fill);
    AddNumber<uint64_t>(fill, "--tokens", "N", "How many", 1, kTokensMax, &options_.tokens);
    fill->get_option("--tokens")->required();
    // Its own variable: --hold-ms of a load has another default.
    fill_hold_ms_ = kFillHoldMsDefault;
    AddNumber<int64_t>(fill, "--hold-ms", "MS", "How long they live [3600000]", 2, kRuleTimeMsMax,
                       &fill_hold_ms_);
    AddNumber<int64_t>(fill, "--client-offline-ms", "MS",
                       "How long they live at most once the fill has ended [as --hold-ms]", 1,
                       kRuleTimeMsMax, &options_.client_offline_ms);
    fill->callback([this] {
      options_.command = Command::kFill;
      options_.hold_ms = fill_hold_ms_;
    });
  }

  void AddIdle() {
    CLI::App* idle =
        app_.add_subcommand("idle", "Open connections that say hello and then nothing");
    idle->footer("");
    AddCommon(idle);
    AddSeconds(idle, "--duration", "How long they stay [10]", 0.1, &options_.duration_ms);
    idle->callback([this] { options_.command = Command::kIdle; });
  }

  CLI::App app_;
  const client::SecuritySettings environment_;
  Options options_;
  client::SecuritySettings security_;
  int64_t fill_hold_ms_ = 0;
};

}  // namespace

ParsedArguments ParseArguments(int argc, const char* const* argv, bool out_is_terminal,
                               const client::SecuritySettings& environment) {
  return Parser(out_is_terminal, environment).Parse(argc, argv);
}

}  // namespace nowcalls::bench
