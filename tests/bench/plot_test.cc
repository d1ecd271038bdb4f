#include "bench/plot.h"

#include <doctest/doctest.h>

namespace nowcalls::compare {
namespace {

Plot SomePlot() {
  Plot plot;
  plot.name = "ready-tokens";
  plot.title = "Who's ready";
  plot.x_label = "live tokens";
  plot.y_label = "ready, s";
  plot.digits = 2;
  plot.text = "What it shows.";
  plot.curves = {{"nothing", {}},
                 {"nowcalls", {{1'000, {0.5, 0.25, 1}}, {2'500'000, {2, 2, 2}}}},
                 {"Redis", {{1'000, {0.125, 0.1, 0.2}}}}};
  return plot;
}

bool Has(const std::string& text, const std::string& part) {
  CAPTURE(text);
  CAPTURE(part);
  return text.find(part) != std::string::npos;
}

TEST_CASE("gnuplot's data has a block for each curve that has points") {
  CHECK(GnuplotData(SomePlot()) ==
        "# nowcalls: live tokens, ready, s (median, min, max)\n"
        "1000 0.5 0.25 1\n"
        "2500000 2 2 2\n"
        "\n\n"
        "# Redis: live tokens, ready, s (median, min, max)\n"
        "1000 0.125 0.1 0.2\n");
}

TEST_CASE("gnuplot's script draws each block with its label, and quotes what it shows") {
  const std::string script = GnuplotScript(SomePlot(), "a machine's facts");
  CHECK(Has(script, "set output 'ready-tokens.svg'\n"));
  CHECK(Has(script, "set label 1 'Who''s ready'"));
  CHECK(Has(script, "'a machine''s facts'"));
  CHECK(Has(script, "set xlabel 'live tokens'\n"));
  CHECK(Has(script, "set ylabel 'ready, s'\n"));
  CHECK(Has(script, "set yrange [0:*]\n"));
  CHECK(Has(script, "'ready-tokens.dat' index 0 "));
  CHECK(Has(script, "title 'nowcalls'"));
  CHECK(Has(script, "index 1 "));
  CHECK_FALSE(script.find("title 'nothing'") != std::string::npos);
}

TEST_CASE("an axis is marked at powers of ten, or where the points are") {
  Plot plot = SomePlot();
  CHECK(Has(GnuplotScript(plot, ""), "'10k' 10000, '100k' 100000, '1M' 1000000"));
  plot.x_tics_at_points = true;
  CHECK(Has(GnuplotScript(plot, ""), "set xtics ('1k' 1000, '2.5M' 2500000)\n"));
  plot.log_y = true;
  CHECK(Has(GnuplotScript(plot, ""), "set logscale y\n"));
}

TEST_CASE("the page of a report has every picture, its figures and what is missing") {
  MachineFacts facts;
  facts.date = "2024-05-01T12:00:00.000Z";
  facts.cpu = "some CPU";
  facts.cores = 2;
  facts.redis = "Redis 7.0.15";
  const std::string page = IndexPage({SomePlot()}, facts, {"Redis, 2500000: it ended"}, true);
  CHECK(Has(page, "![Who's ready](ready-tokens.svg)"));
  CHECK(Has(page, "| 1,000 | - | 0.50 | 0.12 |\n"));
  CHECK(Has(page, "| 2,500,000 | - | 2.00 | - |\n"));
  CHECK(Has(page, "- Redis, 2500000: it ended\n"));
  CHECK(Has(page, "--quick"));
  CHECK(Has(page, "some CPU, 2 cores"));
  CHECK_FALSE(IndexPage({}, facts, {}, false).find("could not") != std::string::npos);
  CHECK(Has(Footer(facts), "; Redis 7.0.15; 2024-05-01"));
}

}  // namespace
}  // namespace nowcalls::compare
