// Plot: curves over one axis, as data and a script for gnuplot, and a page that shows the pictures.
//
// Thread: any.
#ifndef NOWCALLS_BENCH_PLOT_H_
#define NOWCALLS_BENCH_PLOT_H_

#include <string>
#include <vector>

#include "bench/machine_facts.h"
#include "bench/statistics.h"

namespace nowcalls::compare {

struct Point {
  double x = 0;
  Spread y;
};

struct Curve {
  std::string label;
  std::vector<Point> points;
};

struct Plot {
  std::string name;  // Of its files, without an ending.
  std::string title;
  std::string x_label;
  std::string y_label;  // With the unit.
  bool log_y = false;   // The axis from 0 otherwise. The other axis is always logarithmic.
  bool x_tics_at_points = false;  // Otherwise at powers of ten.
  int digits = 0;                 // Of y, in tables.
  std::string text;               // What it shows, and how that was measured.
  std::vector<Curve> curves;
};

// A block a curve that has points: "x median min max" a line.
std::string GnuplotData(const Plot& plot);
// Draws NAME.svg from NAME.dat in the working directory, with `footer` below the picture.
std::string GnuplotScript(const Plot& plot, const std::string& footer);
// The machine and the versions in one line.
std::string Footer(const MachineFacts& facts);
// Markdown with all pictures, and tables of the medians.
std::string IndexPage(const std::vector<Plot>& plots, const MachineFacts& facts,
                      const std::vector<std::string>& failures, bool quick);

}  // namespace nowcalls::compare

#endif  // NOWCALLS_BENCH_PLOT_H_
