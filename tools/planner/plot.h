// Line and bar charts as SVG, to be looked at by people who decide.
#pragma once

#include <string>
#include <vector>

namespace cairn::tools {

struct Series {
  std::string name;
  std::vector<std::pair<double, double>> points;  // Ascending in x.
};

struct LineChart {
  std::string title;
  std::string x_title;
  std::string y_title;
  std::vector<std::pair<double, std::string>> x_ticks;  // Where, and what is written there.
  std::vector<Series> series;
  double y_max = 1;  // From 0; written as percent when 1.
};
// x is logarithmic: TTLs and capacities span decades. Points at x <= 0 are left out.
std::string LineSvg(const LineChart& chart);

struct Bar {
  std::string label;
  double value = 0;
  std::string text;  // Written behind the bar.
};
std::string BarSvg(const std::string& title, const std::vector<Bar>& bars);

// A page with a style of its own, for light and dark screens.
std::string HtmlPage(const std::string& title, const std::string& body);

}  // namespace cairn::tools
