#include "admin/actions.h"

#include <algorithm>
#include <cstdint>

#include "admin/live_source.h"
#include "admin/paging.h"
#include "admin/rules_file.h"
#include "base/limits.h"
#include "base/text.h"

namespace nowcalls::admin {
namespace {

using client::BlockingClient;
using wire::ReclaimedReply;

std::string Tokens(uint64_t count) {
  return std::to_string(count) + (count == 1 ? " token" : " tokens");
}

// "flow 7", "flow 7 by value", "flow 'checkout' (7)".
std::string FlowName(const Arguments& arguments) {
  const bool by_value = arguments.kind == FlowKind::kValue;
  const std::string number = std::to_string(arguments.flow_id);
  const std::string& name = arguments.flow_name;
  return "flow " + (name.empty() ? number : Quoted(name) + " (" + number + ")") +
         (by_value ? " by value" : "");
}

FlowChoice ChoiceOf(const Arguments& arguments) {
  return {FlowId{arguments.flow_id}, arguments.kind};
}

std::string NamespaceName(const Arguments& arguments) {
  return "namespace " + Quoted(arguments.name_space, kNamespaceBytesMax);
}

bool IsDrain(Command command) {
  return command == Command::kDrain || command == Command::kDrainNamespace;
}

// Sessions without a client id share a name when their connections came from one address.
Result<Affected> OfClient(const Arguments& arguments, BlockingClient* client) {
  Affected affected;
  affected.whose = "client " + Quoted(arguments.client_id, kClientIdBytesMax) + " of namespace " +
                   Quoted(arguments.name_space, kNamespaceBytesMax);
  if (arguments.instance.has_value()) {
    affected.whose += ", instance " + std::to_string(*arguments.instance) + ",";
  }
  Paging paging("sessions");
  while (!paging.at_end()) {
    const Result<wire::Page<wire::SessionRow>> sessions =
        client->Sessions({kListRowsMax, paging.cursor()});
    if (!sessions.ok()) return sessions.status();
    // The listing has no filter, so sessions of other clients are passed over here.
    for (const wire::SessionRow& row : sessions->rows) {
      if (row.name_space != arguments.name_space || row.client_id != arguments.client_id) continue;
      const uint64_t instance = row.instance.value_or(0);
      if (arguments.instance.value_or(instance) != instance) continue;
      affected.tokens += row.tokens;
      affected.now_calls += row.now_calls;
    }
    NOWCALLS_RETURN_IF_ERROR(paging.Take(sessions->rows.size(), sessions->next_cursor));
  }
  return affected;
}

// Those of the flows of its rules, also of removed ones.
Result<Affected> OfNamespace(const Arguments& arguments, BlockingClient* client) {
  Affected affected;
  affected.whose = NamespaceName(arguments);
  Paging paging("flows");
  while (!paging.at_end()) {
    const Result<wire::Page<wire::FlowRow>> flows = client->Flows({kListRowsMax, paging.cursor()});
    if (!flows.ok()) return flows.status();
    for (const wire::FlowRow& row : flows->rows) {
      if (row.name_space != arguments.name_space) continue;
      affected.tokens += row.tokens;
      affected.now_calls += row.now_calls;
    }
    NOWCALLS_RETURN_IF_ERROR(paging.Take(flows->rows.size(), flows->next_cursor));
  }
  return affected;
}

Result<Affected> OfFlow(const Arguments& arguments, BlockingClient* client) {
  Result<std::vector<wire::FlowRow>> flows = AskFlow(ChoiceOf(arguments), client);
  if (!flows.ok()) return flows.status();
  // A purge is for what removed rules left behind. A rule in force keeps its tokens.
  if (arguments.command == Command::kPurge) {
    std::erase_if(*flows, [](const wire::FlowRow& row) { return !row.removed; });
  }
  if (flows->empty()) {
    return Status::InvalidArgument(FlowName(arguments) +
                                   " has a rule in force; purge takes back what removed rules have "
                                   "left behind: remove the rule first, or use reclaim --flow");
  }
  Affected affected{.whose = FlowName(arguments)};
  for (const wire::FlowRow& row : *flows) {
    affected.tokens += row.tokens;
    affected.now_calls += row.now_calls;
  }
  return affected;
}

// "flow 7 has 5 tokens with nowCalls 15 out"
std::string Described(const Affected& affected) {
  return affected.whose + " has " + Tokens(affected.tokens) + " with nowCalls " +
         std::to_string(affected.now_calls) + " out";
}

Status Confirm(const Affected& affected, const Streams& streams) {
  streams.err(Described(affected) + ". Take back all of them? [y/N] ");
  const std::string answer = streams.read_line();
  if (answer == "y" || answer == "Y" || answer == "yes") return {};
  return Status::InvalidArgument("not confirmed; nothing was taken back");
}

// What is done to a namespace piece by piece, by flow id. A piece may stand where it is while it
// does something.
class Pieces {
 public:
  uint64_t first_flow() const { return first_flow_; }

