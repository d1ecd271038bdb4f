#include "bench/arguments.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace nowcalls::bench {
namespace {

ParsedArguments Parse(std::vector<const char*> words, bool out_is_terminal = false) {
  words.insert(words.begin(), "nowcalls-bench");
  return ParseArguments(static_cast<int>(words.size()), words.data(), out_is_terminal);
}

Options OptionsOf(const std::vector<const char*>& words) {
  const ParsedArguments parsed = Parse(words);
  CAPTURE(parsed.err);
  REQUIRE(parsed.options.has_value());
  return *parsed.options;
}

// The first line on stderr; the exit code must be that of wrong usage.
std::string ErrorOf(const std::vector<const char*>& words) {
  const ParsedArguments parsed = Parse(words);
  CHECK_FALSE(parsed.options.has_value());
  CHECK(parsed.exit_code == 64);
  CHECK(parsed.out.empty());
  return parsed.err.substr(0, parsed.err.find('\n'));
}

TEST_CASE("without options nowcalls-bench runs a closed loop against the default server") {
  const Options options = OptionsOf({});
  CHECK(options.command == Command::kLoad);
  CHECK(options.target.ToString() == "nowcalls://127.0.0.1:18730");
  CHECK(options.rate == 0);
  CHECK(options.connections == 16);
  CHECK(options.in_flight == 16);
  CHECK(options.format == Format::kJson);
  CHECK(Parse({}, true).options->format == Format::kTable);
}

TEST_CASE("the members of a cluster are a target, and servers of other kinds are not") {
  const Options options = OptionsOf({"--target", "nowcalls://a:1,b:2,[::1]:3"});
  CHECK(options.target.ToString() == "nowcalls://a:1");
  CHECK(options.target.Servers() == "a:1,b:2,[::1]:3");
  CHECK(ErrorOf({"--target", "redis://a:1,b:2"}) ==
        "nowcalls-bench: --target: several addresses are for a nowcalls:// target, a cluster");
  CHECK(ErrorOf({"--target", "nowcalls:///run/server.sock"}) ==
        "nowcalls-bench: --target: '/run/server.sock' is no HOST:PORT");
  CHECK(ErrorOf({"--target", "nowcalls://a:1,"}) != "");
}

TEST_CASE("all options of a load are read") {
  const Options options = OptionsOf({"--target",
                                     "redis://[::1]:6379",
                                     "--connections",
                                     "50",
                                     "--in-flight",
                                     "100",
                                     "--rate",
                                     "12500.5",
                                     "--flows",
                                     "20",
                                     "--flow-distribution",
                                     "uniform",
                                     "--seed",
                                     "9",
                                     "--first-flow",
                                     "77",
                                     "--level",
                                     "5",
                                     "--hold-ms",
                                     "30",
                                     "--duration",
                                     "2.5",
                                     "--warm-up",
                                     "0",
                                     "--behind-max-ms",
                                     "500",
                                     "--expire-rate",
                                     "40",
                                     "--expire-after-ms",
                                     "250",
                                     "--namespace",
                                     "ns",
                                     "--format",
                                     "table",
                                     "--server-pid",
                                     "123",
                                     "--keep-rules"});
  CHECK(options.target.ToString() == "redis://[::1]:6379");
  CHECK(options.connections == 50);
  CHECK(options.in_flight == 100);
  CHECK(options.rate == 12500.5);
  CHECK(options.flows == 20);
  CHECK(options.flow_distribution == FlowDistribution::kUniform);
  CHECK(options.seed == 9);
  CHECK(options.first_flow == 77);
  CHECK(options.level == 5);
  CHECK(options.hold_ms == 30);
  CHECK(options.duration_ms == 2500);
  CHECK(options.warm_up_ms == 0);
  CHECK(options.behind_ms_max == 500);
  CHECK(options.expire_rate == 40);
  CHECK(options.expire_after_ms == 250);
  CHECK(options.name_space == "ns");
  CHECK(options.format == Format::kTable);
  CHECK(options.server_pid == 123);
  CHECK(options.keep_rules);
}

TEST_CASE("acquires have request ids unless told otherwise, which is for nowcalls alone") {
  CHECK(OptionsOf({}).request_ids);
  CHECK_FALSE(OptionsOf({"--no-request-ids"}).request_ids);
  CHECK_FALSE(OptionsOf({"fill", "--tokens", "1", "--no-request-ids"}).request_ids);
  CHECK(ErrorOf({"--no-request-ids", "--target", "redis://h:1"}).find("--no-request-ids is for") !=
        std::string::npos);
}

TEST_CASE("a load says in which protocol it asks, and for what") {
  CHECK(OptionsOf({}).language == Language::kMessagePackRpc);
  CHECK(OptionsOf({}).operation == Operation::kAcquire);
  CHECK(OptionsOf({"--protocol", "sentinel"}).language == Language::kSentinel);
  CHECK(OptionsOf({"--protocol", "sentinel", "--operation", "request"}).operation ==
        Operation::kRequest);
  const Options param =
      OptionsOf({"--protocol", "sentinel", "--operation", "request-param", "--values", "7"});
  CHECK(param.operation == Operation::kRequestParam);
  CHECK(param.values == 7);
  const auto error_names = [](const std::vector<const char*>& words, const std::string& part) {
    CAPTURE(part);
    CHECK(ErrorOf(words).find(part) != std::string::npos);
  };
  error_names({"--protocol", "http"}, "neither messagepack-rpc nor sentinel");
  error_names({"--operation", "get"}, "none of acquire, request, request-param");
  error_names({"--protocol", "sentinel", "--target", "redis://h:1"}, "nowcalls:// target");
  error_names({"--secret-file", "/s", "--target", "redis://h:1"},
              "--secret-file: is for a nowcalls:// target");
  error_names({"--protocol", "sentinel", "--operation", "request", "--hold-ms", "5"},
              "about tokens");
}

TEST_CASE("an open loop has many requests in flight unless told otherwise") {
  CHECK(OptionsOf({"--rate", "100"}).in_flight == 1000);
  CHECK(OptionsOf({"--rate", "100", "--connections", "10000"}).in_flight == 100);
  CHECK(OptionsOf({"--rate", "100", "--in-flight", "5"}).in_flight == 5);
}

TEST_CASE("fill and idle have options of their own") {
  const Options fill = OptionsOf({"fill", "--tokens", "1000", "--hold-ms", "60000"});
  CHECK(fill.command == Command::kFill);
  CHECK(fill.tokens == 1000);
  CHECK(fill.hold_ms == 60'000);
  CHECK(OptionsOf({"fill", "--tokens", "1"}).hold_ms == 3'600'000);
  CHECK(OptionsOf({"fill", "--tokens", "1"}).client_offline_ms == 0);
  CHECK(OptionsOf({"fill", "--tokens", "1", "--client-offline-ms", "5000"}).client_offline_ms ==
        5000);
  const Options idle = OptionsOf({"idle", "--connections", "9", "--duration", "1"});
  CHECK(idle.command == Command::kIdle);
  CHECK(idle.connections == 9);
  CHECK(idle.duration_ms == 1000);
}

TEST_CASE("what is wrong with an option of nowcalls-bench is said with its range") {
  CHECK(ErrorOf({"--connections", "0"}) ==
        "nowcalls-bench: --connections: '0' is not a whole number from 1 to 100000");
  CHECK(ErrorOf({"--rate", "fast"}) ==
        "nowcalls-bench: --rate: 'fast' is not a number from 0.100 to 10000000");
  CHECK(ErrorOf({"--rate", "nan"}).find("is not a number") != std::string::npos);
  CHECK(ErrorOf({"--duration", "1e9"}).find("from 0.100 to 86400") != std::string::npos);
  CHECK(ErrorOf({"--in-flight", "2.5"}).find("whole number") != std::string::npos);
  CHECK(ErrorOf({"--format", "xml"}) ==
        "nowcalls-bench: --format: 'xml' is neither table nor json");
  CHECK(ErrorOf({"--flow-distribution", "zipf"}).find("round-robin") != std::string::npos);
  CHECK(ErrorOf({"--namespace", ""}).find("--namespace: must be 1..120 bytes") !=
        std::string::npos);
  CHECK(ErrorOf({"--seed"}) == "nowcalls-bench: --seed needs a value");
}

TEST_CASE("a target is a scheme, a host and a port") {
  CHECK(ErrorOf({"--target", "127.0.0.1:18730"}) ==
        "nowcalls-bench: --target: '127.0.0.1:18730' is neither nowcalls://HOST:PORT nor "
        "redis://HOST:PORT");
  CHECK(ErrorOf({"--target", "redis://somewhere"}).find("is not HOST:PORT") != std::string::npos);
  CHECK(ErrorOf({"--target", "redis://somewhere:0"}).find("port 0") != std::string::npos);
}

TEST_CASE("an option that a shell left empty takes no other argument for its value") {
  CHECK(ErrorOf({"--target=", "redis://127.0.0.1:6379"}) ==
        "nowcalls-bench: --target= is empty; give it a value, or leave it out");
}

TEST_CASE("options and commands that nowcalls-bench does not know are named") {
  CHECK(ErrorOf({"--foo"}) == "nowcalls-bench: '--foo' is no option of 'nowcalls-bench'");
  CHECK(ErrorOf({"fil"}) ==
        "nowcalls-bench: 'fil' is not a command; there are fill, idle; did you mean fill?");
  CHECK(ErrorOf({"somewhere"}) ==
        "nowcalls-bench: 'somewhere' is not a command; there are fill, idle");
  CHECK(ErrorOf({"idle", "--rate", "5"}) ==
        "nowcalls-bench: '--rate' is no option of 'nowcalls-bench idle'");
  CHECK(ErrorOf({"fill"}).find("--tokens is required") != std::string::npos);
  CHECK(ErrorOf({"--connections", "3", "idle"}) ==
        "nowcalls-bench: --connections belongs behind the command, if it takes it: "
        "nowcalls-bench idle --connections ...");
}

TEST_CASE("the server is named as a target, which who knows nowcalls-admin is told") {
  for (const char* word : {"--server", "--server=127.0.0.1:1"}) {
    CHECK(ErrorOf({"idle", word}) ==
          "nowcalls-bench: '--server' is no option of 'nowcalls-bench idle'; name the server with "
          "--target nowcalls://HOST:PORT");
  }
}

TEST_CASE("an option that would do nothing is refused with those that it belongs to") {
  const std::string expire =
      "nowcalls-bench: --expire-after-ms is about the tokens of --expire-rate: add --expire-rate "
      "N, "
      "1 or more";
  CHECK(ErrorOf({"--expire-after-ms", "500"}) == expire);
  CHECK(ErrorOf({"--expire-after-ms", "500", "--rate", "5", "--expire-rate", "0"}) == expire);
  CHECK(ErrorOf({"--behind-max-ms", "500"}) ==
        "nowcalls-bench: --behind-max-ms is about a schedule: add --rate N, or --expire-rate N, 1 "
        "or more");
  CHECK(OptionsOf({"--behind-max-ms", "500", "--rate", "5"}).behind_ms_max == 500);
  CHECK(OptionsOf({"--behind-max-ms", "500", "--expire-rate", "5"}).behind_ms_max == 500);
}

TEST_CASE("loads that no machine could hold are refused") {
  CHECK(ErrorOf({"--connections", "100000", "--in-flight", "10000"})
            .find("1000000000, more than 50000000") != std::string::npos);
  CHECK(ErrorOf({"--rate", "1000000", "--hold-ms", "3600000"}).find("--hold-ms") !=
        std::string::npos);
}

TEST_CASE("help and version of nowcalls-bench go to stdout") {
  const ParsedArguments help = Parse({"--help"});
  CHECK(help.exit_code == 0);
  CHECK(help.err.empty());
  CHECK(help.out.find("--in-flight") != std::string::npos);
  CHECK(Parse({"--version"}).out.find("nowcalls-bench 1.") == 0);
}

}  // namespace
}  // namespace nowcalls::bench
