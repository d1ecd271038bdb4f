// nowcalls: takes tokens for scripts and people. All of it is in src/command.
#include "command/main.h"

int main(int argc, char** argv) { return nowcalls::command::Main(argc, argv); }