  // After a piece that did `done`. kOutcomeUnknown: the server leads nowhere.
  Status Take(uint64_t done, uint64_t next_flow) {
    constexpr uint32_t kIdleMax = 10'000;  // A piece passes over many flows.
    // A flow with many tokens takes several pieces, so the place may stand while tokens come back.
    // It may also move without any, over flows that have none. It must do one of both.
    const bool moves = next_flow > first_flow_ || (next_flow == first_flow_ && done > 0);
    if (done == 0) ++idle_;
    if (next_flow != 0 && (!moves || idle_ > kIdleMax)) {
      return Status::OutcomeUnknown("the server's answers lead nowhere: after flow " +
                                    std::to_string(first_flow_) + " it says to go on from flow " +
                                    std::to_string(next_flow));
    }
    first_flow_ = next_flow;
    return {};
  }

 private:
  uint64_t first_flow_ = 0;
  uint32_t idle_ = 0;
};

Result<ReclaimedReply> AskOnce(const Arguments& arguments, uint32_t limit, Pieces* pieces,
                               BlockingClient* client) {
  switch (arguments.command) {
    // A namespace goes flow by flow; the server says where the next piece begins.
    case Command::kReclaimNamespace: {
      const Result<wire::ReclaimNamespaceReply> piece = client->ReclaimNamespace(
          {arguments.name_space, arguments.reason, limit, pieces->first_flow()});
      if (!piece.ok()) return piece.status();
      NOWCALLS_RETURN_IF_ERROR(pieces->Take(piece->reclaimed, piece->next_flow));
      return ReclaimedReply{piece->reclaimed, piece->next_flow != 0};
    }
    case Command::kReclaimClient:
      return client->ReclaimClient(
          {arguments.name_space, arguments.client_id, arguments.reason, limit, arguments.instance});
    case Command::kReclaimFlow:
      return client->ReclaimFlow({arguments.flow_id, arguments.reason, limit, arguments.kind});
    case Command::kPurge:
      return client->Purge({arguments.flow_id, limit, arguments.reason, arguments.kind});
    default: return Status::FailedPrecondition("no command that takes tokens back");
  }
}

Result<std::string> TakeBack(const Arguments& arguments, const Affected& affected,
                             const Streams& streams, BlockingClient* client) {
  // Happy path: confirm, then piece by piece until as many are back as were out. Others may acquire
  // meanwhile, so "until none is left" might never come.
  if (!arguments.yes) NOWCALLS_RETURN_IF_ERROR(Confirm(affected, streams));
  ReclaimedReply total{.reclaimed = 0, .more = true};
  Pieces pieces;
  while (total.more && total.reclaimed < affected.tokens) {
    const uint64_t left = affected.tokens - total.reclaimed;
    // Never more than was confirmed.
    const auto limit = static_cast<uint32_t>(std::min<uint64_t>(left, kReclaimTokensMax));
    const Result<ReclaimedReply> piece = AskOnce(arguments, limit, &pieces, client);
    if (!piece.ok()) {
      // Earlier pieces are done and stay done, so the message says how many tokens are back.
      const Status failed = MaybeDone(arguments, piece.status());
      if (total.reclaimed == 0) return failed;
      return failed.WithContext(affected.whose + ": " + Tokens(total.reclaimed) +
                                " taken back, then");
    }
    total.reclaimed += piece->reclaimed;
    // A piece of a namespace may pass over flows without tokens.
    total.more = piece->more && (piece->reclaimed > 0 || pieces.first_flow() != 0);
  }
  // What a namespace has left may be flows without tokens.
  if (arguments.command == Command::kReclaimNamespace) total.more = false;
  return affected.whose + ": " + Tokens(total.reclaimed) + " taken back" +
         (total.more ? "; more were granted meanwhile\n" : "\n");
}

Result<std::string> Drain(const Arguments& arguments, BlockingClient* client) {
  const Result<wire::DrainReply> drained =
      client->Drain({arguments.flow_id, !arguments.off, arguments.reason, arguments.kind});
  if (!drained.ok()) return MaybeDone(arguments, drained.status());
  // Without a rule in force nothing is granted anyway.
  if (drained->status != TokenStatus::kOk) {
    return Status::NotFound(FlowName(arguments) + " has no rule in force, so it grants nothing");
  }
  const std::string out =
      Tokens(drained->tokens) + " with nowCalls " + std::to_string(drained->now_calls);
  return FlowName(arguments) + (arguments.off ? " grants again, " : " grants nothing more, ") +
         out + " out\n";
}

Result<std::string> DrainNamespace(const Arguments& arguments, BlockingClient* client) {
  wire::DrainNamespaceReply total;
  Pieces pieces;
  // Piece by piece, as the server bounds one. Pieces that are done stay done if a later one fails.
  do {
    const Result<wire::DrainNamespaceReply> piece =
        client->DrainNamespace({.name_space = arguments.name_space,
                                .on = !arguments.off,
                                .reason = arguments.reason,
                                .first_flow = pieces.first_flow()});
    if (!piece.ok()) return MaybeDone(arguments, piece.status());
    if (piece->status != TokenStatus::kOk) break;
    total.rules += piece->rules;
    total.tokens += piece->tokens;
    total.now_calls += piece->now_calls;
    // Unlike a reclaim it has done with a flow id in one piece.
    if (const Status goes_on = pieces.Take(/*done=*/0, piece->next_flow); !goes_on.ok()) {
      return MaybeDone(arguments, goes_on);
    }
  } while (pieces.first_flow() != 0);
  // Nothing was drained in any piece, so the namespace has no rule in force.
  if (total.rules == 0) {
    return Status::NotFound(NamespaceName(arguments) + " has no rule in force");
  }
  const std::string rules = std::to_string(total.rules) + (total.rules == 1 ? " rule" : " rules");
  return NamespaceName(arguments) + (arguments.off ? " grants again by " : " grants nothing by ") +
         rules + ", " + Tokens(total.tokens) + " with nowCalls " + std::to_string(total.now_calls) +
         " out\n";
}

// `text` as one word of a shell.
std::string ShellWord(const std::string& text) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./:@%+,";
  // The message may be copied into a shell: a client id must not become a command.
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
  std::string word = "'";
  for (const char c : text) {
    if (c == '\'') {
      word += "'\\''";
    } else {
      word += c;
    }
  }
  return word + "'";
}

// " --client worker-7"; a value that begins like an option must not be taken for one.
std::string Option(const std::string& name, const std::string& value) {
  return " " + name + (value.starts_with('-') ? "=" : " ") + ShellWord(value);
}

// Not what came by standard input or a pipe, nor a name that no line can show.
bool CanBeReadAgain(const std::string& file) {
  return !IsStandardInput(file) && !file.starts_with("/dev/") && !file.starts_with("/proc/") &&
         IsPrintable(file);
}

std::string FileWord(const std::string& file) {
  return ShellWord(file.starts_with('-') ? "./" + file : file);
}

// The arguments by which nowcalls-admin shows whether the command was carried out.
std::string HowToLook(const Arguments& arguments) {
  const std::string server = Option("--server", arguments.server);
  switch (arguments.command) {
    case Command::kReclaim: return "history" + server;
    case Command::kHandover: return "cluster" + server;
    case Command::kReclaimClient:
      return "sessions" + Option("--client", arguments.client_id) +
             Option("--namespace", arguments.name_space) +
             (arguments.instance ? Option("--instance", std::to_string(*arguments.instance)) : "") +
             server;
    case Command::kReclaimNamespace:
    case Command::kDrainNamespace:
      return "stat" + Option("--namespace", arguments.name_space) + server;
    case Command::kRulesLoad:
      return (CanBeReadAgain(arguments.file) ? "rules diff " + FileWord(arguments.file)
                                             : std::string("rules list")) +
             Option("--namespace", arguments.name_space) + server;
    default: return "flow " + std::to_string(arguments.flow_id) + server;
  }
}

}  // namespace

