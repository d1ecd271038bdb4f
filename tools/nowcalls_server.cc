// nowcalls-server: the durable token server. Everything is in src/server.
#include "server/main.h"

int main(int argc, char** argv) { return nowcalls::server::Main(argc, argv); }
