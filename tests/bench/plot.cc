#include "bench/plot.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

namespace nowcalls::compare {
namespace {

constexpr char kColors[][8] = {"#1f5fa8", "#c0392b", "#2e7d32", "#8e44ad"};
constexpr int kPointTypes[] = {7, 5, 9, 13};

// As gnuplot reads it back; nothing in it ends the string or is replaced.
std::string GnuplotText(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("''") : std::string(1, c);
  return quoted + "'";
}

std::string Exact(double value) {
  char text[40];
  std::snprintf(text, sizeof(text), "%.9g", value);
  return text;
}

// 1000 is 1k, 2500000 is 2.5M: short enough for an axis.
std::string Short(double value) {
  if (value >= 1e6) return Exact(value / 1e6) + "M";
  if (value >= 1e3) return Exact(value / 1e3) + "k";
  return Exact(value);
}

std::set<double> XValues(const Plot& plot) {
  std::set<double> values;
  for (const Curve& curve : plot.curves) {
    for (const Point& point : curve.points) values.insert(point.x);
  }
  return values;
}

std::string XTics(const Plot& plot) {
  const std::set<double> values = XValues(plot);
  if (values.empty()) return "";
  std::vector<double> tics(values.begin(), values.end());
  if (!plot.x_tics_at_points) {
    tics.clear();
    double tic = 1;
    while (tic <= *values.rbegin() * 10) {
      tics.push_back(tic);
      tic *= 10;
    }
  }
  std::string text;
  for (const double at : tics) {
    text += (text.empty() ? "" : ", ") + GnuplotText(Short(at)) + " " + Exact(at);
  }
  // Half a step of air on both sides.
  constexpr double kAir = 1.4;
  return "set xtics (" + text + ")\nset xrange [" + Exact(*values.begin() / kAir) + ":" +
         Exact(*values.rbegin() * kAir) + "]\n";
}

std::string Tables(const Plot& plot) {
  std::map<double, std::vector<std::string>> rows;
  for (const double x : XValues(plot)) rows[x].resize(plot.curves.size(), "-");
  std::string head = "| " + plot.x_label + " |";
  std::string rule = "|---:|";
  for (size_t i = 0; i < plot.curves.size(); ++i) {
    head += " " + plot.curves[i].label + " |";
    rule += "---:|";
    for (const Point& point : plot.curves[i].points) {
      rows[point.x][i] = Decimal(point.y.median, plot.digits);
    }
  }
  std::string text = head + "\n" + rule + "\n";
  for (const auto& [x, cells] : rows) {
    text += "| " + Decimal(x, 0) + " |";
    for (const std::string& cell : cells) text += " " + cell + " |";
    text += "\n";
  }
  return text;
}

}  // namespace

std::string GnuplotData(const Plot& plot) {
  std::string text;
  for (const Curve& curve : plot.curves) {
    if (curve.points.empty()) continue;
    if (!text.empty()) text += "\n\n";
    text +=
        "# " + curve.label + ": " + plot.x_label + ", " + plot.y_label + " (median, min, max)\n";
    for (const Point& point : curve.points) {
      text += Exact(point.x) + " " + Exact(point.y.median) + " " + Exact(point.y.min) + " " +
              Exact(point.y.max) + "\n";
    }
  }
  return text;
}

std::string GnuplotScript(const Plot& plot, const std::string& footer) {
  std::string text =
      "set terminal svg size 900,580 noenhanced font 'DejaVu Sans,14' background 'white'\n";
  const auto set = [&text](const std::string& what, const std::string& shown,
                           const std::string& how = "") {
    text += "set " + what + " " + GnuplotText(shown) + how + "\n";
  };
  set("output", plot.name + ".svg");
  // The title to the left and the legend to the right share the line above the picture.
  set("label 1", plot.title, " at graph 0, screen 0.955 left font ',14'");
  set("label 2", footer, " at screen 0.5, screen 0.025 center font ',8' textcolor rgb '#666666'");
  set("xlabel", plot.x_label);
  set("ylabel", plot.y_label);
  text +=
      "set key at graph 1, screen 0.97 right top horizontal samplen 2\n"
      "set tmargin 3.5\nset bmargin 5.5\nset rmargin 3\n"
      "set border 3\nset tics nomirror out\n"
      "set grid xtics ytics linecolor rgb '#dddddd' linetype 1\n"
      "set logscale x\n";
  text += XTics(plot);
  text += plot.log_y ? "set logscale y\nset format y '%g'\n" : "set yrange [0:*]\n";
  std::string drawn;
  size_t index = 0;
  for (size_t i = 0; i < plot.curves.size(); ++i) {
    if (plot.curves[i].points.empty()) continue;
    const size_t style = i % std::size(kColors);
    drawn += (drawn.empty() ? "plot " : ", \\\n  ") + GnuplotText(plot.name + ".dat") + " index " +
             std::to_string(index++) + " using 1:2:3:4 with yerrorlines linewidth 2 " +
             "linecolor rgb '" + kColors[style] + "' pointtype " +
             std::to_string(kPointTypes[style]) + " pointsize 0.8 title " +
             GnuplotText(plot.curves[i].label);
  }
  return text + drawn + "\n";
}

std::string Footer(const MachineFacts& facts) {
  std::string text = facts.cpu + ", " + std::to_string(facts.cores) + " cores, " + facts.disk +
                     "; " + facts.nowcalls + "; " + facts.redis;
  if (!facts.commit.empty()) text += "; source " + facts.commit;
  return text + "; " + facts.date.substr(0, facts.date.find('T'));
}

std::string IndexPage(const std::vector<Plot>& plots, const MachineFacts& facts,
                      const std::vector<std::string>& failures, bool quick) {
  std::string text = "# nowcalls and Redis, measured\n\n";
  if (quick) text += "**Made with --quick: these figures mean nothing.**\n\n";
  text += "| | |\n|---|---|\n";
  for (const auto& [name, value] : facts.Lines()) text += "| " + name + " | " + value + " |\n";
  text +=
      "\nPoints are medians of some rounds, bars go from the least to the greatest. Client and "
      "servers share the machine.\n";
  for (const Plot& plot : plots) {
    text += "\n## " + plot.title + "\n\n" + plot.text + "\n\n";
    text += "![" + plot.title + "](" + plot.name + ".svg)\n\n";
    text += plot.y_label + ":\n\n" + Tables(plot);
  }
  if (failures.empty()) return text;
  text += "\n## What could not be measured\n\n";
  for (const std::string& failure : failures) text += "- " + failure + "\n";
  return text;
}

}  // namespace nowcalls::compare
