// A program of somebody else: takes a token of flow 1001 from the server at argv[1].
#include <nowcalls/client.h>

#include <cstdio>

int main(int argc, char** argv) {
  if (argc != 2) return 64;
  auto client = nowcalls::Client::Start({.addresses = {argv[1]}, .name_space = "shop"});
  if (!client.ok()) return 1;
  const nowcalls::Acquired acquired = (*client)->Acquire(nowcalls::FlowId(1001));
  std::printf("%s\n", acquired ? "granted" : acquired.message.c_str());
}
