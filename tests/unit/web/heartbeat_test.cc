#include "web/sentinel/heartbeat.h"

#include <doctest/doctest.h>
#include <stdlib.h>
#include <unistd.h>

#include <mutex>
#include <string>
#include <vector>

#include "base/clock.h"
#include "support/fake_dashboard.h"
#include "support/poll_until.h"

namespace nowcalls::web {
namespace {

using testing::FakeDashboard;
using testing::kPatienceMs;
using testing::PollUntil;

const SentinelMachine kMachine{"my app&co", {"127.0.0.1", 8719}};

// The lines of a heartbeat.
class Lines {
 public:
  LogLine Writer() {
    return [this](bool problem, const std::string& line) {
      const std::lock_guard lock(mutex_);
      lines_.push_back((problem ? "problem: " : "") + line);
    };
  }
  std::vector<std::string> Take() {
    const std::lock_guard lock(mutex_);
    return lines_;
  }
  bool Await(size_t count) {
    return PollUntil(kPatienceMs, [&] { return Take().size() >= count; });
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> lines_;
};

HostPort AddressOf(const FakeDashboard& dashboard) { return {"127.0.0.1", dashboard.port()}; }

Result<ToldAddress> TellOnce(const FakeDashboard& dashboard,
                             const SentinelMachine& machine = kMachine) {
  return TellDashboard(AddressOf(dashboard), machine, BoottimeMs() + kPatienceMs);
}

TEST_CASE("a beat is a form with the fields that Sentinel's dashboard reads") {
  const FakeDashboard dashboard;
  const int64_t before_ms = WallMs();
  const Result<ToldAddress> told = TellOnce(dashboard);
  REQUIRE(told.status().ToString() == "ok");
  CHECK(told->ip == "127.0.0.1");
  CHECK(told->reachable);
  REQUIRE(dashboard.Requests().size() == 1);
  CHECK(dashboard.Requests()[0].starts_with(
      "POST /registry/machine HTTP/1.1\r\nHost: " + dashboard.address() + "\r\n"));
  CHECK(dashboard.Requests()[0].find("\r\nContent-Type: application/x-www-form-urlencoded\r\n") !=
        std::string::npos);
  CHECK(dashboard.Requests()[0].find("app=my%20app%26co&app_type=0&hostname=") !=
        std::string::npos);
  auto form = dashboard.LastForm();
  CHECK(form["app"] == "my app&co");
  CHECK(form["app_type"] == "0");
  CHECK(!form["hostname"].empty());
  CHECK(form["ip"] == "127.0.0.1");
  CHECK(form["port"] == "8719");
  CHECK(form["v"] == "1.8.8");
  CHECK(std::stoll(form["version"]) >= before_ms);
  CHECK(form["pid"] == std::to_string(getpid()));
  CHECK(form.size() == 8);
}

TEST_CASE("a beat goes to the dashboard, whatever the environment says of proxies") {
  const FakeDashboard dashboard;
  REQUIRE(setenv("http_proxy", "http://127.0.0.1:1", 1) == 0);
  CHECK(TellOnce(dashboard).status().ToString() == "ok");
  unsetenv("http_proxy");
  REQUIRE(dashboard.Requests().size() == 1);
  CHECK(dashboard.Requests()[0].starts_with(
      "POST /registry/machine HTTP/1.1\r\nHost: " + dashboard.address() + "\r\n"));
}

TEST_CASE("a machine that listens everywhere tells the address from which it is reached") {
  const FakeDashboard dashboard;
  CHECK(TellOnce(dashboard, {"a", {"0.0.0.0", 8719}})->ip == "127.0.0.1");
  CHECK(dashboard.LastForm()["ip"] == "127.0.0.1");
  CHECK(TellOnce(dashboard, {"a", {"10.1.2.3", 8719}})->ip == "10.1.2.3");
  CHECK(dashboard.LastForm()["ip"] == "10.1.2.3");
}

TEST_CASE("what the dashboard answers decides whether it took a beat") {
  FakeDashboard dashboard;
  const auto told = [&](const std::string& answer) {
    dashboard.AnswerWith(answer);
    return TellOnce(dashboard).status().ToString();
  };
  const std::string ok = "HTTP/1.1 200 OK\r\nConnection: close\r\n";
  CHECK(told(ok + "\r\n{\"success\":true}") == "ok");
  CHECK(told(ok + "Content-Length: 2\r\n\r\n{}") == "ok");
  CHECK(told(ok + "\r\n") == "ok");
  CHECK(told(ok +
             "content-length:  44\r\n\r\n{\"success\":false,\"msg\":\"invalid ip: \\u0007\"}..") ==
        "unavailable: it refused: invalid ip: \\x07");
  CHECK(told(ok + "\r\n{\"success\":false}") == "unavailable: it refused: it did not say why");
  const size_t before = dashboard.Requests().size();
  CHECK(told("HTTP/1.1 302 Found\r\nLocation: /login\r\n\r\n") == "unavailable: it answered 302");
  CHECK(dashboard.Requests().size() == before + 1);
  CHECK(told("SSH-2.0-OpenSSH_9.2\r\n") == "unavailable: what answers there speaks no HTTP");
  CHECK(told("HTTP/1.1 2") == "unavailable: the connection was closed");
  CHECK(told("") == "unavailable: the connection was closed");
  CHECK(told(ok + "\r\n" + std::string(1'000'000, 'x')) == "ok");  // Read as far as needed.
}

TEST_CASE("nothing is waited for behind a whole answer, though the connection stays open") {
  FakeDashboard dashboard;
  dashboard.AnswerWith("HTTP/1.1 200 OK\r\nContent-Length: 16\r\n\r\n{\"success\":true}", true);
  CHECK(TellOnce(dashboard).status().ToString() == "ok");
  dashboard.AnswerWith(FakeDashboard::kTakes, true);
  CHECK(TellOnce(dashboard).status().ToString() == "ok");
}

TEST_CASE("a silent dashboard costs no more than the deadline") {
  FakeDashboard dashboard;
  dashboard.AnswerWith("", /*leave_open=*/true);
  const auto told = TellDashboard(AddressOf(dashboard), kMachine, BoottimeMs() + 50);
  CHECK(told.status().code() == StatusCode::kUnavailable);
}

TEST_CASE("the heartbeat goes on, and says once that it works and once that it does not") {
  FakeDashboard dashboard;
  Lines lines;
  const Heartbeat heartbeat(AddressOf(dashboard), {"nowcalls", {"127.0.0.1", 8719}}, lines.Writer(),
                            /*every_ms=*/1);
  const auto beats = [&](size_t more) {
    const size_t before = dashboard.Requests().size();
    REQUIRE(PollUntil(kPatienceMs, [&] { return dashboard.Requests().size() >= before + more; }));
  };
  beats(5);
  const std::string name = "Sentinel's dashboard at " + dashboard.address();
  const std::string lists = name + " lists this server as nowcalls at 127.0.0.1:8719";
  CHECK(lines.Take() == std::vector<std::string>{lists});
  dashboard.AnswerWith("HTTP/1.1 500 \r\nContent-Length: 0\r\n\r\n");
  REQUIRE(lines.Await(2));
  beats(5);
  dashboard.AnswerWith(FakeDashboard::kTakes);
  REQUIRE(lines.Await(3));
  const std::vector<std::string> said = lines.Take();
  REQUIRE(said.size() == 3);
  CHECK(said[1] == "problem: " + name +
                       " does not list this server: it answered 500; it is told again every 0 s");
  CHECK(said[2] == lists);
}

TEST_CASE("a heartbeat whose dashboard is silent ends at once, and says nothing behind its end") {
  FakeDashboard dashboard;
  dashboard.AnswerWith("", /*leave_open=*/true);
  Lines lines;
  {
    const Heartbeat heartbeat(AddressOf(dashboard), kMachine, lines.Writer());
    REQUIRE(PollUntil(kPatienceMs, [&] { return dashboard.Requests().size() == 1; }));
  }
  CHECK(lines.Take().empty());
}

}  // namespace
}  // namespace nowcalls::web
