// A manual page (troff, man macros) from a tree of commands.
#pragma once

#include <string>
#include <vector>

#include "tools/cli/command_tree.h"

namespace cairn::tools {

struct ManSection {
  std::string title;  // "EXIT STATUS"
  // Paragraphs; one that begins with "* TERM: text" becomes a list entry, one that begins with two
  // spaces an example line that is kept as it is.
  std::vector<std::string> paragraphs;
};

struct ManPage {
  int section = 1;
  std::string version;
  std::string summary;                     // For NAME: "store KV cache blocks on SSDs".
  std::vector<std::string> description;    // Paragraphs.
  std::vector<ManSection> more;            // After the commands and options.
};

std::string ToMan(const CommandInfo& command, const ManPage& page);

}  // namespace cairn::tools
