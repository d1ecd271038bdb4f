// nowcalls-admin: looks into a ledger, live or on disk. All of it is in src/admin.
#include "admin/main.h"

int main(int argc, char** argv) { return nowcalls::admin::Main(argc, argv); }
