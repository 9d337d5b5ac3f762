// Text is escaped once, where it enters; what it writes itself is macros only.
#include "tools/cli/man_page.h"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace cairn::tools {
namespace {

// For running text: no line may begin with a control character, no '-' may become a hyphen.
std::string Escape(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool line_begins = i == 0 || text[i - 1] == '\n';
    if (line_begins && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out;
}

std::string Upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

std::string Sentence(std::string text) {
  if (!text.empty() && text.back() != '.' && text.back() != ')') text += '.';
  return text;
}

std::string FlagLine(const OptionInfo& option) {
  if (option.flags.empty()) return std::string("\\fI").append(Escape(option.name)).append("\\fR");
  std::string line;
  for (const std::string& flag : option.flags) {
    line += (line.empty() ? "\\fB" : ", \\fB") + Escape(flag) + "\\fR";
  }
  if (!option.value.empty()) line += " \\fI" + Escape(option.value) + "\\fR";
  return line;
}

void AppendOptions(const CommandInfo& command, std::string& out) {
  for (const OptionInfo& option : command.options) {
    out += ".TP\n" + FlagLine(option) + "\n" + Escape(Sentence(option.help)) + "\n";
    if (!option.choices.empty()) {
      std::string choices;
      for (const std::string& choice : option.choices) {
        choices += (choices.empty() ? "" : ", ") + choice;
      }
      out += "One of: " + Escape(choices) + ".\n";
    }
    if (!option.default_value.empty()) out += "Default: " + Escape(option.default_value) + ".\n";
  }
}

void AppendCommands(const CommandInfo& command, std::string& out) {
  for (const CommandInfo& inner : command.commands) {
    out.append(".SS \"").append(Escape(Synopsis(inner))).append("\"\n");
    out += Escape(Sentence(inner.help)) + "\n";
    AppendOptions(inner, out);
    AppendCommands(inner, out);
  }
}

void AppendParagraph(const std::string& paragraph, std::string& out) {
  if (paragraph.starts_with("* ")) {
    const size_t colon = paragraph.find(": ");
    out += ".TP\n\\fB" + Escape(paragraph.substr(2, colon - 2)) + "\\fR\n";
    out += Escape(paragraph.substr(colon + 2)) + "\n";
  } else if (paragraph.starts_with("  ")) {
    out += ".PP\n.nf\n.RS 4\n" + Escape(paragraph.substr(2)) + "\n.RE\n.fi\n";
  } else {
    out += ".PP\n" + Escape(paragraph) + "\n";
  }
}

}  // namespace

std::string ToMan(const CommandInfo& command, const ManPage& page) {
  const std::string name = command.name;
  std::string out = ".\\\" Generated from the table of options: do not edit.\n";
  out += ".TH " + Upper(name) + " " + std::to_string(page.section) + " \"\" \"Cairn " +
         page.version + "\" \"Cairn\"\n";
  out += ".SH NAME\n" + Escape(name) + " \\- " + Escape(page.summary) + "\n";
  out += ".SH SYNOPSIS\n.B " + Escape(Synopsis(command)) + "\n";
  out += ".SH DESCRIPTION\n";
  for (const std::string& paragraph : page.description) AppendParagraph(paragraph, out);
  out += ".SH OPTIONS\n";
  AppendOptions(command, out);
  if (!command.commands.empty()) {
    out += ".SH COMMANDS\n";
    AppendCommands(command, out);
  }
  for (const ManSection& section : page.more) {
    out += ".SH \"" + section.title + "\"\n";
    for (const std::string& paragraph : section.paragraphs) AppendParagraph(paragraph, out);
  }
  return out;
}

}  // namespace cairn::tools