bool IsAction(Command command) {
  return command == Command::kReclaimClient || command == Command::kReclaimFlow ||
         command == Command::kReclaimNamespace || command == Command::kPurge || IsDrain(command);
}

Status MaybeDone(const Arguments& arguments, const Status& failed) {
  // Any other failure says by itself that nothing was done.
  if (failed.code() != StatusCode::kOutcomeUnknown) return failed;
  return Status::OutcomeUnknown(failed.message() +
                                "; it may have been carried out: look with `nowcalls-admin " +
                                HowToLook(arguments) + "`, then repeat");
}

Result<Affected> FindAffected(const Arguments& arguments, BlockingClient* client) {
  // A drain takes nothing back, so there is nothing to count or confirm.
  if (arguments.command == Command::kDrain) return Affected{FlowName(arguments)};
  if (arguments.command == Command::kDrainNamespace) return Affected{NamespaceName(arguments)};
  Result<Affected> affected = [&] {
    switch (arguments.command) {
      case Command::kReclaimClient: return OfClient(arguments, client);
      case Command::kReclaimNamespace: return OfNamespace(arguments, client);
      default: return OfFlow(arguments, client);
    }
  }();
  if (!affected.ok() || affected->tokens > 0) return affected;
  return Status::NotFound(affected->whose + " has no live token");
}

Status CheckConfirmable(const Arguments& arguments, const Affected& affected,
                        const Streams& streams) {
  // Before anything is done: a script without --yes must fail at once, not wait at a question.
  const bool asks = !IsDrain(arguments.command) && !arguments.yes;
  if (!asks || (streams.in_is_terminal && streams.err_is_terminal)) return {};
  return Status::InvalidArgument(Described(affected) +
                                 "; taking back all of them must be confirmed, and there is no "
                                 "terminal to ask at: add --yes");
}

Result<std::string> Act(const Arguments& arguments, const Affected& affected,
                        const Streams& streams, BlockingClient* client) {
  if (arguments.command == Command::kDrain) return Drain(arguments, client);
  if (arguments.command == Command::kDrainNamespace) return DrainNamespace(arguments, client);
  return TakeBack(arguments, affected, streams, client);
}

}  // namespace nowcalls::admin
