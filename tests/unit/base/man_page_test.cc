#include "base/man_page.h"

#include <doctest/doctest.h>

#include <string>

namespace nowcalls {
namespace {

TEST_CASE("a man page has options, commands and notes of the table, as roff writes them") {
  CLI::App app("Counts.", "count-up");
  app.footer("One.\n\n.Two\n");
  int step = 0;
  app.add_option("--step", step, "How far \\")->type_name("N")->required();
  CLI::App* const down = app.add_subcommand("group")->add_subcommand("down", "Counts down");
  down->add_option("FROM", step, "Where it begins");
  CHECK(CommandManPage(app, 1, "count-up --step 2") == R"(.TH count\-up 1 "" nowcalls nowcalls
.SH NAME
count\-up \- counts
.SH SYNOPSIS
count\-up [OPTIONS] [SUBCOMMAND]
.SH OPTIONS
.TP
.B \-h,\-\-help
Print this help message and exit
.TP
.B \-\-step N REQUIRED
How far \e
.SH SUBCOMMANDS
.SS group down
.PP
Counts down
.TP
.B FROM INT
Where it begins
.SH NOTES
.PP
One.
.PP
\&.Two
.SH EXAMPLES
.nf
count\-up \-\-step 2
.fi
.SH SEE ALSO
\fBnowcalls\fR(1), \fBnowcalls\-bench\fR(1), \fBnowcalls\-admin\fR(8), \fBnowcalls\-server\fR(8).
The manual is in the documentation directory, under tools/manual.
)");
}

}  // namespace
}  // namespace nowcalls
