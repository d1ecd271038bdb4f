// A program with a ledger of its own, to be killed: takes 50 tokens in the data directory argv[1],
// prints the id of each, and waits.
#include <unistd.h>

#include <cstdio>
#include <vector>

#include "nowcalls/embedded.h"

int main(int argc, char** argv) {
  if (argc != 2) return 64;
  auto tokens = nowcalls::Embedded::Open({.data_dir = argv[1]});
  if (!tokens.ok()) return 1;
  const auto loaded =
      (*tokens)->LoadRules("default",
                           R"([{"resource": "seven", "count": 100, "clusterMode": true,
           "clusterConfig": {"flowId": 7, "thresholdType": 1, "resourceTimeout": 600000,
                             "clientOfflineTime": 600000}}])");
  if (!loaded.ok()) return 1;
  std::vector<nowcalls::Acquired> held;
  for (int i = 0; i < 50; ++i) {
    held.push_back((*tokens)->Acquire(nowcalls::FlowId(7)));
    std::printf("%llu\n", static_cast<unsigned long long>(held.back().permit.token().value));
    std::fflush(stdout);
  }
  for (;;) pause();
}
