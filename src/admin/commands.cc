#include "admin/commands.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "access/access_file.h"
#include "admin/access_file.h"
#include "admin/actions.h"
#include "admin/backups.h"
#include "admin/cluster.h"
#include "admin/effective_rules.h"
#include "admin/live_source.h"
#include "admin/offline_source.h"
#include "admin/print_access.h"
#include "admin/row_writer.h"
#include "admin/rules_file.h"
#include "base/clock.h"
#include "base/counted.h"
#include "base/exit_codes.h"
#include "base/limits.h"
#include "base/text.h"
#include "client/blocking_client.h"
#include "core/rules/rule_warnings.h"
#include "store/rocks/ledger_reader.h"
#include "wire/client_messages.h"

namespace nowcalls::admin {
namespace {

using client::BlockingClient;
using store::LedgerReader;

int ExitCodeOf(StatusCode code) {
  switch (code) {
    case StatusCode::kOk: return kExitOk;
    case StatusCode::kInvalidArgument:
    case StatusCode::kNotFound:
    case StatusCode::kAlreadyExists:
    case StatusCode::kPermissionDenied:
    case StatusCode::kResourceExhausted: return kExitFailure;
    // The ledger itself is the trouble.
    case StatusCode::kFailedPrecondition:  // A ledger of another format version.
    case StatusCode::kCorruption: return kExitCorruption;
    case StatusCode::kUnavailable:
    case StatusCode::kOutcomeUnknown: return kExitUnavailable;
    case StatusCode::kIoError: return kExitIoError;
  }
  return kExitFailure;
}

// A message may quote what a server said, and this is the operator's terminal.
void PrintError(const Streams& streams, const std::string& message) {
  streams.err("nowcalls-admin: " + TerminalText(message) + "\n");
}

// Prints what went wrong, if anything, and says what exit code that makes.
int Finish(const Streams& streams, const Status& status, const std::string& hint = {}) {
  // A failure of the output comes first, and main prints it.
  streams.out->Flush();
  if (!streams.out->status().ok()) return kExitIoError;
  if (!status.ok()) PrintError(streams, status.message() + hint);
  return ExitCodeOf(status.code());
}

// Prints what was done; where that fails, the operator must hear it all the same.
int FinishDone(const Streams& streams, const std::string& done) {
  streams.out->Write(done);
  streams.out->Flush();
  if (streams.out->status().ok()) return kExitOk;
  PrintError(streams,
             "it was carried out, only telling so failed: " + done.substr(0, done.find('\n')));
  return kExitIoError;
}

int UsageError(const Streams& streams, const Status& status) {
  PrintError(streams, status.message());
  return kExitUsage;
}

// Rows and the progress line must not mix on one terminal.
bool WantsProgress(const Arguments& arguments, const Streams& streams) {
  const bool rows_at_end = arguments.command == Command::kVerify ||
                           arguments.command == Command::kStat ||
                           arguments.command == Command::kFlow;
  return streams.err_is_terminal && (rows_at_end || !streams.out_is_terminal);
}

std::string CountedNoun(const Arguments& arguments) {
  if (arguments.command == Command::kRulesList || arguments.command == Command::kRulesDiff) {
    return "rules";
  }
  if (arguments.command == Command::kRulesSources) return "namespaces";
  if (arguments.command == Command::kHistory) return "entries";
  if (arguments.command == Command::kParams && arguments.data_dir.empty()) return "values";
  if (!arguments.data_dir.empty()) return "tokens";
  if (arguments.command == Command::kStat) return "flows";
  return arguments.command == Command::kSessions ? "sessions" : "tokens";
}

Format FormatOf(const Arguments& arguments, const Streams& streams) {
  return arguments.format.value_or(streams.out_is_terminal ? Format::kTable : Format::kJsonl);
}

// Says whose ledger is being read from outside.
void NoteHolder(const Arguments& arguments, const Streams& streams) {
  const Result<store::LedgerHolder> holder = store::FindLedgerHolder(arguments.data_dir);
  const bool named = holder.ok() && holder->pid > 0;
  streams.err("nowcalls-admin: note: " +
              (named ? "process " + std::to_string(holder->pid) : std::string("another process")) +
              " has this ledger open; reading beside it what it has logged so far\n");
}

// A name becomes a number once, so that an act is about the flow that was confirmed.
Result<Arguments> ResolveFlow(const Arguments& arguments, Source* source) {
  Arguments resolved = arguments;
  if (arguments.flow_name.empty()) return resolved;
  // A command has one flow and one kind, whichever members it reads.
  std::optional<FlowKind> kind = arguments.kind;
  if (!kind.has_value()) kind = arguments.filter.kind;
  if (!kind.has_value()) kind = arguments.history_filter.kind;
  if (arguments.command == Command::kParams) kind = FlowKind::kValue;
  const Result<FlowChoice> choice = source->FindFlow(arguments.flow_name, kind);
  if (!choice.ok()) return choice.status();
  resolved.flow_id = choice->id.value;
  resolved.filter.flow_id = resolved.history_filter.flow_id = choice->id.value;
  resolved.kind = resolved.filter.kind = resolved.history_filter.kind = choice->kind;
  return resolved;
}

// `file` is of `rules diff`; null for others.
int Show(const Arguments& arguments, const Streams& streams, const RulesFile* file, Source* source,
         Progress* progress, const std::string& hint = {}) {
  const Format format = FormatOf(arguments, streams);
  const Result<Arguments> resolved = ResolveFlow(arguments, source);
  Result<bool> same = true;
  // A diff answers yes or no, a listing only whether it worked.
  if (!resolved.ok()) {
    same = resolved.status();
  } else if (file != nullptr) {
    same = PrintRulesDiff(*resolved, format, file->parsed, source, progress, streams);
  } else if (const Status status = PrintListing(*resolved, format, source, streams.out);
             !status.ok()) {
    same = status;
  }
  progress->Erase();
  // Only a server that gave no answer is worth the hint to read its ledger instead.
  const bool silent = same.status().code() == StatusCode::kOutcomeUnknown;
  const int exit_code = Finish(streams, same.status(), silent ? hint : "");
  return exit_code != kExitOk || *same ? exit_code : kExitFailure;
}

// Of what works on directories itself, without a server.
bool NamesWrongDir(const Status& status) {
  return status.code() == StatusCode::kNotFound || status.code() == StatusCode::kInvalidArgument;
}

int FinishOnDirs(const Streams& streams, const Status& status) {
  return NamesWrongDir(status) ? UsageError(streams, status) : Finish(streams, status);
}

int RunRepair(const Arguments& arguments, const Streams& streams) {
  const Status status = PrintRepair(arguments, streams.out);
  return status.code() == StatusCode::kAlreadyExists ? UsageError(streams, status)
                                                     : FinishOnDirs(streams, status);
}

int RunVerify(const Arguments& arguments, const Streams& streams, store::LedgerSource* store,
              Progress* progress) {
  const Result<bool> sound = PrintVerify(arguments, store, progress, streams);
  // A failure to read comes first: nothing is known of the ledger then.
  const int of_ledger = Finish(streams, sound.status());
  if (of_ledger != kExitOk) return of_ledger;
  // A sound ledger does not make a backup of which the manifest is damaged.
  const int of_manifest = Finish(streams, CheckManifestOf(arguments.data_dir));
  return *sound ? of_manifest : kExitCorruption;
}

int RunOffline(const Arguments& arguments, const Streams& streams, const RulesFile* file,
               Progress* progress) {
  Result<std::unique_ptr<LedgerReader>> store = LedgerReader::Open(arguments.data_dir);
  // A wrong directory is wrong usage; a ledger that cannot be opened is damage or the disk.
  if (!store.ok()) {
    return NamesWrongDir(store.status())
               ? UsageError(streams, store.status().WithContext("--data-dir"))
               : Finish(streams, store.status());
  }
  // What the store noticed though it did not refuse, before any row.
  for (const std::string& note : (*store)->notes()) {
    streams.err("nowcalls-admin: note: " + TerminalText(note) + "\n");
  }
  if ((*store)->mode() == store::ReadMode::kBesideServer) NoteHolder(arguments, streams);
  if (arguments.command == Command::kVerify) {
    return RunVerify(arguments, streams, store->get(), progress);
  }
  const Result<ClockSample> machine = SampleClocks();
  if (!machine.ok()) return Finish(streams, machine.status());
  OfflineSource source(store->get(), *machine, progress);
  return Show(arguments, streams, file, &source, progress);
}

Result<std::unique_ptr<BlockingClient>> Connect(const Arguments& arguments) {
  return BlockingClient::Connect({.address = arguments.server,
                                  .timeout_ms = arguments.timeout_ms,
                                  .security = arguments.security});
}

int RunLive(const Arguments& arguments, const Streams& streams, const RulesFile* file,
            Progress* progress) {
  constexpr char kHint[] = " (--data-dir DIR reads its ledger without it)";
  const Result<std::unique_ptr<BlockingClient>> client = Connect(arguments);
  if (!client.ok()) return Finish(streams, client.status(), kHint);
  LiveSource source(client->get(), progress);
  return Show(arguments, streams, file, &source, progress, kHint);
}

// A server may have another guard; it logs what it warns of.
std::vector<std::string> GuardLines(const core::ParsedRules& rules) {
  return core::GuardWarnings(rules.rules, Limits().namespace_qps_max).Lines();
}

std::string RemarkLines(const core::ParsedRules& rules) {
  std::string text;
  for (const std::string& sentence : rules.Remarks()) text += "  " + sentence + "\n";
  for (const std::string& sentence : GuardLines(rules)) text += "  " + sentence + "\n";
  return text;
}

// A file that is wrong is wrong usage; one that the system would not read is not.
int FinishOnFile(const Streams& streams, const Status& status) {
  return status.code() == StatusCode::kIoError ? Finish(streams, status)
                                               : UsageError(streams, status);
}

int RulesCheck(const Arguments& arguments, const Streams& streams) {
  const Result<RulesFile> file = ReadRulesFile(arguments.file, arguments.name_space);
  if (!file.ok()) return FinishOnFile(streams, file.status());
  streams.out->Write(Counted(file->parsed.rules.size(), "rule") + " ok, " +
                     std::to_string(file->parsed.skipped.count()) + " skipped\n" +
                     RemarkLines(file->parsed) + EffectiveRulesText(file->parsed.rules));
  if (!arguments.strict) return Finish(streams, {});
  const size_t warnings = file->parsed.warnings() + GuardLines(file->parsed).size();
  if (warnings == 0) return Finish(streams, {});
  return Finish(
      streams, Status::InvalidArgument(RulesFileName(arguments.file) + " has " +
                                       Counted(warnings, "warning") + ", and --strict takes none"));
}

// The protocol bounds a message, and a file that does not fit needs another way in.
Status CheckFitsMessage(const Arguments& arguments, const RulesFile& file) {
  wire::OutputBuffer message;
  wire::EncodeRulesLoadRequest(UINT32_MAX, arguments.name_space, file.json, &message);
  if (message.size() <= kMessageBytesMax) return {};
  return Status::ResourceExhausted(
      RulesFileName(arguments.file) + " makes a message of " + std::to_string(message.size()) +
      " bytes, and the protocol allows " + std::to_string(kMessageBytesMax) +
      ": start the server with --rules " + arguments.name_space + "=" +
      (IsStandardInput(arguments.file) ? "FILE" : arguments.file));
}

int RulesLoad(const Arguments& arguments, const Streams& streams) {
  const Result<RulesFile> file = ReadRulesFile(arguments.file, arguments.name_space);
  if (!file.ok()) return FinishOnFile(streams, file.status());
  // Before the server is asked, which would answer with less help.
  if (const Status fits = CheckFitsMessage(arguments, *file); !fits.ok()) {
    return Finish(streams, fits);
  }
  const Result<std::unique_ptr<BlockingClient>> client = Connect(arguments);
  if (!client.ok()) return Finish(streams, client.status());
  Progress silent(/*enabled=*/false, "rules", streams.err);
  LiveSource source(client->get(), &silent);
  // The diff is taken before the load, so that the message can say what the load changed.
  const Result<RulesDiff> diff = DiffAgainst(&source, arguments.name_space, file->parsed);
  if (!diff.ok()) return Finish(streams, diff.status());
  const Result<uint64_t> loaded = (*client)->RulesLoad(arguments.name_space, file->json);
  // Without an answer the rules may be loaded.
  if (!loaded.ok()) return Finish(streams, MaybeDone(arguments, loaded.status()));
  streams.err(RemovalWarning(diff->removed));
  return FinishDone(streams, "namespace " + Quoted(arguments.name_space, kNamespaceBytesMax) +
                                 ": " + Counted(*loaded, "rule") + " loaded: " + diff->Summary() +
                                 "\n" + RemarkLines(file->parsed) +
                                 EffectiveRulesText(file->parsed.rules));
}

// Live tokens whose ids a reader of JSON would round to `token_id`: it takes numbers for doubles,
// which are up to 512 apart there from what they stand for, and may print 17 digits of them.
std::vector<uint64_t> TokensRoundedTo(uint64_t token_id, Source* source) {
  constexpr uint64_t kExactMax = uint64_t{1} << 53;
  constexpr uint64_t kApartMax = 1024;
  constexpr size_t kLookedAtMax = 100'000;
  std::vector<uint64_t> close;
  // Nobody rounds to an id that is neither a double nor ends in zeros: most ids that have ended.
  const bool is_double = static_cast<uint64_t>(static_cast<double>(token_id)) == token_id;
  if (token_id <= kExactMax || (!is_double && token_id % 10 != 0)) return close;
  const auto look = [&](const wire::TokenRow& row) {
    const auto id = static_cast<uint64_t>(row.token_id);
    if ((id > token_id ? id - token_id : token_id - id) <= kApartMax) close.push_back(id);
    return Status::Ok();
  };
  // A hint is not worth another error.
  static_cast<void>(source->OldestTokens({}, kLookedAtMax, look));
  return close;
}

std::string RoundedHint(const std::vector<uint64_t>& close) {
  if (close.empty()) return "";
  std::string ids;
  for (const uint64_t id : close) ids += (ids.empty() ? "" : ", ") + std::to_string(id);
  return "; its digits look rounded, as jq before 1.7 and JavaScript round numbers: live is " +
         ids + "; take the string `token` of jsonl instead of `token_id`";
}

int Reclaim(const Arguments& arguments, const Streams& streams) {
  const Result<std::unique_ptr<BlockingClient>> client = Connect(arguments);
  if (!client.ok()) return Finish(streams, client.status());
  const Result<TokenStatus> status = (*client)->Reclaim(arguments.token_id, arguments.reason);
  if (!status.ok()) return Finish(streams, MaybeDone(arguments, status.status()));
  const std::string token = "token " + std::to_string(arguments.token_id);
  switch (*status) {
    case TokenStatus::kReleaseOk: return FinishDone(streams, token + " reclaimed\n");
    // Its digits may have been rounded by a reader of JSON: live tokens near it are named.
    case TokenStatus::kAlreadyRelease: {
      Progress silent(/*enabled=*/false, "tokens", streams.err);
      LiveSource source(client->get(), &silent);
      return Finish(streams,
                    Status::NotFound(token +
                                     " is not live: it was never issued, or has been "
                                     "released or reclaimed" +
                                     RoundedHint(TokensRoundedTo(arguments.token_id, &source))));
    }
    default:
      return Finish(streams,
                    Status::InvalidArgument(token + " was not reclaimed: the server says " +
                                            std::string(TokenStatusName(*status))));
  }
}

int Ping(const Arguments& arguments, const Streams& streams) {
  const Result<std::unique_ptr<BlockingClient>> client = Connect(arguments);
  if (!client.ok()) return Finish(streams, client.status());
  const Result<uint64_t> ledger_ms = (*client)->Ping();
  if (!ledger_ms.ok()) return Finish(streams, ledger_ms.status());
  streams.out->Write(arguments.server + " answers\n");
  return Finish(streams, {});
}

int Info(const Arguments& arguments, Format format, const Streams& streams) {
  const Result<std::unique_ptr<BlockingClient>> client = Connect(arguments);
  if (!client.ok()) return Finish(streams, client.status());
  const Result<std::string_view> info = (*client)->Info();
  return Finish(streams, info.ok() ? PrintInfo(format, *info, streams.out) : info.status());
}

// A member that stands by does not listen.
constexpr char kStandbyHint[] =
    " (a member that stands by refuses connections; its /healthz tells its role)";

int RunCluster(const Arguments& arguments, const Streams& streams) {
  const Result<std::unique_ptr<BlockingClient>> client = Connect(arguments);
  if (!client.ok()) return Finish(streams, client.status(), kStandbyHint);
  const Result<wire::ClusterReply> cluster = (*client)->Cluster();
  if (!cluster.ok()) return Finish(streams, cluster.status());
  return Finish(streams, PrintCluster(FormatOf(arguments, streams), *cluster, streams.out));
}

int RunHandover(const Arguments& arguments, const Streams& streams) {
  const Result<std::unique_ptr<BlockingClient>> client = Connect(arguments);
  if (!client.ok()) return Finish(streams, client.status(), kStandbyHint);
  const Result<std::string> done = HandOver(arguments, client->get());
  return done.ok() ? FinishDone(streams, *done) : Finish(streams, done.status());
}

int RunRestore(const Arguments& arguments, const Streams& streams) {
  const Result<std::string> done = Restore(arguments);
  return done.ok() ? FinishDone(streams, *done) : FinishOnDirs(streams, done.status());
}

int RunBackup(const Arguments& arguments, const Streams& streams) {
  if (!arguments.data_dir.empty()) {
    const Result<std::string> done = BackupAtRest(arguments);
    return done.ok() ? FinishDone(streams, *done) : FinishOnDirs(streams, done.status());
  }
  const Result<std::unique_ptr<BlockingClient>> client = Connect(arguments);
  if (!client.ok()) return Finish(streams, client.status());
  const Result<std::string> done = BackupLive(arguments, client->get());
  return done.ok() ? FinishDone(streams, *done) : Finish(streams, done.status());
}

int RunAction(const Arguments& given, const Streams& streams) {
  const Result<std::unique_ptr<BlockingClient>> client = Connect(given);
  if (!client.ok()) return Finish(streams, client.status());
  Progress silent(/*enabled=*/false, "flows", streams.err);
  LiveSource source(client->get(), &silent);
  const Result<Arguments> resolved = ResolveFlow(given, &source);
  if (!resolved.ok()) return Finish(streams, resolved.status());
  const Arguments& arguments = *resolved;
  // Count, check that it can be confirmed, act: a mistake is told before anything is taken back.
  const Result<Affected> affected = FindAffected(arguments, client->get());
  if (!affected.ok()) return Finish(streams, affected.status());
  const Status confirmable = CheckConfirmable(arguments, *affected, streams);
  if (!confirmable.ok()) return UsageError(streams, confirmable);
  const Result<std::string> done = Act(arguments, *affected, streams, client->get());
  return done.ok() ? FinishDone(streams, *done) : Finish(streams, done.status());
}

// A secret goes to the output alone, so that it can be redirected; errors never have it.
int FinishChange(const Streams& streams, const Result<AccessChange>& change) {
  if (!change.ok()) return FinishOnFile(streams, change.status());
  if (!change->secret.empty()) streams.out->Write(change->secret + "\n");
  streams.out->Flush();
  if (!streams.out->status().ok()) {
    PrintError(streams,
               "the file was changed, but the new secret could not be printed: it is "
               "lost, and its digest should be removed from the file");
    return kExitIoError;
  }
  PrintError(streams, change->done);
  return kExitOk;
}

int AccessCheck(const Arguments& arguments, const Streams& streams) {
  const Result<std::string> text = access::ReadAccessText(arguments.file, access::Reader::kTool);
  if (!text.ok()) return FinishOnFile(streams, text.status());
  const access::ParsedAccess parsed = access::ParseAccess(*text, arguments.file);
  for (const std::string& problem : parsed.problems) PrintError(streams, problem);
  if (!parsed.problems.empty()) return kExitUsage;
  streams.out->Write(Counted(parsed.entries.size(), "principal") + "\n");
  return Finish(streams, {});
}

int AccessList(const Arguments& arguments, const Streams& streams) {
  const Result<std::string> text = access::ReadAccessText(arguments.file, access::Reader::kTool);
  if (!text.ok()) return FinishOnFile(streams, text.status());
  const auto list = access::AccessList::Parse(*text, arguments.file);
  if (!list.ok()) return FinishOnFile(streams, list.status());
  return Finish(streams, PrintPrincipals(FormatOf(arguments, streams), **list, streams.out));
}

int AccessTest(const Arguments& arguments, const Streams& streams) {
  const Result<std::unique_ptr<BlockingClient>> client = Connect(arguments);
  if (!client.ok()) return Finish(streams, client.status());
  const Result<wire::IdentifyReply> reply = (*client)->Identify({});
  if (!reply.ok()) return Finish(streams, reply.status());
  const Status printed = PrintIdentity(FormatOf(arguments, streams), *reply, streams.out);
  if (!printed.ok() || !reply->name.empty()) return Finish(streams, printed);
  return Finish(streams, Status::PermissionDenied(
                             "the server takes this connection for nobody: show a secret "
                             "(--secret-file FILE) or a certificate (--tls-cert FILE)"));
}

}  // namespace

int Run(const Arguments& arguments, const Streams& streams) {
  // Commands without a source of rows.
  if (arguments.command == Command::kRulesCheck) return RulesCheck(arguments, streams);
  if (arguments.command == Command::kRulesLoad) return RulesLoad(arguments, streams);
  if (arguments.command == Command::kRepair) return RunRepair(arguments, streams);
  if (arguments.command == Command::kReclaim) return Reclaim(arguments, streams);
  if (arguments.command == Command::kBackup) return RunBackup(arguments, streams);
  if (arguments.command == Command::kRestore) return RunRestore(arguments, streams);
  if (arguments.command == Command::kAccessAdd) {
    return FinishChange(streams, AddPrincipal(arguments));
  }
  if (arguments.command == Command::kAccessRotate) {
    return FinishChange(streams, RotateSecret(arguments));
  }
  if (arguments.command == Command::kAccessList) return AccessList(arguments, streams);
  if (arguments.command == Command::kAccessCheck) return AccessCheck(arguments, streams);
  if (arguments.command == Command::kAccessTest) return AccessTest(arguments, streams);
  if (arguments.command == Command::kPing) return Ping(arguments, streams);
  if (arguments.command == Command::kInfo) {
    return Info(arguments, FormatOf(arguments, streams), streams);
  }
  if (arguments.command == Command::kCluster) return RunCluster(arguments, streams);
  if (arguments.command == Command::kHandover) return RunHandover(arguments, streams);
  if (IsAction(arguments.command)) return RunAction(arguments, streams);
  // The rest shows rows. The file of a diff is read first: without it the source need not be asked.
  std::optional<RulesFile> file;
  if (arguments.command == Command::kRulesDiff) {
    Result<RulesFile> read = ReadRulesFile(arguments.file, arguments.name_space);
    if (!read.ok()) return FinishOnFile(streams, read.status());
    file = *std::move(read);
  }
  Progress progress(WantsProgress(arguments, streams), CountedNoun(arguments), streams.err);
  const RulesFile* compared = file.has_value() ? &*file : nullptr;
  return arguments.data_dir.empty() ? RunLive(arguments, streams, compared, &progress)
                                    : RunOffline(arguments, streams, compared, &progress);
}

}  // namespace nowcalls::admin
