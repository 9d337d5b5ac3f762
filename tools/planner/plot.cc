// Draws charts with nothing but SVG: no script, no font, no network.
#include "tools/planner/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "tools/planner/table.h"

namespace cairn::tools {
namespace {

constexpr double kWidth = 720, kHeight = 360;
constexpr double kLeft = 64, kRight = 16, kTop = 40, kBottom = 56;
// Distinct in hue and in lightness, so that they survive a grey printer and most colour blindness.
constexpr std::array kColours = {"#2f6fb3", "#d1642b", "#3a8f5c", "#8b5fae"};

struct Frame {
  double x_min = 0, x_max = 1, y_max = 1;
  double X(double x) const {
    const double share = (std::log(x) - std::log(x_min)) / (std::log(x_max) - std::log(x_min));
    return kLeft + share * (kWidth - kLeft - kRight);
  }
  double Y(double y) const { return kHeight - kBottom - y / y_max * (kHeight - kTop - kBottom); }
};

std::string Text(double x, double y, const char* anchor, std::string_view text,
                 const char* extra = "") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", x, y,
                     anchor, extra, EscapeHtml(text));
}

std::string Open(double height, std::string_view title) {
  return fmt::format(
             "<svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"{}\" "
             "xmlns=\"http://www.w3.org/2000/svg\" font-family=\"sans-serif\" font-size=\"13\" "
             "fill=\"currentColor\">\n",
             kWidth, height, EscapeHtml(title)) +
         Text(kLeft, 22, "start", title, " font-size=\"16\" font-weight=\"bold\"");
}

Frame FrameOf(const LineChart& chart) {
  Frame frame{.x_min = INFINITY, .x_max = 0, .y_max = chart.y_max};
  for (const Series& series : chart.series) {
    for (const auto& [x, y] : series.points) {
      if (x <= 0) continue;
      frame.x_min = std::min(frame.x_min, x);
      frame.x_max = std::max(frame.x_max, x);
    }
  }
  if (!(frame.x_min < frame.x_max)) {  // One point or none: any frame around it will do.
    frame.x_min = frame.x_max > 0 ? frame.x_max / 2 : 1;
    frame.x_max = frame.x_min * 4;
  }
  return frame;
}

std::string Axes(const LineChart& chart, const Frame& frame) {
  std::string svg;
  for (int tick = 0; tick <= 5; ++tick) {
    const double y = chart.y_max * tick / 5;
    svg += fmt::format(
        "<line x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"currentColor\" "
        "opacity=\"0.2\"/>\n",
        kLeft, kWidth - kRight, frame.Y(y), frame.Y(y));
    const std::string label =
        chart.y_max == 1 ? fmt::format("{:.0f} %", y * 100) : fmt::format("{:g}", y);
    svg += Text(kLeft - 8, frame.Y(y) + 4, "end", label);
  }
  double last = -INFINITY;
  for (const auto& [x, label] : chart.x_ticks) {
    if (x < frame.x_min || x > frame.x_max || frame.X(x) - last < 44) continue;
    last = frame.X(x);
    svg += Text(last, kHeight - kBottom + 20, "middle", label);
  }
  svg += Text((kLeft + kWidth) / 2, kHeight - 12, "middle", chart.x_title);
  return svg + Text(kWidth - kRight, 22, "end", chart.y_title);
}

}  // namespace

std::string LineSvg(const LineChart& chart) {
  const Frame frame = FrameOf(chart);
  std::string svg = Open(kHeight, chart.title) + Axes(chart, frame);
  for (size_t i = 0; i < chart.series.size(); ++i) {
    const char* colour = kColours[i % kColours.size()];
    std::string points;
    for (const auto& [x, y] : chart.series[i].points) {
      if (x > 0)
        points += fmt::format("{:.1f},{:.1f} ", frame.X(x), frame.Y(std::min(y, chart.y_max)));
    }
    svg +=
        fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2.5\"/>\n",
                    points, colour);
    svg += Text(kWidth - kRight - 8, kHeight - kBottom - 12 - 18 * static_cast<double>(i), "end",
                chart.series[i].name, fmt::format(" fill=\"{}\"", colour).c_str());
  }
  return svg + "</svg>\n";
}

std::string BarSvg(const std::string& title, const std::vector<Bar>& bars) {
  constexpr double kRow = 26, kLabels = 240, kText = 130;
  double most = 1e-300;
  for (const Bar& bar : bars) most = std::max(most, bar.value);
  std::string svg = Open(kTop + kRow * static_cast<double>(bars.size()) + 8, title);
  double y = kTop;
  for (const Bar& bar : bars) {
    const double width = std::max(0.0, bar.value / most) * (kWidth - kLabels - kText);
    svg += Text(kLabels - 8, y + 16, "end", bar.label);
    svg += fmt::format(
        "<rect x=\"{:.0f}\" y=\"{:.0f}\" width=\"{:.1f}\" height=\"18\" fill=\"{}\"/>\n", kLabels,
        y + 2, width, kColours[0]);
    svg += Text(kLabels + width + 8, y + 16, "start", bar.text);
    y += kRow;
  }
  return svg + "</svg>\n";
}

std::string HtmlPage(const std::string& title, const std::string& body) {
  return "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
         "<meta name=\"viewport\" content=\"width=device-width\">\n"
         // Prompts are shown: whatever they hold, it runs nothing and fetches nothing.
         "<meta http-equiv=\"Content-Security-Policy\" "
         "content=\"default-src 'none'; style-src 'unsafe-inline'\">\n<title>" +
         EscapeHtml(title) +
         "</title>\n<style>\n"
         ":root { color-scheme: light dark; }\n"
         "body { font-family: sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }\n"
         "table { border-collapse: collapse; margin: 1rem 0; }\n"
         "td, th { text-align: left; padding: .25rem .8rem; border-bottom: 1px solid #8884; }\n"
         ".number { text-align: right; font-variant-numeric: tabular-nums; }\n"
         "pre { white-space: pre-wrap; overflow-wrap: anywhere; }\n"
         "svg { width: 100%; height: auto; margin: 1rem 0; }\n"
         "</style></head>\n<body>\n<h1>" +
         EscapeHtml(title) + "</h1>\n" + body + "</body></html>\n";
}

}  // namespace cairn::tools
