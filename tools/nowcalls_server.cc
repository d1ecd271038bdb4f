// nowcalls-server: the durable token server. Everything is in src/server.
#include "base/last_words.h"
#include "server/main.h"

// Before the constructors of globals, which may be refused memory.
[[gnu::constructor(101)]] static void InstallEarly() { nowcalls::InstallLastWords(); }

int main(int argc, char** argv) { return nowcalls::server::Main(argc, argv); }
