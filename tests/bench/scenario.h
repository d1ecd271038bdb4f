// Scenario: a question to both servers, the figures of its answer, and how they are measured.
//
// Thread: the main one.
#ifndef NOWCALLS_BENCH_SCENARIO_H_
#define NOWCALLS_BENCH_SCENARIO_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench/comparison.h"
#include "bench/lab.h"

namespace nowcalls::compare {

// How long and how much.
struct Sizes {
  // Many short rounds: what the machine does besides changes within minutes, and medians of five
  // rounds of 10 s differed by a tenth from one run to the next.
  int rounds = 15;
  double duration_s = 4;
  double warm_up_s = 2;
  uint32_t open_rate = 100'000;  // Operations a second.
  uint32_t expire_rate = 10'000;
  uint64_t tokens = 1'000'000;
  uint64_t many_tokens = 10'000'000;
  uint32_t mass_rate = 20'000;  // Of the load beside a mass expiry.
  uint32_t idle_connections = 10'000;
  uint32_t flows = 16;
  uint32_t many_flows = 100'000;

  // So small that all scenarios take a minute. Its figures mean nothing.
  static Sizes Quick();
};

// What measures one scenario over its rounds; whatever servers it keeps between them are its own.
class Measurement {
 public:
  virtual ~Measurement() = default;
  // Throws Overload when the server cannot do what is asked, std::runtime_error when something
  // failed, after which the next round starts with fresh servers.
  virtual Values Round(size_t side) = 0;
};

struct Scenario {
  std::string name;
  std::string title;
  Comparison::Sides sides;
  std::vector<FigureKind> figures;
  std::function<std::unique_ptr<Measurement>(Lab*)> begin;
};

std::vector<Scenario> AllScenarios(const Sizes& sizes);

// Rounds alternate between the sides, so that what changes on the machine meets both. What fails is
// in the comparison, and what Overload says; the rest goes on. `say` gets a few words on each
// round.
Comparison RunScenario(const Scenario& scenario, int rounds, Lab* lab,
                       const std::function<void(const std::string&)>& say);

// The parts of AllScenarios.
void AddLoadScenarios(const Sizes& sizes, std::vector<Scenario>* scenarios);
void AddTokenScenarios(const Sizes& sizes, std::vector<Scenario>* scenarios);
void AddMassExpiryScenarios(const Sizes& sizes, std::vector<Scenario>* scenarios);

// Throws unless there are as many live tokens.
void RequireTokens(uint64_t tokens, Contender* server);

// What connections cost a new server that say nothing after their greeting: what ValuesOf has of
// `idle`, and kKibAConnection, the resident memory of one in KiB.
inline constexpr std::string_view kKibAConnection = "kib_a_connection";
Values MeasureIdle(ContenderKind kind, uint32_t connections, double duration_s, Lab* lab);

// Starts a fresh server, fills it, kills it with kill -9 and starts it again: seconds until it is
// ready with all the tokens; and resident bytes a token when it was full.
struct FillAndRecovery {
  double fill_s = 0;
  double bytes_a_token = 0;
  double ready_s = 0;
};
FillAndRecovery MeasureRecovery(ContenderKind kind, uint64_t tokens, Lab* lab);

}  // namespace nowcalls::compare

#endif  // NOWCALLS_BENCH_SCENARIO_H_
