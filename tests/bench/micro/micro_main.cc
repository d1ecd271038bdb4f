#include <benchmark/benchmark.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 64;
  // Ledgers lie where the build does: /tmp may be memory.
  setenv("TMPDIR", NOWCALLS_WORK_DIR, /*overwrite=*/0);
  benchmark::AddCustomContext("preset", NOWCALLS_PRESET);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
