// nowcalls: takes tokens for scripts and people. All of it is in src/command.
#include "base/last_words.h"
#include "command/main.h"

// Before the constructors of globals, which may be refused memory.
[[gnu::constructor(101)]] static void InstallEarly() { nowcalls::InstallLastWords(); }

int main(int argc, char** argv) { return nowcalls::command::Main(argc, argv); }
