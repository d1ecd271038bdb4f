// nowcalls-bench: measures a server under load. All of it is in src/bench.
#include "bench/main.h"

int main(int argc, char** argv) { return nowcalls::bench::Main(argc, argv); }
