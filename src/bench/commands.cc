#include "bench/commands.h"

#include <string>
#include <system_error>
#include <utility>

#include "base/clock.h"
#include "base/exit_codes.h"
#include "base/text.h"
#include "bench/load_loop.h"
#include "bench/nowcalls_target.h"
#include "bench/plan.h"
#include "bench/process_usage.h"
#include "bench/reachable_address.h"
#include "bench/redis_target.h"
#include "bench/report.h"
#include "bench/status_line.h"
#include "bench/summary.h"

namespace nowcalls::bench {
namespace {

int ExitCodeOf(StatusCode code) {
  switch (code) {
    case StatusCode::kOk: return kExitOk;
    case StatusCode::kUnavailable:
    case StatusCode::kOutcomeUnknown: return kExitUnavailable;
    case StatusCode::kIoError: return kExitIoError;
    default: return kExitFailure;
  }
}

int Fail(const Status& status, const Streams& streams) {
  // It may quote what a server said.
  streams.err("nowcalls-bench: " + TerminalText(status.message()) + "\n");
  return ExitCodeOf(status.code());
}

// "level 3, disk_low 979984"
std::string RefusalCounts(const Recorder::Refusals& refusals) {
  std::string text;
  for (size_t i = 1; i < refusals.size(); ++i) {
    if (refusals[i] == 0) continue;
    if (!text.empty()) text += ", ";
    text += std::string(RefusalName(i)) + " " + std::to_string(refusals[i]);
  }
  return text;
}

// Of rules that could not be removed.
std::string LeftBehind(const Options& options) {
  const std::string server = " --server " + options.target.Servers();
  return "nowcalls-bench: its rules may still be loaded: `nowcalls-admin rules sources" + server +
         "` shows the namespaces that have some, and `echo '[]' | nowcalls-admin rules load - "
         "--namespace " +
         TerminalText(options.name_space) + server + "` removes those of one\n";
}

// Members that stand by refuse connections. Which serves is asked once: a load ends with it.
void PutServingFirst(TargetAddress* target) {
  constexpr int64_t kTryMs = 2'000;
  for (size_t tries = 0; tries < target->others.size(); ++tries) {
    if (ReachableAddress(target->peer, BoottimeMs() + kTryMs).ok()) return;
    target->others.push_back(std::exchange(target->peer, target->others.front()));
    target->others.erase(target->others.begin());
  }
}

int Measure(const Options& options, Target* target, const Streams& streams) {
  // The load runs on this thread until its end or a signal; the line on a terminal shows how far it
  // is.
  LoadPlan plan = PlanRun(options);
  plan.new_dialect = [target](uint32_t lanes) { return target->NewDialect(lanes); };
  Result<client::ChannelMaker> new_channel =
      client::ChannelsTo(net::Endpoint::Tcp(options.target.peer), options.security.tls);
  if (!new_channel.ok()) return Fail(new_channel.status(), streams);
  plan.new_channel = *std::move(new_channel);
  StatusLine line(streams.err_is_terminal, streams.err);
  plan.show = [&line](std::string_view text) { line.Show(text); };
  LoadLoop loop(std::move(plan));
  const Status run = loop.Run();
  line.Erase();
  if (!run.ok()) return Fail(run, streams);
  const std::unique_ptr<LoadResult> result = loop.TakeResult();
  const bool json = options.format == Format::kJson;
  const int error = streams.out(json ? ReportJson(options, target->facts(), *result)
                                     : ReportTable(options, target->facts(), *result));
  if (error != 0) {
    return Fail(Status::IoError("the figures cannot be written to stdout: " +
                                std::generic_category().message(error)),
                streams);
  }
  // The figures come first: they are worth seeing even if the run failed its purpose.
  const Status judged = Judge(options, *result);
  return judged.ok() ? kExitOk : Fail(judged, streams);
}

}  // namespace

std::unique_ptr<Target> MakeTarget(const Options& options) {
  if (options.target.kind == TargetKind::kRedis) return std::make_unique<RedisTarget>(options);
  return std::make_unique<NowcallsTarget>(options);
}

Status Judge(const Options& options, const LoadResult& result) {
  if (options.command == Command::kFill && result.granted_ever < options.tokens) {
    return Status::FailedPrecondition("only " + std::to_string(result.granted_ever) + " of " +
                                      std::to_string(options.tokens) + " tokens were granted" +
                                      (result.interrupted ? " until it was interrupted" : ""));
  }
  const Totals totals = Sum(result.seconds);
  // Refusals are what a level is for, so only a load without any grant has failed.
  if (totals.operations() == 0 && totals.refused > 0 && result.granted_ever == 0) {
    return Status::FailedPrecondition(
        "nothing was granted: " + std::to_string(totals.refused) +
        (totals.refused == 1 ? " request was refused (" : " requests were refused (") +
        RefusalCounts(result.load.refusals()) + ")");
  }
  if (totals.errors == 0) return {};
  return Status::FailedPrecondition("requests were answered with errors; see above");
}

int Run(const Options& asked, const Streams& streams) {
  Options options = asked;
  PutServingFirst(&options.target);
  if (options.server_pid != 0) {
    // Before anything is loaded: a wrong pid would be noticed only in the report.
    const Result<ProcessUsage> server = ReadProcessUsage(options.server_pid);
    if (!server.ok()) {
      streams.err("nowcalls-bench: --server-pid " + std::to_string(options.server_pid) + ": " +
                  server.status().message() + "\n");
      return kExitUsage;
    }
  }
  const std::unique_ptr<Target> target = MakeTarget(options);
  // What was prepared is taken back, also after a failure, unless it shall stay.
  const Status prepared = target->Prepare(PlanFlows(options));
  const int exit_code =
      prepared.ok() ? Measure(options, target.get(), streams) : Fail(prepared, streams);
  if (options.keep_rules || options.command == Command::kFill) return exit_code;
  const Status cleaned = target->CleanUp();
  if (cleaned.ok()) return exit_code;
  // After a failure the server is likely not to be there; the first message says more.
  const int code = exit_code == kExitOk ? Fail(cleaned, streams) : exit_code;
  if (options.target.kind == TargetKind::kNowcalls) streams.err(LeftBehind(options));
  return code;
}

}  // namespace nowcalls::bench
