// nowcalls-library ADDRESS: every call of the client library once, against a server that may answer
// anything. What the library says goes to stderr as it comes. Exit code 1: it has said something.
#include <cstdio>
#include <string>
#include <string_view>

#include "nowcalls/client.h"

namespace nowcalls::testing {
namespace {

constexpr Milliseconds kTimeout{200};

int g_said = 0;

void Say(std::string_view what, std::string_view text) {
  if (text.empty()) return;
  ++g_said;
  std::fprintf(stderr, "%.*s: %.*s\n", static_cast<int>(what.size()), what.data(),
               static_cast<int>(text.size()), text.data());
}

void CallAll(Client* client) {
  AcquireOptions options;
  options.on_lost = [](const Grant&, const std::string& reason) { Say("on_lost", reason); };
  Acquired acquired = client->Acquire(FlowId(1001), options);
  Say("acquire", acquired.message);
  if (acquired.ok()) Say("keep", acquired.permit.Keep().message);
  if (acquired.ok()) Say("lost", acquired.permit.lost_reason());
  if (acquired.ok()) Say("release", acquired.permit.Release().message);
  options.prioritized = true;  // A refusal asks for the rule.
  Say("prioritized", client->Acquire(FlowId(1001), options).message);
  const AllAcquired all = client->AcquireAll({{FlowId(1001)}, {FlowId(1002)}}, options);
  Say("acquire_all", all.message);
  Say("request", client->Request(FlowId(1001)).message);
  Say("request_param", client->RequestParam(FlowId(1001), {std::string("key")}).message);
}

int Main(const char* address) {
  ClientOptions options;
  options.addresses = {address};
  options.timeout = kTimeout;
  options.fallback = Fallback::kByRule;
  options.log = [](LogLevel level, std::string_view line) {
    if (level == LogLevel::kWarning) Say("log", line);
  };
  const auto client = Client::Start(options);
  if (!client.ok()) return 64;
  // Twice, since a broken connection is another.
  CallAll(client->get());
  CallAll(client->get());
  Say("offline", (*client)->stats().why_offline);
  Say("close", (*client)->Close(kTimeout).message());
  return g_said > 0 ? 1 : 0;
}

}  // namespace
}  // namespace nowcalls::testing

int main(int argc, char** argv) { return argc == 2 ? nowcalls::testing::Main(argv[1]) : 64; }
