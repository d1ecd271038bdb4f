#include "bench/scenario.h"

#include <exception>

#include "bench/interruption.h"

namespace nowcalls::compare {

Sizes Sizes::Quick() {
  Sizes sizes;
  sizes.rounds = 1;
  sizes.duration_s = 0.5;
  sizes.warm_up_s = 0.2;
  sizes.open_rate = 4'000;
  sizes.expire_rate = 400;
  sizes.tokens = 10'000;
  sizes.many_tokens = 30'000;
  sizes.mass_rate = 2'000;
  sizes.idle_connections = 200;
  sizes.many_flows = 1'000;
  return sizes;
}

std::vector<Scenario> AllScenarios(const Sizes& sizes) {
  std::vector<Scenario> scenarios;
  AddLoadScenarios(sizes, &scenarios);
  AddTokenScenarios(sizes, &scenarios);
  AddMassExpiryScenarios(sizes, &scenarios);
  return scenarios;
}

Comparison RunScenario(const Scenario& scenario, int rounds, Lab* lab,
                       const std::function<void(const std::string&)>& say) {
  Comparison comparison(scenario.name, scenario.title, scenario.sides, scenario.figures);
  std::unique_ptr<Measurement> measurement;
  for (int round = 1; round <= rounds; ++round) {
    for (size_t side = 0; side < Comparison::kSides; ++side) {
      if (scenario.sides[side].empty()) continue;
      const std::string where = "round " + std::to_string(round) + " of " + std::to_string(rounds);
      say(scenario.name + ", " + where + ": " + scenario.sides[side]);
      try {
        lab->SyncDisk();
        if (!measurement) measurement = scenario.begin(lab);
        comparison.Add(side, measurement->Round(side));
      } catch (const Overload& overload) {
        comparison.AddOverload(side, where + ": " + overload.what());
      } catch (const std::exception& error) {
        ThrowIfInterrupted();  // Which is why it failed.
        comparison.AddFailure(scenario.sides[side] + ", " + where + ": " + error.what());
        measurement.reset();
      }
    }
  }
  return comparison;
}

}  // namespace nowcalls::compare
