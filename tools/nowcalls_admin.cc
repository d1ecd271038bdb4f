// nowcalls-admin: looks into a ledger, live or on disk. All of it is in src/admin.
#include "admin/main.h"
#include "base/last_words.h"

// Before the constructors of globals, which may be refused memory.
[[gnu::constructor(101)]] static void InstallEarly() { nowcalls::InstallLastWords(); }

int main(int argc, char** argv) { return nowcalls::admin::Main(argc, argv); }
