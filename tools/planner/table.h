// Text tables for terminals: columns aligned, numbers to the right.
#pragma once

#include <string>
#include <vector>

namespace cairn::tools {

class Table {
 public:
  // Columns whose title begins with '>' align right (the mark is not shown).
  explicit Table(std::vector<std::string> titles);
  void Add(std::vector<std::string> row);
  std::string ToText() const;
  std::string ToHtml() const;

 private:
  std::vector<std::string> titles_;
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;
};

// With &, <, > and quotes made harmless.
std::string EscapeHtml(std::string_view text);

}  // namespace cairn::tools
