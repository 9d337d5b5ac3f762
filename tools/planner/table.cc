// Lays tables out as text and as HTML.
#include "tools/planner/table.h"

#include <algorithm>

#include "kvstore/base/check.h"

namespace cairn::tools {

Table::Table(std::vector<std::string> titles) : titles_(std::move(titles)) {
  for (std::string& title : titles_) {
    right_.push_back(title.starts_with('>'));
    if (right_.back()) title.erase(0, 1);
  }
}

void Table::Add(std::vector<std::string> row) {
  KV_CHECK(row.size() == titles_.size());
  rows_.push_back(std::move(row));
}

std::string Table::ToText() const {
  std::vector<size_t> widths;
  for (size_t column = 0; column < titles_.size(); ++column) {
    widths.push_back(titles_[column].size());
    for (const auto& row : rows_) widths[column] = std::max(widths[column], row[column].size());
  }
  std::string text;
  const auto add_row = [&](const std::vector<std::string>& row) {
    std::string line;
    for (size_t column = 0; column < row.size(); ++column) {
      if (column > 0) line += "  ";
      const std::string padding(widths[column] - row[column].size(), ' ');
      line += right_[column] ? padding + row[column] : row[column] + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  };
  add_row(titles_);
  for (const auto& row : rows_) add_row(row);
  return text;
}

std::string Table::ToHtml() const {
  std::string html = "<table>\n";
  const auto add_row = [&](const std::vector<std::string>& row, const std::string& tag) {
    html += "<tr>";
    for (size_t column = 0; column < row.size(); ++column) {
      html += "<" + tag + (right_[column] ? " class=\"number\">" : ">") + EscapeHtml(row[column]) +
              "</" + tag + ">";
    }
    html += "</tr>\n";
  };
  add_row(titles_, "th");
  for (const auto& row : rows_) add_row(row, "td");
  return html + "</table>\n";
}

std::string EscapeHtml(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace cairn::tools
